import { afterAll, beforeAll, expect, it } from "vitest";
import { createProject, type TestProject } from "../support/project.ts";
import { startService, type TestService } from "../support/service.ts";
import { until } from "../support/until.ts";

const ROOT = "root-0123456789abcdef0123456789abcdef";

/** Sends the requests of its input to this server, one after the other, and keeps status and text of each. */
const AGENT = `
import { Annotation, StateGraph } from "@langchain/langgraph";
const send = globalThis[Symbol.for("langgraph_api:fetch")];
const url = globalThis[Symbol.for("langgraph_api:url")];
export const early = await send(url + "/ok").then(() => "answered", (error) => error.message);
const State = Annotation.Root({ requests: Annotation, answers: Annotation, early: Annotation });
export const graph = new StateGraph(State)
  .addNode("send", async ({ requests }) => {
    const answers = [];
    for (const { path, method, body, headers } of requests) {
      const response = await send(url + path, { method, headers, body: body && JSON.stringify(body) });
      answers.push([response.status, await response.text()]);
    }
    return { answers, early };
  })
  .addEdge("__start__", "send")
  .compile();
/** Never ends by itself. */
export const waits = new StateGraph(Annotation.Root({ x: Annotation }))
  .addNode("wait", (_, config) => new Promise((_, reject) => config.signal.addEventListener("abort", () => reject(config.signal.reason))))
  .addEdge("__start__", "wait")
  .compile();
`;

let project: TestProject;
let service: TestService;
beforeAll(async () => {
  const graphs = { agent: "./agent.mjs:graph", waits: "./agent.mjs:waits" };
  project = createProject({ "agent.mjs": AGENT, "langgraph.json": JSON.stringify({ graphs }) });
  service = await startService({ inline: false, database: "sqlite", config: project.config, env: { API_KEYS: ROOT } });
});
afterAll(async () => {
  await service.stop();
  project.drop();
});

const call = async (method: string, path: string, body?: object, key = ROOT) =>
  (await service.request(method, path, body, { "x-api-key": key })).body;
const sends = async (requests: object[], key?: string): Promise<{ answers: [number, string][]; early: string }> =>
  call("POST", "/runs/wait", { assistant_id: "agent", input: { requests } }, key);

it("requests of a graph have the caller of the run, whatever they contain", async () => {
  const { tenant_id } = await call("POST", "/admin/workspaces", { name: "other" });
  const { key } = await call("POST", "/admin/keys", { name: "k", tenant_id, user_id: "ada" });
  const { thread_id } = await call("POST", "/threads", { metadata: { mine: true } }, key);
  const get = { path: `/threads/${thread_id}` };
  expect((await sends([get], key)).answers).toMatchObject([[200, expect.stringContaining(thread_id)]]);
  // The administrator's run does not see another workspace's thread, nor with the key of one who does.
  const asOther = { ...get, headers: { "x-api-key": key, authorization: `Bearer ${key}`, "x-tenant-id": tenant_id } };
  expect((await sends([get, asOther])).answers.map(([status]) => status)).toEqual([404, 404]);
});

it("requests of a graph reach only the agent server, even in a run of an administrator", async () => {
  const paths = ["/admin/keys", "/v2/deployments", "/v2/auth/tokens", "/api/v1/sessions", "/sessions"];
  const { answers } = await sends(paths.map((path) => ({ path })));
  expect(answers.map(([status]) => status)).toEqual(paths.map(() => 403));
});

it("a body crosses both ways, and an empty one", async () => {
  const { answers } = await sends([
    { path: "/threads", method: "POST", body: { metadata: { text: "ü".repeat(30_000) } } },
    { path: "/runs/cancel", method: "POST", body: { status: "pending" } },
  ]);
  expect(JSON.parse(answers[0]?.[1] ?? "").metadata.text).toBe("ü".repeat(30_000));
  expect(answers[1]).toEqual([204, ""]);
});

it("a request outside of a run fails with an error that states what it needs", async () => {
  expect((await sends([])).early).toContain("works only during a run");
});

it("cancelling a run aborts its open requests", async () => {
  const { thread_id } = await call("POST", "/threads", {});
  const inner = { assistant_id: "waits", input: {}, on_disconnect: "cancel" };
  const requests = [{ path: `/threads/${thread_id}/runs/wait`, method: "POST", body: inner }];
  const outer = await call("POST", "/threads", {});
  const path = `/threads/${outer.thread_id}/runs`;
  const { run_id } = await call("POST", path, { assistant_id: "agent", input: { requests } });
  const statusOf = async () => (await call("GET", `/threads/${thread_id}/runs`))[0]?.status;
  await until("the inner run runs", async () => (await statusOf()) === "running");
  await service.request("POST", `${path}/${run_id}/cancel?wait=1`, undefined, { "x-api-key": ROOT });
  expect((await call("GET", `${path}/${run_id}`)).status).toBe("interrupted");
  await until("the inner run is cancelled", async () => (await statusOf()) === "interrupted");
});
