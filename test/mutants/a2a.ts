import type { Mutant } from "./mutants.ts";

const HTTP = "test/http/a2a.test.ts";
const TASKS_OF_CLIENTS = "test/http/a2a-tasks.test.ts";
const USERS = "test/http/a2a-users.test.ts";
const PUSH = "test/http/a2a-push.test.ts";
const TASKS = "src/agent-server/protocols/a2a/tasks.ts";
const REQUESTS = "src/agent-server/protocols/a2a/task-requests.ts";
const OBJECTS = "src/agent-server/protocols/a2a/task-objects.ts";
const SERVER = "src/agent-server/protocols/a2a/server.ts";
const CONTRACT = "src/agent-server/contract/a2a.ts";
const STORAGE = "src/agent-server/storage/tasks.ts";

export const A2A_MUTANTS: readonly Mutant[] = [
  {
    name: "a2a: every client can choose the URL in a card",
    file: "src/agent-server/http/a2a.ts",
    replace: ["options.rollout === undefined ? undefined : req", "options.rollout === -1 ? undefined : req"],
    suites: [HTTP],
  },
  {
    name: "a2a: workspaces see the tasks of others",
    file: STORAGE,
    replace: ['.where("runs.tenant_id", "=", tenant_id)', '.where("runs.tenant_id", "!=", tenant_id && "")'],
    suites: [USERS],
  },
  {
    name: "a2a: users find the tasks of others",
    file: TASKS,
    replace: ["found && access ? await findTask(read, { ...key, access }) : found;", "found;"],
    suites: [USERS],
  },
  {
    name: "a2a: users list the tasks of others",
    file: TASKS,
    replace: ['access: authorized && filterOf(authorized.caller, "threads"),', "access: undefined,"],
    suites: [USERS],
  },
  {
    name: "a2a: an assistant has the tasks of others",
    file: TASKS,
    replace: ["tenant_id: caller.tenant_id, assistant_id, run_id", "tenant_id: caller.tenant_id, run_id"],
    suites: [TASKS_OF_CLIENTS],
  },
  {
    name: "a2a: every method is authorized as a read",
    file: TASKS,
    replace: ["await authorize?.(route, { params, query", "await authorize?.(runRoutes.getRun, { params, query"],
    suites: [USERS],
  },
  {
    name: "a2a: a list of a context is authorized as one of all",
    file: TASKS,
    replace: ["thread_id === undefined ? appRunRoutes", "thread_id !== null ? appRunRoutes"],
    suites: [USERS],
  },
  {
    name: "a2a: every key may use assistants",
    file: "src/access/http/scopes.ts",
    replace: ['["/a2a", "agents"]', '["/a2a", null]'],
    suites: [USERS],
  },
  {
    name: "a2a: every key may read cards",
    file: "src/access/http/scopes.ts",
    replace: ['["/.well-known/agent-card.json", "agents"]', '["/.well-known/agent-card.json", null]'],
    suites: [USERS],
  },
  {
    name: "a2a: streams and answers have no limit",
    file: "src/agent-server/http/a2a.ts",
    replace: ['if (WAITING.includes(method)) context.get("requireOpenResponse")();', ""],
    suites: [USERS],
  },
  {
    name: "a2a: the end of access is no error of the protocol",
    file: "src/agent-server/http/a2a.ts",
    replace: ["override errorEvent(", "otherEvent("],
    suites: [USERS],
  },
  {
    name: "a2a: a history can be long",
    file: CONTRACT,
    replace: ['.max(10, "must be at most 10")', ".max(1000)"],
    suites: [HTTP],
  },
  {
    name: "a2a: headers of notifications can contain line breaks",
    file: CONTRACT,
    replace: ['.regex(/^[\\x20-\\x7e]*$/, "must contain only printable ASCII characters")', ""],
    suites: [PUSH],
  },
  {
    name: "a2a: notifications go to every URL",
    file: TASKS,
    replace: ["URL.canParse(url) ? this.#context.webhooks.refusal(url)", "URL.canParse(url) ? undefined"],
    suites: [PUSH],
  },
  {
    name: "a2a: an ended task accepts receivers",
    file: TASKS,
    replace: ["if (ended_at !== null) throw", "if (ended_at === -1) throw"],
    suites: [PUSH],
  },
  {
    name: "a2a: a task has any number of receivers",
    file: TASKS,
    replace: ["if (changed.length > MAX_PUSH_CONFIGS)", "if (changed.length < 0)"],
    suites: [PUSH],
  },
  {
    name: "a2a: a deleted receiver gets its notification",
    file: TASKS,
    replace: ["if (deleted_id !== undefined) await deleteDelivery", "if (deleted_id === null) await deleteDelivery"],
    suites: [PUSH],
  },
  {
    name: "a2a: receivers that were added later are not notified",
    file: "src/agent-server/engine/settlement/settle.ts",
    replace: ["storeWebhooks(tx, { ...run, push_configs },", "storeWebhooks(tx, run,"],
    suites: [PUSH],
  },
  {
    name: "a2a: tokens of receivers are shown",
    file: REQUESTS,
    replace: ['  url,\n  token: "",', "  url,\n  token: config.token as string,"],
    suites: [PUSH],
  },
  {
    name: "a2a: credentials of receivers are shown",
    file: REQUESTS,
    replace: [
      'scheme: authentication.scheme, credentials: ""',
      "scheme: authentication.scheme, credentials: authentication.credentials",
    ],
    suites: [PUSH],
  },
  {
    name: "a2a: a tenant has no effect",
    file: SERVER,
    replace: ["if (params?.tenant) throw", "if (params?.tenant === null) throw"],
    suites: [HTTP],
  },
  {
    name: "a2a: parameters of another type are an error of the service",
    file: SERVER,
    replace: ["=== A2A_ERROR_CODE.INTERNAL_ERROR && !wasCalled()", "=== A2A_ERROR_CODE.INTERNAL_ERROR && wasCalled()"],
    suites: [HTTP],
  },
  {
    name: "a2a: every version is accepted",
    file: SERVER,
    replace: ["if (version && !/^(0\\.3|1\\.0)", "if (version && !/^(.*)"],
    suites: [HTTP],
  },
  {
    name: "a2a: a task that is not paused is continued",
    file: TASKS,
    replace: ['if (thread?.status !== "interrupted")', "if (!thread)"],
    suites: [TASKS_OF_CLIENTS],
  },
  {
    name: "a2a: a question has two answers",
    file: TASKS,
    replace: ["command: { resume }, strict_resume: true }", "command: { resume }, strict_resume: false }"],
    suites: [TASKS_OF_CLIENTS],
  },
  {
    name: "a2a: a task is continued from another context",
    file: TASKS,
    replace: [
      'if (contextId !== "" && thread_id !== task.thread_id)',
      'if (contextId === "-" && thread_id !== task.thread_id)',
    ],
    suites: [TASKS_OF_CLIENTS],
  },
  {
    name: "a2a: an answered task still requires input",
    file: STORAGE,
    replace: ["and later.seq > runs.seq", "and later.seq < 0"],
    suites: [TASKS_OF_CLIENTS],
  },
  {
    name: "a2a: the answer of an earlier task is that of a later one",
    file: OBJECTS,
    replace: ['if (message.type === "human") return undefined;', ""],
    suites: [TASKS_OF_CLIENTS],
  },
  {
    name: "a2a: the second attempt continues the message of the first",
    file: REQUESTS,
    replace: ['mode === "metadata" || mode === "gap" ? this.#closeOpen() : []', "[] as StreamResponse[]"],
    suites: [TASKS_OF_CLIENTS],
  },
  {
    name: "a2a: graphs without messages are run",
    file: TASKS,
    replace: ['if (!keys.includes("messages")) throw', 'if (keys.includes("-")) throw'],
    suites: [HTTP],
  },
];
