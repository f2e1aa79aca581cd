import type { AuthResource } from "../../platform/contract/caller.ts";
import { searchable } from "../../platform/contract/fields.ts";
import { ApiError } from "../../platform/errors.ts";
import type { Authorize, RequestParts } from "../../platform/http/route.ts";
import type { JsonObject } from "../../platform/lib/json/json.ts";
import type { RunAgentInput } from "../contract/ag-ui.ts";
import { appRunRoutes } from "../contract/app-runs.ts";
import { appThreadRoutes } from "../contract/app-threads.ts";
import { agentServerRoutes } from "../contract/routes.ts";
import { itemPut, itemSearch, namespaceList } from "../contract/store.ts";
import { withCommand } from "../contract/thread-protocol.ts";
import type { AuthEvent } from "../graph-hosts/auth-queries.ts";
import { threadIdOf } from "../protocols/ag-ui/run-request.ts";

/** The parts of a request, after validation by its route. */
interface Parts extends RequestParts {
  params: JsonObject;
  query: JsonObject;
  body: JsonObject;
}

/** An event that a handler must authorize before the request is processed. */
export interface Demand {
  event: AuthEvent;
  /** What the handler can read and change. */
  value: JsonObject;
  /** Applies the handler's changes to the request. If it is missing, the changes have no effect. */
  apply?: (parts: Parts, value: JsonObject) => Partial<Parts>;
  /** Whether the handler's filter is ignored and its metadata is added to the new record. */
  is_template?: boolean;
}

type RouteConfig = Parameters<Authorize>[0];

type Rule = (parts: Parts) => Demand[];

const withMetadata = ({ body }: Parts, { metadata }: JsonObject) => ({
  body: { ...body, ...(metadata != null && { metadata: searchable.parse(metadata) }) },
});

/** Returns a rule for requests whose metadata the handler can change. */
const editing =
  (event: AuthEvent): Rule =>
  ({ params, body }) => [{ event, value: { ...params, ...body }, apply: withMetadata }];

/** Returns a rule for requests that the handler can refuse or filter, but not change. */
const checking =
  (event: AuthEvent): Rule =>
  ({ params, query, body }) => [{ event, value: { ...params, ...query, ...body } }];

const none: Rule = () => [];

const readAssistant = ({ assistant_id }: JsonObject): Demand => ({ event: "assistants:read", value: { assistant_id } });

/** Returns the event of a new run. `kwargs` contains the remaining fields of the request, such as the input and the config. */
export function runDemand(body: JsonObject, thread_id?: unknown): Demand {
  const { assistant_id, metadata, multitask_strategy, if_not_exists, after_seconds, ...kwargs } = body;
  const run = { thread_id, assistant_id, metadata, multitask_strategy, if_not_exists, after_seconds, kwargs };
  return { event: "threads:create_run", value: { ...run, status: "pending" }, apply: withMetadata };
}

const createRun: Rule = ({ params, body }) => [readAssistant(body), runDemand(body, params.thread_id)];

const createBatch: Rule = ({ body }) => {
  const runs = body as unknown as JsonObject[];
  const assistants = new Map(runs.map((run) => [run.assistant_id, run]));
  return [
    ...[...assistants.values()].map(readAssistant),
    ...runs.map((run, n): Demand => {
      const apply: Demand["apply"] = (parts, value) => {
        const { body } = withMetadata({ ...parts, body: run }, value);
        return { body: (parts.body as unknown as JsonObject[]).with(n, body) as unknown as JsonObject };
      };
      return { ...runDemand(run), apply };
    }),
  ];
};

/** The thread's state decides which messages and values become input, so the value contains all that the client sent. */
const runAgent: Rule = ({ params: { assistant_id }, body, caller }) => {
  const { threadId, messages, tools, state, resume, forwardedProps } = body as unknown as RunAgentInput;
  const fixed = { assistant_id, if_not_exists: "create", multitask_strategy: "enqueue" };
  const run = { ...fixed, ...forwardedProps, input: { ...state, messages, tools }, resume };
  const apply: Demand["apply"] = (parts, value) => {
    const { metadata } = withMetadata({ ...parts, body: forwardedProps as unknown as JsonObject }, value)
      .body as JsonObject;
    return { body: { ...parts.body, forwardedProps: { ...forwardedProps, metadata } } };
  };
  return [readAssistant({ assistant_id }), { ...runDemand(run, threadIdOf(caller, threadId)), apply }];
};

