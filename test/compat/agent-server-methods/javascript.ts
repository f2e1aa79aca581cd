import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { RemoteGraph } from "@langchain/langgraph/remote";
import { Client } from "@langchain/langgraph-sdk";
import { Client as Client2 } from "langgraph-sdk-2";
import { type CallResults, callAll, methodOf } from "../methods/outcomes.ts";
import { fieldsOf, type SentRequest } from "../methods/sent-fields.ts";

// biome-ignore lint/suspicious/noExplicitAny: two versions of a client, and answers of every shape
type Anything = any;
/** What calls leave for those after them. */
type World = Record<string, Anything>;
type Call = (client: Anything, world: World) => unknown;

const packageVersion = (name: string): string =>
  (JSON.parse(readFileSync(`node_modules/${name}/package.json`, "utf8")) as { version: string }).version;

type Calls = Record<string, Call>;
type OnRequest = (url: URL, init: RequestInit) => RequestInit;

interface ClientUnderTest {
  version: string;
  create: (apiUrl: string, onRequest?: OnRequest) => Anything;
  calls: () => Calls;
}

/** A failing call is not repeated. */
const callerOptions = { maxRetries: 0 };

/** The clients by their name in the table. */
export const CLIENTS: Record<string, ClientUnderTest> = {
  javascript: {
    version: packageVersion("@langchain/langgraph-sdk"),
    create: (apiUrl, onRequest) => new Client({ apiUrl, callerOptions, onRequest }),
    calls: () => ({ ...CALLS, ...REFUSED_OPTIONS }),
  },
  javascript_2: {
    version: packageVersion("langgraph-sdk-2"),
    create: (apiUrl, onRequest) => new Client2({ apiUrl, callerOptions, onRequest }),
    calls: () => ({ ...CALLS, ...REFUSED_OPTIONS }),
  },
  javascript_remote_graph: {
    version: packageVersion("@langchain/langgraph"),
    create: (apiUrl, onRequest) =>
      new RemoteGraph({ graphId: "agent", client: new Client({ apiUrl, callerOptions, onRequest }) }),
    calls: () => REMOTE_GRAPH_CALLS,
  },
};

const SCHEDULE = {
  schedule: "0 9 * * 1-5",
  timezone: "Europe/Berlin",
  endTime: "2999-01-01T00:00:00Z",
  enabled: false,
  input: { topic: "bees" },
  config: { tags: ["a"] },
  context: { tone: "kindly" },
  interruptBefore: ["finish"],
  interruptAfter: ["finish"],
  streamMode: ["values"],
  streamSubgraphs: true,
  streamResumable: true,
  durability: "async",
  checkpointDuring: true,
  multitaskStrategy: "enqueue",
};

/** Every option of a run, except those that exclude each other. */
const runOptions = ({ metadata }: World) => ({
  input: { topic: "bees" },
  metadata,
  config: { tags: ["a"] },
  context: { tone: "kindly" },
  durability: "exit",
  checkpointDuring: true,
  interruptBefore: ["finish"],
  interruptAfter: ["finish"],
  multitaskStrategy: "enqueue",
  onCompletion: "keep",
  onDisconnect: "continue",
  afterSeconds: 0,
  ifNotExists: "create",
  webhook: "http://127.0.0.1:9/hook",
});

const STREAMED = {
  streamMode: ["values", "updates", "messages-tuple", "custom", "debug"],
  streamSubgraphs: true,
  streamResumable: true,
};

async function setUp(client: Anything): Promise<World> {
  const metadata = { key: randomUUID() };
  const world: World = { metadata, namespace: ["users", metadata.key], ...(await newThread(client, metadata)) };
  world.run = await client.runs.create(world.thread_id, "agent", { input: { topic: "bees" } });
  await client.runs.join(world.thread_id, world.run.run_id);
  return world;
}

const newThread = (client: Anything, metadata: object): Promise<{ thread_id: string }> =>
  client.threads.create({ metadata });

/** A run that does not end by itself. */
async function activeRun(client: Anything, { metadata }: World): Promise<{ thread_id: string; run_id: string }> {
  const { thread_id } = await newThread(client, metadata);
  return client.runs.create(thread_id, "waiting", { input: {} });
}

