import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it } from "vitest";
import { traceStoreIn } from "../../src/app/compose/engine.ts";
import { experimentsOptions } from "../../src/app/compose/open-data.ts";
import { traceCollector } from "../../src/control-plane/reconcile/trace-collector.ts";
import { createExperimentsService } from "../../src/experiments/worker/experiments-service.ts";
import { DEFAULT_TENANT } from "../../src/platform/contract/caller.ts";
import { realWait } from "../../src/platform/lib/clock.ts";
import { createLog } from "../../src/platform/lib/log.ts";
import { startService } from "../support/service.ts";
import { run, TraceClient } from "../traces/trace-client.ts";

const log = createLog("silent");

it("what an instance reports is checked, and an invalid entry does not delay the next one", async () => {
  const service = await startService({ database: "sqlite", config: "examples/langgraph.json" });
  const experiments = createExperimentsService(experimentsOptions(service.config, log));
  const [kept, deleted] = [run(), run({ end_time: undefined, outputs: undefined })];
  const end = { run_id: deleted.id, name: "a", session_name: "traces", started_at: 0, open_error: "lost" };
  const entries: [kind: string, body: string, result: string][] = [
    ["runs", "{", "refused"],
    ["end", JSON.stringify({ ...end, session_name: "" }), "refused"],
    ["end", JSON.stringify({ ...end, started_at: 1e300 }), "refused"],
    ["end", `{"__proto__":{}}`, "refused"],
    ["delete", JSON.stringify([kept.id, "x"]), "refused"],
    ["unknown", "{}", "refused"],
    ["runs", JSON.stringify({ post: [kept, deleted] }), "stored"],
    ["end", JSON.stringify({ ...end, error: "NUL \0 \ud800" }), "stored"],
    ["delete", JSON.stringify([deleted.id]), "stored"],
  ];
  const results: string[] = [];
  const finished = new AbortController();
  const instance = createServer(({ url = "" }, response) => {
    const [[result, id] = []] = new URL(url, "http://instance").searchParams;
    if (result && Number(id) === results.length) results.push(result);
    const entry = entries[results.length];
    if (!entry) return finished.abort();
    response.writeHead(200, { "x-trace-entry": String(results.length), "x-trace-kind": entry[0] }).end(entry[1]);
  });
  await once(instance.listen(0, "127.0.0.1"), "listening");
  const address = `http://127.0.0.1:${(instance.address() as AddressInfo).port}`;
  const source = { instance_id: "one", deployment_id: "one", tenant_id: DEFAULT_TENANT, address, api_key: "key" };
  const wait = (ms: number, signal: AbortSignal) => realWait(Math.min(ms, 10), signal);
  const collect = traceCollector({ traces: traceStoreIn(service.config, experiments), wait, log });
  await collect(source, finished.signal);
  expect(results).toEqual(entries.map(([, , result]) => result));
  const client = new TraceClient(service);
  expect(await client.read(kept.id)).toMatchObject({ status: "success" });
  expect((await client.get(`/runs/${deleted.id}`)).status).toBe(404);
  instance.closeAllConnections();
  instance.close();
  await experiments.stop();
  await service.stop();
});

it.each([
  ["200 to every request", 200, 60_000],
  ["204 at once", 204, 1_000],
])("an instance with another server, which answers %s, is asked at intervals", async (_, status, interval_ms) => {
  const server = createServer((_, response) => response.writeHead(status).end());
  await once(server.listen(0, "127.0.0.1"), "listening");
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const source = { instance_id: "one", deployment_id: "one", tenant_id: DEFAULT_TENANT, address, api_key: "key" };
  const finished = new AbortController();
  const waits: number[] = [];
  let requests = 0;
  server.on("request", () => {
    requests += 1;
    if (requests > 10) finished.abort();
  });
  const wait = async (ms: number) => {
    if (waits.push(ms) === 3) finished.abort();
  };
  const traces = {} as Parameters<typeof traceCollector>[0]["traces"];
  await traceCollector({ traces, wait, log })(source, finished.signal);
  expect({ waits, requests }).toEqual({ waits: Array(3).fill(interval_ms), requests: 3 });
  server.closeAllConnections();
  server.close();
});