const createCron: Rule = ({ params, body }) => {
  const { assistant_id, schedule, timezone, end_time, enabled, on_run_completed, metadata, ...payload } = body;
  const cron = { ...params, assistant_id, schedule, timezone, end_time, enabled, on_run_completed, metadata };
  return [readAssistant(body), { event: "crons:create", value: { ...cron, payload }, apply: withMetadata }];
};

/**
 * A command that starts a run needs the permissions of a new run. For `input.respond`, ThreadCommands asks for them when it knows the
 * assistant.
 */
const sendCommand: Rule = ({ params, body }) => {
  const command = body.params as JsonObject;
  if (body.method !== "run.start") return [{ event: "threads:read", value: { ...params, ...body } }];
  const apply = (parts: Parts, value: JsonObject) => ({
    body: { ...body, params: withMetadata({ ...parts, body: command }, value).body },
  });
  return [readAssistant(command), { ...runDemand(withCommand(command), params.thread_id), apply }];
};

const deleteAssistant: Rule = ({ params, query }) => [
  { event: "assistants:delete", value: params },
  ...(query.delete_threads ? [{ event: "threads:delete" as const, value: {} }] : []),
];

/** Returns the fields of a store request that a handler can change, after validation. */
const itemFields = ({ namespace, key, value }: JsonObject) => itemPut.partial().parse({ namespace, key, value });

/** Requires a namespace, because a search without a namespace would return the items of all users. */
function namespaceIn({ namespace }: JsonObject): string[] {
  if (!Array.isArray(namespace)) throw new Error("value.namespace must be a list of labels");
  return namespace;
}

type RulesOf<Groups> = { [G in keyof Groups]: { [R in keyof Groups[G]]: Rule } };

