import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { COUNTS, SEED } from "../support/counts.ts";
import { createDatabase, databases, type TestDatabase } from "../support/databases.ts";
import { freePort, type ServerProcess, startProcess } from "../support/process.ts";
import { randomOf } from "../support/random.ts";
import { multipart, partsOf, run, type TestRun } from "./trace-client.ts";

const KILLS = Math.ceil(COUNTS.kills / 10);
const CLIENTS = 4;
const RUNS_PER_BODY = 10;
const MAX_ACKNOWLEDGED = 20;

describe.each(databases)("the ingestion of traces on %s", (name) => {
  let database: TestDatabase;
  let server: ServerProcess;
  let port: number;
  beforeEach(async () => {
    database = await createDatabase(name);
    port = await freePort();
  });
  afterEach(async () => {
    server.child.kill("SIGKILL");
    await server.ended;
    await database.drop();
  });

  const start = async (): Promise<void> => {
    const config = "examples/langgraph.json";
    server = await startProcess({ data: database.data_dir, databaseUrl: database.url, port, config });
  };

  const post = async (runs: TestRun[]): Promise<boolean> => {
    const headers = { "content-type": "multipart/form-data; boundary=----boundary" };
    const url = `http://127.0.0.1:${port}/api/v1/runs/multipart`;
    const body = new Uint8Array(multipart(partsOf("post", runs)));
    const response = await fetch(url, { method: "POST", headers, body }).catch(() => undefined);
    return response?.status === 202;
  };

  /** The same runs as OpenTelemetry spans, whose ids become the ids of runs. */
  const postSpans = async (runs: TestRun[]): Promise<boolean> => {
    const spans = runs.map(({ id }) => ({
      traceId: id.replaceAll("-", ""),
      spanId: id.replaceAll("-", "").slice(16),
      name: "span",
      startTimeUnixNano: "1769860800000000000",
      endTimeUnixNano: "1769860801000000000",
    }));
    const response = await fetch(`http://127.0.0.1:${port}/otel/v1/traces`, {
      method: "POST",
      headers: { "content-type": "application/json", "langsmith-project": "spans" },
      body: JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans }] }] }),
    }).catch(() => undefined);
    return response?.status === 200;
  };

  /** The id of the run of a span has the 8 bytes of the span. */
  const spanRun = (): TestRun => run({ id: `00000000-0000-0000-${randomUUID().slice(19)}` });

  const rootIds = async (): Promise<string[]> => {
    const found: string[] = [];
    for (let cursor: string | undefined; ; ) {
      const response = await fetch(`http://127.0.0.1:${port}/api/v1/runs/query`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ is_root: true, select: ["id"], cursor }),
      });
      const { runs, cursors } = (await response.json()) as { runs: TestRun[]; cursors: { next?: string } };
      found.push(...runs.map(({ id }) => id));
      if (!cursors.next) return found;
      cursor = cursors.next;
    }
  };

  it(
    `loses no acknowledged run and stores none twice over ${KILLS} kills (seed ${SEED}; CRASH_KILLS and SEED change it)`,
    async () => {
      const random = randomOf(SEED);
      const acknowledged = new Set<string>();
      const sent: { body: TestRun[]; send(): Promise<boolean> }[] = [];
      await start();
      for (let kill = 0; kill < KILLS; kill++) {
        const limit = random.integer(1, MAX_ACKNOWLEDGED);
        let count = 0;
        const client = async (_: unknown, index: number) => {
          const isOtlp = index % 2 === 1;
          for (;;) {
            const body = Array.from({ length: RUNS_PER_BODY }, isOtlp ? spanRun : () => run());
            const send = () => (isOtlp ? postSpans(body) : post(body));
            sent.push({ body, send });
            if (!(await send())) return;
            for (const { id } of body) acknowledged.add(id);
            if (++count === limit) server.child.kill("SIGKILL");
          }
        };
        await Promise.all(Array.from({ length: CLIENTS }).map(client));
        await server.ended;
        await start();
      }
      const stored = await rootIds();
      expect(new Set(stored).size).toBe(stored.length);
      expect([...acknowledged].filter((id) => !stored.includes(id))).toEqual([]);
      // A client sends again what was not acknowledged: nothing is doubled.
      for (const { send } of sent.slice(-2 * CLIENTS)) expect(await send()).toBe(true);
      const again = await rootIds();
      expect(again.length).toBe(
        new Set([
          ...stored,
          ...sent
            .slice(-2 * CLIENTS)
            .flatMap(({ body }) => body)
            .map(({ id }) => id),
        ]).size,
      );
    },
    60_000 + KILLS * 20_000,
  );
});