async function gather(stream: AsyncIterable<unknown>): Promise<unknown[]> {
  const items: unknown[] = [];
  for await (const item of stream) items.push(item);
  if (items.length === 0) throw new Error("the stream is empty");
  return items;
}

/** The first event of a stream that stays open. */
async function first(stream: AsyncIterable<unknown>): Promise<unknown> {
  for await (const event of stream) return event;
  throw new Error("the stream is empty");
}

/** Every public method, with real arguments. The order matters: records are created before they are read and deleted. */
const CALLS: Calls = {
  "assistants.create": async (client, world) => {
    world.assistant = await client.assistants.create({
      graphId: "agent",
      assistantId: randomUUID(),
      ifExists: "do_nothing",
      name: "One",
      description: "The first",
      context: { tone: "plainly" },
      metadata: world.metadata,
    });
  },
  "assistants.get": (client, { assistant }) => client.assistants.get(assistant.assistant_id),
  "assistants.update": (client, { assistant }) =>
    client.assistants.update(assistant.assistant_id, {
      graphId: "agent",
      name: "Two",
      description: "The second",
      metadata: { changed: true },
      config: { tags: ["a"], recursion_limit: 9, configurable: { color: "red" } },
    }),
  "assistants.getGraph": (client, { assistant }) => client.assistants.getGraph(assistant.assistant_id, { xray: true }),
  "assistants.getSchemas": (client, { assistant }) => client.assistants.getSchemas(assistant.assistant_id),
  "assistants.getSubgraphs": (client, { assistant }) =>
    client.assistants.getSubgraphs(assistant.assistant_id, { namespace: "inner", recurse: true }),
  "assistants.search": (client, { metadata }) =>
    client.assistants.search({
      metadata,
      graphId: "agent",
      name: "two",
      limit: 5,
      offset: 0,
      sortBy: "name",
      sortOrder: "asc",
      select: ["name"],
    }),
  "assistants.count": (client, { metadata }) => client.assistants.count({ metadata, graphId: "agent", name: "two" }),
  "assistants.getVersions": (client, { assistant }) =>
    client.assistants.getVersions(assistant.assistant_id, { metadata: {}, limit: 5, offset: 0 }),
  "assistants.setLatest": (client, { assistant }) => client.assistants.setLatest(assistant.assistant_id, 1),
  "assistants.delete": (client, { assistant }) =>
    client.assistants.delete(assistant.assistant_id, { deleteThreads: true }),

  "threads.create": async (client, world) => {
    world.filled = await client.threads.create({
      threadId: randomUUID(),
      ifExists: "do_nothing",
      graphId: "agent",
      metadata: world.metadata,
      ttl: { ttl: 30, strategy: "delete" },
      supersteps: [{ updates: [{ values: { topic: "bees" }, asNode: "__input__" }] }],
    });
  },
  "threads.get": (client, { thread_id }) => client.threads.get(thread_id, { include: ["ttl"] }),
  "threads.update": (client, { thread_id }) =>
    client.threads.update(thread_id, { metadata: { changed: true }, ttl: 60, returnMinimal: true }),
  "threads.copy": async (client, world) => {
    world.copied = await client.threads.copy(world.thread_id);
  },
  "threads.search": (client, { metadata, thread_id }) =>
    client.threads.search({
      metadata,
      ids: [thread_id],
      status: "idle",
      values: { topic: "bees" },
      limit: 5,
      offset: 0,
      sortBy: "updated_at",
      sortOrder: "desc",
      select: ["thread_id"],
      extract: { topic: "values.topic" },
    }),
  "threads.count": (client, { metadata }) => client.threads.count({ metadata, status: "idle", values: {} }),
  "threads.getHistory": async (client, world) => {
    world.history = await client.threads.getHistory(world.thread_id, { limit: 5 });
    return world.history;
  },
  "threads.getState": (client, { thread_id, history }) =>
    client.threads.getState(thread_id, history[1].checkpoint, { subgraphs: true }),
  "threads.updateState": (client, { copied }) =>
    client.threads.updateState(copied.thread_id, { values: { topic: "wasps" }, asNode: "finish" }),
  "threads.patchState": (client, { thread_id }) => client.threads.patchState(thread_id, { changed: true }),
  "threads.joinStream": (client, { thread_id }) =>
    first(client.threads.joinStream(thread_id, { lastEventId: "-", streamMode: ["run_modes"] })),
  "threads.stream": async (client) => {
    const thread = client.threads.stream({ assistantId: "agent" });
    try {
      await thread.run.start({ input: { topic: "bees" } });
    } finally {
      await thread.close();
    }
  },
  "threads.prune": (client, { filled }) => client.threads.prune([filled.thread_id], { strategy: "keep_latest" }),
  "threads.delete": (client, { copied }) => client.threads.delete(copied.thread_id),

  "runs.create": (client, world) => client.runs.create(world.thread_id, "agent", { ...runOptions(world), ...STREAMED }),
  "runs.createBatch": (client, { metadata }) =>
    client.runs.createBatch([
      { assistantId: "agent", input: { topic: "bees" }, metadata, interruptBefore: ["finish"], ...STREAMED },
    ]),
  "runs.stream": (client, world) =>
    gather(client.runs.stream(world.thread_id, "agent", { ...runOptions(world), ...STREAMED })),
  "runs.wait": (client, world) => client.runs.wait(randomUUID(), "agent", { ...runOptions(world), raiseError: true }),
  "runs.list": (client, { thread_id }) =>
    client.runs.list(thread_id, { limit: 5, offset: 0, status: "success", select: ["run_id"] }),
  "runs.get": (client, { run }) => client.runs.get(run.thread_id, run.run_id),
  "runs.join": (client, { run }) => client.runs.join(run.thread_id, run.run_id, { cancelOnDisconnect: true }),
  "runs.joinStream": (client, { run }) =>
    gather(
      client.runs.joinStream(run.thread_id, run.run_id, {
        lastEventId: "-1",
        streamMode: ["values"],
        cancelOnDisconnect: true,
      }),
    ),
  "runs.cancel": async (client, world) => {
    const { thread_id, run_id } = await activeRun(client, world);
    await client.runs.cancel(thread_id, run_id, true, "interrupt");
  },
  "runs.cancelMany": async (client, world) => {
    const { thread_id, run_id } = await activeRun(client, world);
    await client.runs.cancelMany({ threadId: thread_id, runIds: [run_id], action: "rollback" });
  },
  "runs.delete": (client, { run }) => client.runs.delete(run.thread_id, run.run_id),

  "crons.create": async (client, world) => {
    const options = { ...SCHEDULE, metadata: world.metadata, onRunCompleted: "keep" };
    world.cron = await client.crons.create("agent", options);
  },
  "crons.createForThread": (client, { metadata, thread_id }) =>
    client.crons.createForThread(thread_id, "agent", { ...SCHEDULE, metadata }),
  "crons.search": (client, { metadata }) =>
    client.crons.search({
      metadata,
      assistantId: "agent",
      enabled: false,
      limit: 5,
      offset: 0,
      sortBy: "created_at",
      sortOrder: "desc",
      select: ["cron_id"],
    }),
  "crons.count": (client, { metadata }) => client.crons.count({ metadata, assistantId: "agent" }),
  "crons.update": (client, { cron }) =>
    client.crons.update(cron.cron_id, { ...SCHEDULE, schedule: "0 10 * * *", endTime: null, onRunCompleted: "delete" }),
  "crons.delete": (client, { cron }) => client.crons.delete(cron.cron_id),

  "store.putItem": (client, { namespace }) =>
    client.store.putItem(namespace, "a", { stars: 3 }, { index: false, ttl: 60 }),
  "store.getItem": (client, { namespace }) => client.store.getItem(namespace, "a", { refreshTtl: true }),
  "store.searchItems": async (client, { namespace }) =>
    (
      await client.store.searchItems(namespace, {
        filter: { stars: { $gte: 2 } },
        limit: 5,
        offset: 0,
        refreshTtl: false,
      })
    ).items,
  "store.listNamespaces": async (client, { namespace }) =>
    (await client.store.listNamespaces({ prefix: namespace, suffix: [], maxDepth: 2, limit: 5, offset: 0 })).namespaces,
  "store.deleteItem": (client, { namespace }) => client.store.deleteItem(namespace, "a"),

  "~ui.getComponent": async (client) => {
    const html = await client["~ui"].getComponent("agent", "weather");
    if (!html.includes("entrypoint.js")) throw new Error(html);
  },
};

