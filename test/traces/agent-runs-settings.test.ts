import { existsSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { readConfig } from "../../src/config/config.ts";
import { Scenario } from "../http/scenario.ts";
import { until } from "../support/until.ts";
import { TraceClient } from "./trace-client.ts";

const CONFIG = "test/graphs/traced/langgraph.json";
const ASK = { assistant_id: "agent", input: { messages: [{ type: "human", content: "when?" }] } };

describe("the default settings of traces of runs", () => {
  it("trace all runs with dev and a tenth with serve, unless configured otherwise", () => {
    const rateOf = (command: "dev" | "serve", env = {}) => readConfig(command, { config: CONFIG }, env).tracing_rate;
    expect([rateOf("dev"), rateOf("serve")]).toEqual([1, 0.1]);
    for (const command of ["dev", "serve"] as const)
      expect(["on", "off", "0.5"].map((value) => rateOf(command, { THREADMILL_TRACING: value }))).toEqual([1, 0, 0.5]);
  });
});

describe("the settings of traces of runs", () => {
  let api: Scenario;
  let traces: TraceClient;
  let stop: () => Promise<void>;
  const start = async (env: Record<string, string>, inline = false) => {
    api = await Scenario.start("sqlite", env, { config: CONFIG, tracing: true, inline });
    traces = new TraceClient(api.service);
    stop = () => api.stop();
  };
  afterEach(() => stop());

  const run = async (body: object = ASK) => {
    const created = await api.newRun(await api.newThread(), body);
    await api.join(created);
    return created.run_id as string;
  };
  const isTraced = async (run_id: string) => (await traces.get(`/runs/${run_id}`)).status === 200;
  const traced = (run_id: string) => until("the run is traced", () => isTraced(run_id));

  it("name the default project, and trace stateless runs, even with hosts on the serving thread", async () => {
    await start({ THREADMILL_TRACING_PROJECT: "all", THREADMILL_TRACE_STATELESS: "1" }, true);
    await traced(await run());
    const [{ run_id }] = await api.post("/runs/batch", [ASK]);
    await traced(run_id);
    expect(await traces.query({ session: [(await traces.session("all")).id], is_root: true })).toHaveLength(2);
  });

  it.each([
    ["off", []],
    ["0.000000001", []],
    ["on", ["langchain_tracer"]],
  ])("build a tracer in the host only for runs that are traced: %s", async (rate, expected) => {
    await start({ THREADMILL_TRACING: rate });
    const created = await api.newRun(await api.newThread(), { assistant_id: "handlers", input: {} });
    await api.join(created);
    expect((await api.state(created.thread_id)).values).toEqual({ handlers: expected });
  });

  it("trace a fraction of the runs, and all that request it", async () => {
    await start({ THREADMILL_TRACING: "0.5" });
    const ids = await Promise.all(Array.from({ length: 24 }, () => run()));
    await traced(await run({ ...ASK, langsmith_tracer: {} }));
    const found = (await Promise.all(ids.map(isTraced))).filter(Boolean).length;
    expect(found).toBeGreaterThan(0);
    expect(found).toBeLessThan(24);
  });

  it("turn traces off, even for runs that request one", async () => {
    await start({ THREADMILL_TRACING: "off" });
    await run({ ...ASK, langsmith_tracer: { project_name: "wanted" } });
    // The service stores the traces that wait before it stops.
    await api.service.threadmill.stop();
    stop = () => api.service.database.drop();
    expect(existsSync(join(api.service.config.data_dir, "experiments.db"))).toBe(false);
  });

  it("keep the tracing of a project to another server, with the whole tree on both", async () => {
    const names = new Set<string>();
    const server = createServer(async (request, response) => {
      let body = "";
      for await (const chunk of request) body += chunk;
      for (const [, name] of body.matchAll(/"name":"(agent|answer|search|FakeListChatModel)"/g))
        names.add(name as string);
      const info = { batch_ingest_config: { use_multipart_endpoint: true, size_limit_bytes: 1e6 } };
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(info));
    }).listen(0, "127.0.0.1");
    try {
      await until("the server listens", async () => server.listening);
      const LANGSMITH_ENDPOINT = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      await start({
        LANGSMITH_TRACING: "true",
        LANGSMITH_ENDPOINT,
        LANGSMITH_API_KEY: "k",
        LANGSMITH_PROJECT: "theirs",
      });
      const run_id = await run();
      await traced(run_id);
      const expected = ["FakeListChatModel", "agent", "answer", "search"];
      await until("the other server has the tree", async () => names.size === expected.length);
      const { child_run_ids, session_id } = await traces.read(run_id);
      expect(child_run_ids).toHaveLength(3);
      expect(session_id).toBe((await traces.session("agent")).id);
    } finally {
      server.close();
    }
  });
});
