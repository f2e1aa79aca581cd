import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SEED } from "../support/counts.ts";
import { databases } from "../support/databases.ts";
import { startService, type TestService } from "../support/service.ts";
import { shuffled } from "../traces/trace-client.ts";
import { type FakeOpenAI, langsmithEnv, startFakeOpenAI } from "./evaluate-env.ts";
import { pythonEnv } from "./python-env.ts";

interface Recorded {
  method: string;
  path: string;
  headers: Record<string, string>;
  body: Uint8Array<ArrayBuffer>;
}

const OF_CONNECTION = new Set([
  "host",
  "connection",
  "content-length",
  "transfer-encoding",
  "accept-encoding",
  "expect",
]);

/** Passes requests on to a service, and keeps those that store runs and feedback. */
async function startRecorder(url: string): Promise<{ url: string; recorded: Recorded[]; server: Server }> {
  const recorded: Recorded[] = [];
  const server = createServer(async (incoming, response) => {
    const { method = "", url: path = "" } = incoming;
    const headers = Object.fromEntries(
      Object.entries(incoming.headers).filter(([name]) => !OF_CONNECTION.has(name)),
    ) as Record<string, string>;
    const body = new Uint8Array(await buffer(incoming));
    const isStored = /\/runs(\/multipart|\/batch)?$|\/feedback$/.test(path) || /\/runs\/[^/]+$/.test(path);
    if ((method === "POST" && isStored && !path.endsWith("/query")) || method === "PATCH")
      recorded.push({ method, path, headers, body });
    const answer = await fetch(`${url}${path}`, { method, headers, ...(body.length > 0 && { body }) });
    response.writeHead(answer.status, { "content-type": answer.headers.get("content-type") ?? "text/plain" });
    response.end(Buffer.from(await answer.arrayBuffer()));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, recorded, server };
}

const { python } = await pythonEnv();
const CLIENTS = [
  { client: "JavaScript", command: process.execPath, script: "js/evaluate-scenarios.ts" },
  ...(python ? [{ client: "Python", command: python, script: "python/evaluate_scenarios.py" }] : []),
];

describe.each(databases)("the recorded traffic of a client, sent twice and out of order, on %s", (database) => {
  let service: TestService;
  let openAI: FakeOpenAI;
  beforeAll(async () => {
    service = await startService({ database, config: "examples/langgraph.json", env: { API_KEYS: "" } });
    openAI = await startFakeOpenAI();
  });
  afterAll(async () => {
    openAI.stop();
    await service.stop();
  });

  const send = async (method: string, path: string, body?: object) =>
    (await service.request(method, `/api/v1${path}`, body)).body;

  const listSessions = (): Promise<Record<string, unknown>[]> => send("GET", "/sessions?limit=100&include_stats=true");

  async function listRuns(session: unknown) {
    const runs: Record<string, unknown>[] = [];
    for (let cursor: string | undefined; ; ) {
      const page = await send("POST", "/runs/query", { session: [session], cursor });
      runs.push(...page.runs);
      if (!page.cursors.next) return runs.sort((a, b) => (String(a.id) < String(b.id) ? -1 : 1));
      cursor = page.cursors.next;
    }
  }

  /** What is stored of each session, without what depends on the order of arrival: lists of comments, and sums of floats. */
  async function stored() {
    const sessions = await listSessions();
    const found = await Promise.all(
      sessions.map(async ({ id, run_count, error_rate, total_tokens, total_cost, latency_p50, feedback_stats }) => {
        const scores = Object.entries((feedback_stats ?? {}) as Record<string, { n: number; avg: number | null }>);
        // Attachments of deleted runs are stored again, with other links.
        const runs = (await listRuns(id)).map(({ feedback_stats: _, s3_urls, ...run }) => ({
          ...run,
          attachments: Object.keys(s3_urls ?? {}),
        }));
        const keys = scores.map(([key, { n, avg }]) => `${key} ${n} ${avg?.toFixed(6)}`).sort();
        const cost = Number(total_cost ?? 0).toFixed(9);
        return [id, { run_count, error_rate, total_tokens, cost, latency_p50, keys, runs }] as const;
      }),
    );
    return Object.fromEntries(found);
  }

  it.each(CLIENTS)(`stores the same ($client; seed ${SEED}, SEED changes it)`, async ({ command, script }) => {
    const known = new Set((await listSessions()).map(({ id }) => id));
    const recorder = await startRecorder(await service.listen());
    const env = { ...process.env, ...langsmithEnv(recorder.url) };
    const child = spawn(command, [join(import.meta.dirname, script), openAI.url], { stdio: "ignore", env });
    await once(child, "exit");
    recorder.server.close();
    const { recorded } = recorder;
    expect(recorded.length).toBeGreaterThan(20);

    const before = await stored();
    // Uploads are not sent again.
    const traced = (await listSessions()).filter(({ id, name }) => !known.has(id) && !String(name).endsWith(" up"));
    expect(traced.length).toBeGreaterThan(5);
    for (const { id, name, reference_dataset_id } of traced) {
      await send("DELETE", `/sessions/${id}`);
      await send("POST", "/sessions", { id, name, reference_dataset_id });
    }
    const runs = recorded.filter(({ path }) => !path.includes("/sessions/") && !path.includes("/datasets/"));
    for (const { method, path, headers, body } of shuffled([...runs, ...runs], SEED)) {
      const answer = await service.threadmill.fetch(new Request(`http://localhost${path}`, { method, headers, body }));
      expect([200, 202], `${path}: ${await answer.text()}`).toContain(answer.status);
    }
    expect(await stored()).toEqual(before);
  });
});