/** Options that the client accepts and the service refuses. */
const REFUSED_OPTIONS: Calls = {
  "runs.stream (feedbackKeys)": (client) =>
    gather(client.runs.stream(null, "agent", { input: {}, feedbackKeys: ["stars"] })),
  "runs.stream (onCompletion: continue)": (client) =>
    gather(client.runs.stream(null, "agent", { input: {}, onCompletion: "continue" })),
};

/** What the client itself does not offer. */
const notImplemented = (call: Call): Call => {
  return async (client, world) => {
    try {
      await call(client, world);
    } catch (error) {
      throw new Error(`NotImplementedError: ${(error as Error).message}`);
    }
  };
};

const onThread = ({ thread_id }: World) => ({ configurable: { thread_id } });

const REMOTE_GRAPH_CALLS: Calls = {
  withConfig: async (graph) => {
    const config = { configurable: { thread_id: randomUUID() } };
    await graph.withConfig(config).invoke({ topic: "bees" });
  },
  invoke: async (graph, world) => {
    world.thread_id = randomUUID();
    await graph.invoke({ topic: "bees" }, onThread(world));
  },
  stream: async (graph) => gather(await graph.stream({}, { streamMode: ["values", "updates"], subgraphs: true })),
  streamEvents: (graph) => graph.streamEvents({}, { version: "v3" }),
  getState: (graph, world) => graph.getState(onThread(world), { subgraphs: true }),
  getStateHistory: (graph, world) => gather(graph.getStateHistory(onThread(world), { limit: 2 })),
  updateState: (graph, world) => graph.updateState(onThread(world), { topic: "wasps" }, "finish"),
  getGraph: notImplemented((graph) => graph.getGraph()),
  getGraphAsync: (graph) => graph.getGraphAsync({ xray: true }),
  getSubgraphs: notImplemented((graph) => graph.getSubgraphs().next()),
  getSubgraphsAsync: (graph) => gather(graph.getSubgraphsAsync()),
};

