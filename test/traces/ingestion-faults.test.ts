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
      const sent: TestRun[][] = [];
      await start();
      for (let kill = 0; kill < KILLS; kill++) {
        const limit = random.integer(1, MAX_ACKNOWLEDGED);
        let count = 0;
        const client = async () => {
          for (;;) {
            const body = Array.from({ length: RUNS_PER_BODY }, () => run());
            sent.push(body);
            if (!(await post(body))) return;
            for (const { id } of body) acknowledged.add(id);
            if (++count === limit) server.child.kill("SIGKILL");
          }
        };
        await Promise.all(Array.from({ length: CLIENTS }, client));
        await server.ended;
        await start();
      }
      const stored = await rootIds();
      expect(new Set(stored).size).toBe(stored.length);
      expect([...acknowledged].filter((id) => !stored.includes(id))).toEqual([]);
      // A client sends again what was not acknowledged: nothing is doubled.
      for (const body of sent.slice(-2 * CLIENTS)) expect(await post(body)).toBe(true);
      const again = await rootIds();
      expect(again.length).toBe(
        new Set([
          ...stored,
          ...sent
            .slice(-2 * CLIENTS)
            .flat()
            .map(({ id }) => id),
        ]).size,
      );
    },
    60_000 + KILLS * 20_000,
  );
});
