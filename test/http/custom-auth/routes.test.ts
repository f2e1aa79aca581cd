import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { appRunRoutes } from "../../../src/agent-server/contract/app-runs.ts";
import { appThreadRoutes } from "../../../src/agent-server/contract/app-threads.ts";
import { agentServerRoutes } from "../../../src/agent-server/contract/routes.ts";
import { databases } from "../../support/databases.ts";
import type { Answer } from "../../support/service.ts";
import { until } from "../../support/until.ts";
import { AUTH_CONFIG, Scenario, type Wire } from "../scenario.ts";

const { system: _, ui: __, ...agents } = agentServerRoutes;
const ROUTES = { ...agents, app_runs: appRunRoutes, app_threads: appThreadRoutes };
type Groups = typeof ROUTES;
type RouteName = { [G in keyof Groups]: keyof Groups[G] }[keyof Groups];

type Headers = Record<string, string>;
const bearer = (name: string): Headers => ({ authorization: `Bearer ${name}` });

/**
 * What a request of the user bob about records of alice gets. `hidden`: a success that shows and changes nothing of hers; 200: an error in a
 * successful response.
 */
type Outcome = 200 | 404 | 426 | 409 | "hidden";

interface Case {
  outcome: Outcome;
  query?: string;
  body?: (ids: Ids) => unknown;
  /** Waits for an active run, instead of an ended one. */
  active?: true;
}

type Ids = Record<"thread_id" | "run_id" | "assistant_id" | "cron_id" | "checkpoint_id" | "door", string>;

const run = ({ assistant_id }: Ids) => ({ assistant_id, input: { steps: [] } });
const onOwnAssistant = () => ({ assistant_id: "chain", input: { steps: [] } });
const cron = () => ({ assistant_id: "chain", schedule: "0 9 * * *", input: { steps: [] } });
const item = () => ({ namespace: ["notes"], key: "k", value: { of: "bob" } });
const nothing = () => ({});
const found = (outcome: Outcome = 404): Case => ({ outcome });
const missing = (body: Case["body"], outcome: Outcome = 404): Case => ({ outcome, body });

/** A request for every route. A route that is not here does not compile. */
const CASES: Record<RouteName, Case> = {
  createAssistant: missing(({ assistant_id }) => ({ graph_id: "chain", assistant_id, if_exists: "do_nothing" }), 409),
  searchAssistants: missing(nothing, "hidden"),
  countAssistants: missing(() => ({ name: "of alice" }), "hidden"),
  getAssistant: found(),
  patchAssistant: missing(() => ({ name: "of bob" })),
  deleteAssistant: { outcome: 404, query: "?delete_threads=true" },
  getAssistantGraph: found(),
  getAssistantSchemas: found(),
  getAssistantSubgraphs: found(),
  getAssistantSubgraphsAt: found(),
  listAssistantVersions: missing(nothing),
  setLatestAssistantVersion: missing(() => ({ version: 1 })),
  createThread: missing(({ thread_id }) => ({ thread_id, if_exists: "do_nothing" }), 409),
  searchThreads: missing(({ thread_id }) => ({ ids: [thread_id] }), "hidden"),
  countThreads: missing(nothing, "hidden"),
  pruneThreads: missing(({ thread_id }) => ({ thread_ids: [thread_id] }), "hidden"),
  getThread: found(),
  getThreadStorage: found(),
  patchThread: missing(() => ({ metadata: { a: 1 } })),
  deleteThread: found(),
  copyThread: missing(nothing, 409),
  streamThread: found(),
  sendCommand: missing(() => ({ id: 1, method: "state.get" }), 200),
  streamEvents: missing(() => ({ channels: ["values"], since: 0 })),
  openSocket: found(426),
  getThreadState: found(),
  getThreadStateAt: found(),
  getThreadStateAtCheckpoint: missing(() => ({ checkpoint: {} })),
  updateThreadState: missing(() => ({ values: { steps: ["x"] } })),
  getThreadHistory: found(),
  postThreadHistory: missing(nothing),
  createRun: missing(() => ({ ...onOwnAssistant(), if_not_exists: "create" })),
  createRunStream: missing(onOwnAssistant),
  createRunWait: missing(onOwnAssistant),
  listRuns: found(),
  getRun: found(),
  deleteRun: found(),
  joinRun: found(),
  joinRunStream: found(),
  cancelRun: { outcome: 404, body: nothing, active: true },
  cancelRuns: { outcome: "hidden", body: () => ({ status: "all" }), active: true },
  createStatelessRun: missing(run),
  createStatelessRunStream: missing(run),
  createStatelessRunWait: missing(run),
  createRunBatch: missing((ids) => [onOwnAssistant(), run(ids)]),
  joinStatelessRun: found(),
  joinStatelessRunStream: found(),
  createCron: missing(({ assistant_id }) => ({ ...cron(), assistant_id })),
  createThreadCron: missing(cron),
  searchCrons: missing(nothing, "hidden"),
  countCrons: missing(nothing, "hidden"),
  getCron: found(),
  patchCron: missing(() => ({ enabled: false })),
  deleteCron: found(),
  listWebhookDeliveries: { outcome: "hidden", query: "?limit=1000" },
  redeliverWebhook: missing(nothing),
  putItem: missing(item, "hidden"),
  getItem: { outcome: "hidden", query: "?namespace=notes&key=k" },
  deleteItem: missing(() => ({ namespace: ["notes"], key: "k" }), "hidden"),
  searchItems: missing(() => ({ namespace_prefix: [] }), "hidden"),
  listNamespaces: missing(nothing, "hidden"),
  runAgent: missing(({ thread_id }) => ({ threadId: thread_id, runId: "r" })),
  callAgent: missing(({ thread_id }) => ({
    jsonrpc: "2.0",
    id: 1,
    method: "SendMessage",
    params: { message: { messageId: "m", contextId: thread_id, role: "ROLE_USER", parts: [{ text: "hi" }] } },
  })),
  findAgentCard: { outcome: 404, query: "?assistant_id={assistant_id}" },
  getAgentCard: found(),
  listAllRuns: found("hidden"),
  getRunPreviews: { outcome: "hidden", query: "?run_id={run_id}" },
  getRunThroughput: found("hidden"),
  getRunMonitoring: found("hidden"),
  searchThreadsByText: missing(() => ({ text: "alice" }), "hidden"),
  countThreadsByText: missing(() => ({ text: "alice" }), "hidden"),
};