/** The methods of RemoteGraph; `stream` is that of its base class, on a method without a public name. */
function remoteGraphMethods(): string[] {
  const names = Object.getOwnPropertyNames(RemoteGraph.prototype);
  return ["stream", ...names.filter((name) => name !== "constructor" && !name.startsWith("_"))];
}

/** The names of the public methods of a client. */
export function publicMethods(name: string): string[] {
  if (name === "javascript_remote_graph") return remoteGraphMethods();
  const client = CLIENTS[name]?.create("http://localhost");
  return Object.keys(client).flatMap((resource) =>
    typeof client[resource] === "object"
      ? Object.getOwnPropertyNames(Object.getPrototypeOf(client[resource]))
          .filter((method) => method !== "constructor")
          .map((method) => `${resource}.${method}`)
      : [],
  );
}

/** The calls for the methods that a client has. */
export function callsOf(name: string): Calls {
  const names = new Set(publicMethods(name));
  const calls = Object.entries(CLIENTS[name]?.calls() ?? {});
  return Object.fromEntries(calls.filter(([call]) => names.has(methodOf(call))));
}

export interface Called {
  results: Record<string, CallResults>;
  /** The requests of every client, by call. */
  sent: Record<string, Record<string, SentRequest[]>>;
}

/** Calls every method on a service. */
export async function callJavaScript(url: string): Promise<Called> {
  const called: Called = { results: {}, sent: {} };
  for (const [name, { create }] of Object.entries(CLIENTS)) {
    let requests: SentRequest[] = [];
    const client = create(url, ({ pathname, searchParams }, init) => {
      const { method = "GET", body } = init;
      const fields = typeof body === "string" ? fieldsOf(JSON.parse(body)) : [];
      requests.push({ method: method.toLowerCase(), path: pathname, query: [...searchParams.keys()], body: fields });
      return init;
    });
    const world = name === "javascript_remote_graph" ? {} : await setUp(client);
    const sent: Record<string, SentRequest[]> = {};
    const calls = Object.entries(callsOf(name)).map(([method, call]): [string, Call] => [
      method,
      (...args) => {
        requests = [];
        sent[method] = requests;
        return call(...args);
      },
    ]);
    called.results[name] = await callAll(Object.fromEntries(calls), client, world);
    called.sent[name] = sent;
  }
  return called;
}
