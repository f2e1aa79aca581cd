import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import type { Intervals } from "../../src/config/config.ts";
import { databases } from "../support/databases.ts";
import { createProject, oneNodeGraph } from "../support/project.ts";
import { startService, type TestService } from "../support/service.ts";
import { readUntil } from "../support/stream.ts";
import { until } from "../support/until.ts";

const CONFIG = "test/graphs/hosts/langgraph.json";
const GOOD = { assistant_id: "steps", input: { items: [] } };

describe.each(databases)("graph hosts that hang or exit on %s", (database) => {
  let service: TestService;
  const start = async (env: Record<string, string> = {}, intervals: Partial<Intervals> = {}) => {
    service = await startService({ inline: false, database, config: CONFIG, env, intervals });
  };
  afterEach(() => service.stop());

  const create = async (assistant_id: string, input: object): Promise<{ thread_id: string; run_id: string }> => {
    const { thread_id } = (await service.request("POST", "/threads", {})).body;
    return (await service.request("POST", `/threads/${thread_id}/runs`, { assistant_id, input, stream_mode: "custom" }))
      .body;
  };
  const join = ({ thread_id, run_id }: { thread_id: string; run_id: string }) =>
    service.request("GET", `/threads/${thread_id}/runs/${run_id}/join`);
  const statusOf = async ({ thread_id, run_id }: { thread_id: string; run_id: string }) =>
    (await service.request("GET", `/threads/${thread_id}/runs/${run_id}`)).body.status;

  it("a node that blocks its thread delays no request, no state read and no new run", async () => {
    await start({}, { host_silent_ms: 300 });
    const blocked = await create("blocks", { ms: 10_000, items: [] });
    await readUntil(service, blocked, ({ event }) => event === "custom");
    const began = performance.now();
    const other = (await service.request("POST", "/runs/wait", GOOD)).body;
    expect(other.items).toEqual(["a", "b", "c"]);
    expect((await service.request("GET", "/ok")).status).toBe(200);
    expect((await service.request("GET", `/threads/${blocked.thread_id}/state`)).status).toBe(200);
    // It answered while the first host was still blocked.
    expect(await statusOf(blocked)).toBe("running");
    expect(performance.now() - began).toBeLessThan(9_500);
    expect((await join(blocked)).body.items).toEqual(["blocked"]);
  });

  it("a node that exhausts its heap ends its own run with an error; its neighbours succeed", async () => {
    // It blocks its host from the first moment on, which must not send it to the next one as a run that has not started.
    await start({ THREADMILL_HOST_MEMORY: "128MiB" }, { host_silent_ms: 100 });
    const neighbour = await create("steps", { ms: 300, items: [] });
    const culprit = await create("eats", { items: [] });
    expect((await join(culprit)).body.__error__.message).toContain("out of memory (heap limit 128 MB)");
    expect((await join(neighbour)).body.items).toEqual(["a", "b", "c"]);
    // V8 collects in vain before it gives up, three times: 5 s, but more where others want the same cores.
  }, 120_000);

  it("a host that hangs for too long is ended, and its run with it after three attempts", async () => {
    await start({ THREADMILL_HOST_TIMEOUT: "2500ms" }, { host_silent_ms: 500 });
    const culprit = await create("blocks", { ms: 60_000, items: [] });
    expect((await join(culprit)).body.__error__.message).toContain("no response for 2500 ms");
    expect((await service.request("POST", "/runs/wait", GOOD)).body.items).toEqual(["a", "b", "c"]);
  });
});

it("a route of the HTTP app that blocks its thread delays no other request, and its host is replaced", async () => {
  const app = `export const app = (request) => { while (request.url.endsWith("/blocks")); return new Response("fine"); };`;
  const langgraph = { graphs: { agent: "./agent.mjs:graph" }, http: { app: "./app.mjs:app" } };
  const files = { "agent.mjs": oneNodeGraph("one"), "app.mjs": app, "langgraph.json": JSON.stringify(langgraph) };
  const project = createProject(files);
  const env = { THREADMILL_HOST_TIMEOUT: "1s" };
  const service = await startService({ inline: false, database: "sqlite", config: project.config, env });
  const blocked = service.request("GET", "/blocks");
  expect((await service.request("POST", "/runs/wait", { assistant_id: "agent", input: {} })).body).toEqual({
    answer: "one",
  });
  expect(await Promise.race([blocked, "blocked"])).toBe("blocked");
  const { status, body } = await blocked;
  expect([status, body.detail]).toEqual([502, expect.stringContaining("Its graph host ended.")]);
  expect((await service.request("GET", "/next")).text).toBe("fine");
  await service.stop();
  project.drop();
});

it("a host of reads that exits after a reload takes no request of its successor with it", async () => {
  const graphs = `import { writeFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { graph } from "./agent.mjs";
export const exits = async () => { writeFileSync(new URL("begun", import.meta.url), ""); await pause(1_000); process.exit(3); };
export const slow = async () => { await pause(2_000); return graph; };`;
  const langgraph = { graphs: { exits: "./graphs.mjs:exits", slow: "./graphs.mjs:slow" } };
  const files = { "agent.mjs": oneNodeGraph("one"), "graphs.mjs": graphs, "langgraph.json": JSON.stringify(langgraph) };
  const project = createProject(files);
  const service = await startService({ inline: false, database: "sqlite", config: project.config });
  expect(await service.threadmill.loaded).toEqual({});
  const lost = service.request("GET", "/assistants/exits/graph");
  await until("the old host has begun", async () => existsSync(join(project.folder, "begun")));
  const reloaded = service.threadmill.reload(service.config);
  const next = service.request("GET", "/assistants/slow/graph");
  expect((await lost).status).toBe(503);
  expect((await next).text).toContain("nodes");
  await reloaded;
  await service.stop();
  project.drop();
});