/** Requests that would change the records for others, or need other records. */
const OWN_RECORDS =
  /^(delete|prune|cancel|createRun|runAgent|callAgent|\w+AgentCard|updateThreadState|getAssistantSchemas|patchAssistant|searchItems|listNamespaces)/;

/** Requests whose responses contain nothing of the records. */
const SHOWS_NOTHING: RouteName[] = ["pruneThreads", "cancelRuns", "putItem", "deleteItem", "getRunThroughput"];

const ALL = Object.values(ROUTES).flatMap((group) =>
  Object.entries(group as Record<string, { method: string; path: string }>).map(
    ([name, { method, path }]) => [name as RouteName, method.toUpperCase() as "GET", path] as const,
  ),
);

describe.each(databases)("a user of an authentication handler on %s", (database) => {
  let api: Scenario;
  let shared: Ids;
  const alice = bearer("alice");
  const bob = bearer("bob");

  beforeAll(async () => {
    api = await Scenario.start(database, {}, { config: AUTH_CONFIG });
    shared = await fill("getThread");
  });
  afterAll(() => api.stop());

  const call = (method: "GET" | "POST" | "PUT", path: string, body?: unknown): Promise<Wire> =>
    api.call(method, path, body, alice);

  /** Records of alice, one of each kind. */
  async function fill(name: RouteName): Promise<Ids> {
    const { active } = CASES[name];
    // The schemas of other graphs are read from their TypeScript types, which takes seconds.
    const other = /callAgent|AgentCard/.test(name) ? "talk" : "chain";
    const graph_id = name === "getAssistantSchemas" ? "zod" : active ? "slow" : other;
    const { assistant_id } = await call("POST", "/assistants", { graph_id, name: "of alice" });
    const { thread_id } = await call("POST", "/threads", { metadata: { owner: "mallory" } });
    const door = api.newDoor();
    const webhook = "https://hooks.invalid";
    const input = { steps: ["alice"], topic: "alice", messages: ["alice"], ...(active && { door: door.path }) };
    const { run_id } = await call("POST", `/threads/${thread_id}/runs`, { assistant_id, input, webhook });
    if (active)
      await until("the run waits", async () => (await call("GET", `/threads/${thread_id}/state`)).next[0] === "wait");
    else await call("GET", `/threads/${thread_id}/runs/${run_id}/join`);
    const { checkpoint } = await call("GET", `/threads/${thread_id}/state`);
    const { cron_id } = await call("POST", "/runs/crons", { ...cron(), assistant_id });
    await call("PUT", "/store/items", { namespace: ["notes"], key: "k", value: { of: "alice" } });
    return { assistant_id, thread_id, run_id, cron_id, checkpoint_id: checkpoint.checkpoint_id, door: door.path };
  }

  /** What alice sees of her records. */
  const snapshot = ({ thread_id, assistant_id, cron_id }: Ids) =>
    Promise.all(
      [
        ...[`/threads/${thread_id}`, `/threads/${thread_id}/runs`, `/threads/${thread_id}/state`],
        ...[`/assistants/${assistant_id}`, `/runs/crons/${cron_id}`, "/store/items?namespace=notes&key=k"],
      ].map((path) => call("GET", path)),
    );

  const send = (headers: Headers, method: "GET", path: string, { query = "", body }: Case, ids: Ids) => {
    const filled = `${path}${query}`.replaceAll(/\{(\w+)\}/g, (_, name) => ids[name as keyof Ids] ?? "none");
    return api.send(method, filled, body?.(ids), headers);
  };

  const isHidden = ({ status, body, text }: Answer, { door: _, ...ids }: Ids) =>
    status < 300 && Object.values(ids).every((id) => !text.includes(id)) && !/alice/.test(text) && !(Number(body) > 0);

  it.each(ALL)("gets nothing of another user at %s", async (name, method, path) => {
    const one = CASES[name];
    const ids = OWN_RECORDS.test(name) ? await fill(name) : shared;
    const before = await snapshot(ids);
    const answer = await send(bob, method, path, one, ids);
    if (one.outcome === "hidden") expect([answer.text, isHidden(answer, ids)]).toEqual([answer.text, true]);
    else expect([answer.status, answer.text]).toEqual([one.outcome, expect.not.stringContaining("alice")]);
    expect(await snapshot(ids)).toEqual(before);
    // Streams of threads never end, and the request opens no WebSocket.
    if (name === "streamThread" || name === "streamEvents" || name === "openSocket") return;
    const own = await send(alice, method, path, one, ids);
    expect([own.status, own.text]).toEqual([expect.toSatisfy((status) => status < 300), expect.any(String)]);
    if (one.outcome === "hidden" && !SHOWS_NOTHING.includes(name)) expect(isHidden(own, ids)).toBe(false);
    if (one.active) await until("the run has ended", async () => (await snapshot(ids))[1][0].status !== "running");
  });
});
