import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { text as textOf } from "node:stream/consumers";
import { loadAllYaml } from "@kubernetes/client-node";
import { sql } from "kysely";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ADMIN } from "../http/callers.ts";
import { UNKNOWN_ID } from "../http/scenario.ts";
import { databases } from "../support/databases.ts";
import { openStream } from "../support/open-stream.ts";
import { execute } from "../support/postgres.ts";
import type { ServerProcess } from "../support/process.ts";
import { createProject, type TestProject } from "../support/project.ts";
import { startService, type TestService } from "../support/service.ts";
import { openOn } from "../support/storage.ts";
import { until } from "../support/until.ts";
import { startReceiver } from "../support/webhook-receiver.ts";
import { sharing } from "./sharing.ts";
import { type Created, create, pathOf, pidsOf, read } from "./steps.ts";

const CONFIG = "test/graphs/shared/langgraph.json";
const KEDA = "deploy/kubernetes/keda.yaml";
const KEYS = { API_KEYS: ADMIN["X-Api-Key"] };
const LOGS = ["--log-level", "info"];
const RARE_POLL_MS = 60_000;

/** Roles need Postgres. */
describe.runIf(databases.includes("postgres"))("processes with different roles", () => {
  const shared = sharing("postgres");
  const start = (role: "api" | "worker", flags: string[] = []) => shared.start(CONFIG, {}, ["--role", role, ...flags]);
  const open = (file: string) => writeFileSync(shared.gate(file), "");
  const get = async ({ url }: ServerProcess, path: string) => (await fetch(`${url}${path}`)).json();
  const post = async ({ url }: ServerProcess, path: string, body: object): Promise<Response> =>
    fetch(`${url}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  const inStep = async (api: ServerProcess, run: Created, step: string, pid?: number) => {
    const stream = read(api, run);
    await stream.until((events) => events.some(({ data }) => data.step === step && (!pid || data.pid === pid)));
    return stream;
  };

  it("create and stream a run through the API, and execute it in the worker", async () => {
    const [api, worker] = await Promise.all([start("api"), start("worker")]);
    const run = await create(api, { gates: { b: shared.gate("go") } });
    const stream = await inStep(api, run, "b");
    expect(await get(api, pathOf(run))).toMatchObject({ status: "running" });
    open("go");
    const events = await stream.rest();
    expect(events.map(({ id }) => id)).toEqual(events.map((_, i) => String(i + 1)));
    expect(await pidsOf(api, run)).toEqual([1, 2, 3].map(() => worker.child.pid));
  });

  it("pass events on although they poll every minute", { timeout: RARE_POLL_MS / 2 }, async () => {
    const as = (role: "api" | "worker") =>
      startService({
        ...{ database: "postgres", on: shared.database(), command: "serve", config: CONFIG },
        env: { THREADMILL_ROLE: role, THREADMILL_SHARE_DATA: "1" },
        intervals: { poll_ms: RARE_POLL_MS },
      });
    const [api, worker] = await Promise.all([as("api"), as("worker")]);
    try {
      for (let i = 0; i < 10; i++) {
        const body = { assistant_id: "steps", input: {}, stream_mode: ["custom"] };
        const stream = await openStream(api, "/runs/stream", {}, body);
        await stream.until((events) => events.some(({ event }) => event === "custom"));
        await stream.rest();
      }
    } finally {
      await Promise.all([api, worker].map(({ threadmill }) => threadmill.stop()));
    }
  });

  it("serve what needs a graph in the API, which loads no graph for runs", async () => {
    const [api] = await Promise.all([start("api"), start("worker")]);
    const run = await create(api, {});
    expect(await pidsOf(api, run)).toHaveLength(3);
    expect(await get(api, `/threads/${run.thread_id}/state`)).toMatchObject({ next: [] });
    expect(await (await post(api, `/threads/${run.thread_id}/history`, {})).json()).toHaveLength(5);
    const [{ assistant_id }] = (await (await post(api, "/assistants/search", { graph_id: "steps" })).json()) as [
      { assistant_id: string },
    ];
    expect(await get(api, `/assistants/${assistant_id}/graph`)).toMatchObject({ nodes: expect.any(Array) });
    expect(await get(api, `/assistants/${assistant_id}/schemas`)).toMatchObject({ graph_id: "steps" });
  });

  it("cancel a run of a worker through the API", async () => {
    const [api] = await Promise.all([start("api"), start("worker")]);
    const run = await create(api, { gates: { a: shared.gate("never") } });
    await inStep(api, run, "a");
    const began = performance.now();
    expect((await post(api, `${pathOf(run)}/cancel?wait=true`, {})).status).toBe(204);
    expect(performance.now() - began).toBeLessThan(1_000);
    expect(await get(api, pathOf(run))).toMatchObject({ status: "interrupted" });
  });

  it("send the webhooks of a worker's runs from the API", async () => {
    const config = "test/graphs/shared/webhooks.json";
    const as = (role: string) => shared.start(config, { LG_WEBHOOK_PROCESS: role }, ["--role", role]);
    const [api] = await Promise.all([as("api"), as("worker")]);
    const receiver = await startReceiver();
    try {
      await post(
        api,
        "/runs/batch",
        Array(10).fill({ assistant_id: "steps", input: {}, webhook: receiver.at("runs") }),
      );
      await receiver.nth("runs", 10);
      const senders = receiver.of("runs").map(({ headers }) => headers["x-process"]);
      expect(new Set(senders)).toEqual(new Set(["api"]));
    } finally {
      await receiver.close();
    }
  });

  it("continue the runs of a worker that was killed in another worker", async () => {
    const [api, first] = await Promise.all([start("api"), start("worker")]);
    const run = await create(api, { gates: { b: shared.gate("go") } });
    const stream = await inStep(api, run, "b");
    const second = await start("worker");
    first.child.kill("SIGKILL");
    await stream.until((events) => events.some(({ data }) => data.step === "b" && data.pid === second.child.pid));
    open("go");
    const events = await stream.rest();
    expect(events.map(({ id }) => id)).toEqual(events.map((_, i) => String(i + 1)));
    expect(await pidsOf(api, run)).toEqual([first.child.pid, second.child.pid, second.child.pid]);
  });

  it("apply a cancel in the API if the worker has died and there is no other", async () => {
    const [api, worker] = await Promise.all([start("api"), start("worker")]);
    const run = await create(api, { gates: { b: shared.gate("never") } });
    await inStep(api, run, "b");
    worker.child.kill("SIGKILL");
    await worker.ended;
    expect((await post(api, `${pathOf(run)}/cancel?wait=true`, {})).status).toBe(204);
    expect(await get(api, `/threads/${run.thread_id}/state`)).toMatchObject({ values: { pids: [worker.child.pid] } });
  });

  it("keep runs and those of crons pending without a worker, with a warning and metrics, until one starts", async () => {
    const api = await start("api", LOGS);
    const run = await create(api, {});
    const cron = { assistant_id: "steps", schedule: "0 0 1 1 *", input: {}, on_run_completed: "keep" };
    const { cron_id } = (await (await post(api, "/runs/crons", cron)).json()) as { cron_id: string };
    const storage = openOn(shared.database());
    await storage.write((tx) => tx.run(sql`update crons set next_at = now_ms()`.compile(tx.k)));
    await storage.close();
    // Wakes the scheduler.
    await post(api, "/runs/crons", { ...cron, enabled: false });
    const metrics = async () => (await fetch(`${api.url}/metrics`)).text();
    await until("both runs are pending", async () =>
      (await metrics()).includes('threadmill_runs{status="pending"} 2\n'),
    );
    await until("the log names the problem", async () =>
      api.output().includes("runs are waiting, but no process is executing runs: start a worker"),
    );
    expect(await get(api, pathOf(run))).toMatchObject({ status: "pending" });
    const [scaled] = loadAllYaml(readFileSync(KEDA, "utf8")) as {
      spec?: { triggers: { metadata: { query: string } }[] };
    }[];
    const [counted] = await execute(
      shared.database().url as string,
      scaled?.spec?.triggers[0]?.metadata.query as string,
    );
    expect(counted).toEqual({ count: "2" });

    const worker = await start("worker", LOGS);
    expect(await pidsOf(api, run)).toEqual([1, 2, 3].map(() => worker.child.pid));
    await until("the log says that it is solved", async () => api.output().includes("runs are executed again"));
    const threads = (await (await post(api, "/threads/search", { metadata: { cron_id } })).json()) as Created[];
    expect(threads).toHaveLength(1);
    expect(worker.output()).not.toContain("cron run created");
  });
});

const APP = `
import { Hono } from "hono";
export const app = new Hono()
  .use("*", async (c, next) => { await next(); c.header("x-of-the-project", "1"); })
  .get("/metrics", (c) => c.text("of the project"))
  .get("/found", (c) => c.json(["found"]));
`;

const GRAPH = `
import { Annotation, StateGraph } from "@langchain/langgraph";
const fetch = globalThis[Symbol.for("langgraph_api:fetch")];
export const graph = new StateGraph(Annotation.Root({ found: Annotation() }))
  .addNode("look", async () => ({ found: await (await fetch("http://localhost/found")).json() }))
  .addEdge("__start__", "look").addEdge("look", "__end__").compile();
`;

const LANGGRAPH = { graphs: { look: "./graph.mjs:graph" }, http: { app: "./app.mjs:app" } };

describe.runIf(databases.includes("postgres"))("a worker", () => {
  let project: TestProject;
  let worker: TestService;
  let url: string;
  const as = (role: "api" | "worker") => ({
    database: "postgres" as const,
    command: "serve" as const,
    config: project.config,
    env: { ...KEYS, THREADMILL_ROLE: role },
  });
  beforeAll(async () => {
    const files = { "langgraph.json": JSON.stringify(LANGGRAPH), "graph.mjs": GRAPH, "app.mjs": APP };
    project = createProject(files);
    worker = await startService(as("worker"));
    url = await worker.listen();
  });
  afterAll(async () => {
    await worker.stop();
    project.drop();
  });

  /** Sends a request line as it is. */
  const raw = async (line: string, headers: Record<string, string> = {}): Promise<string> => {
    const { port } = new URL(url);
    const socket = connect(Number(port), "127.0.0.1");
    await once(socket, "connect");
    const fields = { host: "localhost", connection: "close", ...ADMIN, ...headers };
    const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}`);
    socket.end(`${line} HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n`);
    return textOf(socket);
  };

  it("serves its health without a key, and its metrics to administrators", async () => {
    const health = await fetch(`${url}/ok?check_db=1`);
    expect([health.status, await health.json()]).toEqual([200, { ok: true }]);
    expect((await fetch(`${url}/metrics`)).status).toBe(401);
    const metrics = await fetch(`${url}/metrics`, { headers: ADMIN });
    expect(metrics.headers.get("x-of-the-project")).toBeNull();
    expect(await metrics.text()).toContain('threadmill_runs{status="running"} 0');
  });

  it("refuses all other routes, for administrators too", async () => {
    const { routes } = worker.threadmill;
    expect(routes.length).toBeGreaterThan(300);
    for (const { method, path } of routes.filter((route) => route.method !== "ALL")) {
      if (method === "GET" && (path === "/ok" || path === "/metrics")) continue;
      const sent = path.replaceAll(/:\w+(\{[^}]*\})?/g, UNKNOWN_ID);
      const { status, body } = await worker.request(method, sent, undefined, ADMIN);
      expect([status, JSON.stringify(body)], `${method} ${sent}`).toEqual([
        404,
        expect.stringContaining(
          `This process has the role \\"worker\\" and serves only GET /ok and GET /metrics: send ${method} `,
        ),
      ]);
    }
  });

  it.each([
    "GET /found",
    "GET /app",
    "GET /docs",
    "GET //ok",
    "GET /ok/",
    "GET /ok/../threads/search",
    "GET /ok%2f..%2fmetrics/x",
    "GET /metrics/../info",
    "GET /METRICS",
    "POST /ok",
    "OPTIONS /ok",
    "DELETE /metrics",
    "GET http://localhost/info",
    "GET /deployments/any/ok",
    "POST /internal/traces/wait",
    "GET /threads/00000000-0000-4000-8000-000000000000/stream/events",
  ])("refuses %s", async (line) => {
    expect(await raw(line)).toMatch(/^HTTP\/1\.1 404 /);
  });

  it("opens no WebSocket, and has no deployments below its name", async () => {
    const upgrade = { connection: "Upgrade", upgrade: "websocket", "sec-websocket-version": "13" };
    const socket = { ...upgrade, "sec-websocket-key": Buffer.alloc(16).toString("base64") };
    const path = `/threads/${UNKNOWN_ID}/stream/events`;
    expect(await raw(`GET ${path}`, socket)).toMatch(/^HTTP\/1\.1 404 [\s\S]*role \\"worker\\"/);
    expect(await raw("GET /ok", socket)).not.toMatch(/^HTTP\/1\.1 101 /);
    expect(await raw("GET /threads", { host: "any.localhost" })).toMatch(/^HTTP\/1\.1 404 [\s\S]*role \\"worker\\"/);
  });

  it("serves them below the path prefix of all routes, if there is one", async () => {
    const given = as("worker");
    const other = await startService({ ...given, on: worker.database, env: { ...given.env, MOUNT_PREFIX: "/agents" } });
    const at = (path: string) => other.request("GET", path, undefined, ADMIN);
    try {
      expect([(await at("/agents/ok")).status, (await at("/agents/metrics")).status]).toEqual([200, 200]);
      expect((await at("/ok")).body.detail).toContain(
        "serves only GET /agents/ok and GET /agents/metrics: send GET /ok",
      );
      expect((await at("/agents/info")).status).toBe(404);
    } finally {
      await other.threadmill.stop();
    }
  });

  it("lets its graphs call the routes of the project", async () => {
    const api = await startService({ ...as("api"), on: worker.database });
    try {
      const body = { assistant_id: "look", input: {} };
      expect((await api.request("POST", "/runs/wait", body, ADMIN)).body).toEqual({ found: ["found"] });
    } finally {
      await api.threadmill.stop();
    }
  });
});