/** The rule of every route. A missing route causes a type error. */
const RULES: RulesOf<typeof ROUTES> = {
  system: { ok: none, info: none, metrics: none },
  assistants: {
    createAssistant: editing("assistants:create"),
    searchAssistants: editing("assistants:search"),
    countAssistants: editing("assistants:search"),
    getAssistant: checking("assistants:read"),
    patchAssistant: editing("assistants:update"),
    deleteAssistant,
    getAssistantGraph: checking("assistants:read"),
    getAssistantSchemas: checking("assistants:read"),
    getAssistantSubgraphs: checking("assistants:read"),
    getAssistantSubgraphsAt: checking("assistants:read"),
    listAssistantVersions: checking("assistants:read"),
    setLatestAssistantVersion: checking("assistants:update"),
  },
  threads: {
    createThread: editing("threads:create"),
    searchThreads: editing("threads:search"),
    countThreads: editing("threads:search"),
    pruneThreads: ({ body }) => [
      { event: body.strategy === "delete" ? "threads:delete" : "threads:update", value: body },
    ],
    getThread: checking("threads:read"),
    getThreadStorage: checking("threads:read"),
    patchThread: editing("threads:update"),
    deleteThread: checking("threads:delete"),
    copyThread: ({ params }) => [
      { event: "threads:create", value: { metadata: {} }, is_template: true },
      { event: "threads:read", value: params },
    ],
    streamThread: checking("threads:read"),
    getThreadState: checking("threads:read"),
    getThreadStateAt: checking("threads:read"),
    getThreadStateAtCheckpoint: checking("threads:read"),
    updateThreadState: checking("threads:update"),
    getThreadHistory: checking("threads:read"),
    postThreadHistory: checking("threads:read"),
  },
  thread_protocol: { sendCommand, streamEvents: checking("threads:read"), openSocket: checking("threads:read") },
  runs: {
    createRun,
    createRunStream: createRun,
    createRunWait: createRun,
    listRuns: checking("threads:read"),
    getRun: checking("threads:read"),
    deleteRun: checking("threads:delete"),
    joinRun: checking("threads:read"),
    joinRunStream: checking("threads:read"),
    cancelRun: checking("threads:update"),
    cancelRuns: checking("threads:update"),
    createStatelessRun: createRun,
    createStatelessRunStream: createRun,
    createStatelessRunWait: createRun,
    createRunBatch: createBatch,
    joinStatelessRun: checking("threads:read"),
    joinStatelessRunStream: checking("threads:read"),
  },
  crons: {
    createCron,
    createThreadCron: (parts) => [...createCron(parts), { event: "threads:read", value: parts.params }],
    searchCrons: editing("crons:search"),
    countCrons: editing("crons:search"),
    getCron: checking("crons:read"),
    patchCron: editing("crons:update"),
    deleteCron: checking("crons:delete"),
  },
  webhooks: {
    listWebhookDeliveries: checking("threads:search"),
    redeliverWebhook: checking("threads:update"),
  },
  ui: { loadComponent: none, getUiFile: none },
  ag_ui: { runAgent },
  // callAgent: the handler authorizes each method like the route that has the same effect.
  a2a: { callAgent: none, findAgentCard: checking("assistants:read"), getAgentCard: checking("assistants:read") },
  store: {
    putItem: ({ body }) => [
      {
        event: "store:put",
        value: body,
        apply: (_, value) => ({ body: { ...body, ...itemFields(value) } }),
      },
    ],
    getItem: ({ query }) => [
      { event: "store:get", value: query, apply: (_, value) => ({ query: { ...query, ...itemFields(value) } }) },
    ],
    deleteItem: ({ body }) => [
      { event: "store:delete", value: body, apply: (_, value) => ({ body: { ...body, ...itemFields(value) } }) },
    ],
    searchItems: ({ body: { namespace_prefix, ...body } }) => [
      {
        event: "store:search",
        value: { namespace: namespace_prefix, ...body },
        apply: (_, value) => ({ body: itemSearch.parse({ ...body, namespace_prefix: namespaceIn(value) }) }),
      },
    ],
    listNamespaces: ({ body: { prefix, ...body } }) => [
      {
        event: "store:list_namespaces",
        value: { namespace: prefix, ...body },
        apply: (_, value) => ({ body: namespaceList.parse({ ...body, prefix: namespaceIn(value) }) }),
      },
    ],
  },
  app_runs: {
    listAllRuns: checking("threads:search"),
    getRunPreviews: checking("threads:search"),
    getRunThroughput: checking("threads:search"),
    getRunMonitoring: checking("threads:search"),
  },
  app_threads: {
    searchThreadsByText: editing("threads:search"),
    countThreadsByText: editing("threads:search"),
  },
};

const ROUTES = { ...agentServerRoutes, app_runs: appRunRoutes, app_threads: appThreadRoutes };

const RULE_OF = new Map<RouteConfig, Rule>(
  Object.entries(ROUTES).flatMap(([group, routes]) =>
    Object.entries(routes as Record<string, RouteConfig>).map(([name, route]): [RouteConfig, Rule] => [
      route,
      (RULES as Record<string, Record<string, Rule>>)[group]?.[name] as Rule,
    ]),
  ),
);

/**
 * Returns the events that a request causes.
 *
 * @throws ApiError missing_scope for a route of another product
 */
export function demandsOf(route: RouteConfig, parts: RequestParts): Demand[] {
  const rule = RULE_OF.get(route);
  if (!rule) throw new ApiError("missing_scope", { scope: "admin" });
  return rule(parts as Parts);
}

export const resourceOf = (event: AuthEvent): AuthResource => event.split(":")[0] as AuthResource;

/** The paths of the agent server as patterns. A path without parameters precedes those that it also matches. */
const PATTERNS = Object.values(agentServerRoutes)
  .flatMap((group) => Object.values(group as Record<string, { method: string; path: string }>))
  .map(({ method, path }) => ({
    method: method.toUpperCase(),
    parameters: path.split("{").length,
    pattern: new RegExp(`^${path.replaceAll(/\{(\w+)\}/g, "(?<$1>[^/]+)")}$`),
  }))
  .sort((a, b) => a.parameters - b.parameters);

/** Returns the parameters in the path of a request, which is authenticated before it has a route. */
export function pathParametersOf(method: string, path: string): Record<string, string> {
  const found = PATTERNS.find((route) => route.method === method && route.pattern.test(path));
  const groups = Object.entries(found?.pattern.exec(path)?.groups ?? {});
  return Object.fromEntries(groups.map(([name, value]) => [name, decoded(value)]));
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
