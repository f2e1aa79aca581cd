import type { Mutant } from "./mutants.ts";

const HTTP = "test/http/ag-ui.test.ts";
const CLIENTS = "test/compat/ag-ui.test.ts";
const ORDER = "test/compat/ag-ui-order.test.ts";
const EVENTS = "src/agent-server/protocols/ag-ui/message-events.ts";
const PROJECTOR = "src/agent-server/protocols/ag-ui/projector.ts";
const REQUEST = "src/agent-server/protocols/ag-ui/run-request.ts";

export const AG_UI_MUTANTS: readonly Mutant[] = [
  {
    name: "ag-ui: workspaces share the threads that have a name",
    file: REQUEST,
    replace: [
      "JSON.stringify([tenant_id, user?.identity ?? null, threadId])",
      "JSON.stringify([user?.identity ?? null, threadId])",
    ],
    suites: [HTTP],
  },
  {
    name: "ag-ui: users share the threads that have a name",
    file: REQUEST,
    replace: ["user?.identity ?? null, threadId", "user && null, threadId"],
    suites: [HTTP],
  },
  {
    name: "ag-ui: handlers authorize another thread",
    file: "src/agent-server/auth/route-demands.ts",
    replace: [
      "...runDemand(run, threadIdOf(caller, threadId)), apply",
      "...runDemand(run, threadIdOf(caller, threadId))",
    ],
    suites: [HTTP],
  },
  {
    name: "ag-ui: streams have no limit",
    file: "src/access/http/auth.ts",
    replace: ["(\\/|$)|\\/ag-ui\\/[^/]+$/", "(\\/|$)/"],
    suites: [HTTP],
  },
  {
    name: "ag-ui: a response to a closed interrupt is accepted",
    file: REQUEST,
    replace: ["if (!open.has(interruptId))", "if (!open)"],
    suites: [HTTP],
  },
  {
    name: "ag-ui: an open interrupt is run over",
    file: "src/agent-server/http/ag-ui.ts",
    replace: ["if (open.length > 0)", "if (open.length > 1000)"],
    suites: [HTTP],
  },
  {
    name: "ag-ui: arguments of tool calls have no limit",
    file: REQUEST,
    replace: ["0) > MAX_ARGUMENTS)", "0) > 10 * MAX_ARGUMENTS)"],
    suites: [HTTP],
  },
  {
    name: "ag-ui: arguments of tool calls change prototypes",
    file: "src/agent-server/protocols/ag-ui/messages.ts",
    replace: ["return parseUntrusted(text);", "return JSON.parse(text);"],
    suites: [HTTP],
  },
  {
    name: "ag-ui: unchanged values are sent to reducers",
    file: REQUEST,
    replace: ["&& !isDeepStrictEqual(value, values[key])", "&& value !== values"],
    suites: [CLIENTS],
  },
  {
    name: "ag-ui: known messages are sent again",
    file: REQUEST,
    replace: ["if (ids.has(message.id) ||", "if (ids.size < 0 ||"],
    suites: [HTTP],
  },
  {
    name: "ag-ui: the run goes on without its client",
    file: "src/agent-server/http/ag-ui.ts",
    replace: ["disconnects.watch(run, client.signal);", ""],
    suites: [CLIENTS],
  },
  {
    name: "ag-ui: the end of access is no AG-UI event",
    file: "src/agent-server/http/ag-ui.ts",
    replace: ["override errorEvent(", "otherEvent("],
    suites: [HTTP],
  },
  {
    name: "ag-ui: a call is open twice",
    file: EVENTS,
    replace: ["isNew && !this.#isOpenCall(id)", "isNew"],
    suites: [ORDER],
  },
  {
    name: "ag-ui: reasoning stays open",
    file: EVENTS,
    replace: ["    this.#open.delete(id);\n    this.#closeReasoning(id, open);", "    this.#open.delete(id);"],
    suites: [ORDER],
  },
  {
    name: "ag-ui: parallel tasks are steps of one name",
    file: PROJECTOR,
    replace: ["if (count === 0) this.#emit", "this.#emit"],
    suites: [ORDER, CLIENTS],
  },
  {
    name: "ag-ui: an attempt that failed leaves its messages open",
    file: PROJECTOR,
    replace: ["        this.#closeAll();\n    }", "        break;\n    }"],
    suites: [HTTP, ORDER],
  },
  {
    name: "ag-ui: old clients get an outcome",
    file: PROJECTOR,
    replace: ["...(this.#isModern && { outcome }),", "outcome,"],
    suites: [CLIENTS],
  },
];
