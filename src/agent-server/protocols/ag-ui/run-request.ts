import { isDeepStrictEqual } from "node:util";
import type { Caller } from "../../../platform/contract/caller.ts";
import { ApiError } from "../../../platform/errors.ts";
import { idOfName, isUuid } from "../../../platform/lib/ids.ts";
import { isObject, type JsonObject } from "../../../platform/lib/json/json.ts";
import type { AgUiMessage, RunAgentInput } from "../../contract/ag-ui.ts";
import type { Interrupt, Thread } from "../../contract/records.ts";
import { type RunCreate, runCreate } from "../../contract/run-schemas.ts";
import { parsed, toGraphMessage } from "./messages.ts";

const THREAD_NAMES = "6f0f6c2e-3d0b-5c0e-9f53-0a6f6d1c9b7a";

/** Keys of the state that this endpoint sets. Values of the client are ignored. */
const OWN_KEYS = new Set(["messages", "tools", "ag-ui"]);

/**
 * Returns the ID of a client's thread. A text that is not a UUID is a name: it selects a thread of the workspace, or of the user if the
 * project authenticates users. Otherwise a workspace could take a name that another workspace uses.
 */
export function threadIdOf({ tenant_id, user }: Caller, threadId: string): string {
  if (isUuid(threadId)) return threadId.toLowerCase();
  return idOfName(JSON.stringify([tenant_id, user?.identity ?? null, threadId]), THREAD_NAMES);
}

/** Returns the open interrupts of a thread. While a run is active, none is open. */
export const openInterrupts = (thread: Thread | undefined): Interrupt[] =>
  thread?.status === "interrupted" ? Object.values(thread.interrupts).flat() : [];

/** Whether a request responds to an interrupt or redirects the graph. Otherwise it must not run a graph that waits for a response. */
export const hasCommand = ({ resume, forwardedProps }: RunAgentInput): boolean =>
  resume.length > 0 || forwardedProps.command !== undefined;

/**
 * Returns the run of a client's request on its thread, which may not exist yet.
 *
 * @throws ApiError invalid_request for a response to an interrupt that is not open
 */
export function runOf(assistant_id: string, request: RunAgentInput, thread: Thread | undefined): RunCreate {
  const { config, context, metadata } = request.forwardedProps;
  const command = commandOf(request, thread);
  return runCreate.parse({
    assistant_id,
    ...(command ? { command } : { input: inputOf(request, thread) }),
    config,
    context,
    metadata: { ...metadata, ag_ui_thread_id: request.threadId, ag_ui_run_id: request.runId },
    if_not_exists: "create",
    stream_mode: ["values", "messages-tuple", "tasks", "custom"],
    stream_subgraphs: true,
    strict_resume: request.resume.length > 0,
    on_disconnect: "cancel",
  });
}

function commandOf({ resume, forwardedProps }: RunAgentInput, thread: Thread | undefined): JsonObject | undefined {
  const { command } = forwardedProps;
  if (resume.length === 0) {
    if (typeof command?.resume !== "string") return command;
    return { ...command, resume: parsed(command.resume) };
  }
  const open = new Set(openInterrupts(thread).map(({ id }) => id));
  const responses = resume.map(({ interruptId, status, payload }, i): [string, unknown] => {
    if (!open.has(interruptId))
      throw new ApiError("invalid_request", {
        reason: `body.resume.${i}.interruptId: the thread has no open interrupt "${interruptId}"`,
      });
    // The value that LangGraph's AG-UI integration sends for a cancelled interrupt.
    return [
      interruptId,
      status === "resolved" ? (payload ?? null) : { __agui_cancelled__: true, interrupt_id: interruptId },
    ];
  });
  return { ...command, resume: Object.fromEntries(responses) };
}

/** Returns the input of the graph. LangGraph ignores the keys that are not in the graph's input schema. */
function inputOf(request: RunAgentInput, thread: Thread | undefined): JsonObject | null {
  const values = isObject(thread?.values) ? thread.values : {};
  const messages = newMessages(request.messages, values.messages).flatMap(toGraphMessage);
  const state = changesOf(request.state, values);
  // A graph that stopped at a breakpoint continues if it gets no input.
  if (thread?.status === "interrupted" && messages.length === 0 && Object.keys(state).length === 0) return null;
  const tools = request.tools.map(({ name, description, parameters }) => ({
    type: "function",
    name,
    function: { name, description, parameters },
  }));
  const { context } = request;
  const copilotkit = isObject(request.state?.copilotkit) ? request.state.copilotkit : {};
  return {
    ...state,
    messages,
    tools,
    "ag-ui": { tools, context },
    copilotkit: { ...copilotkit, actions: tools, context },
  };
}

/** Maximum length of the arguments of all tool calls in new messages: the serving thread parses them. */
const MAX_ARGUMENTS = 1_000_000;

/** Returns the messages that a thread does not contain. Clients may give the result of a tool another ID than the thread. */
function newMessages(messages: readonly AgUiMessage[], stored: unknown): AgUiMessage[] {
  const known = (Array.isArray(stored) ? stored : []).filter(isObject);
  const ids = new Set(known.map(({ id }) => id));
  const results = new Set(known.flatMap(({ type, tool_call_id }) => (type === "tool" ? [tool_call_id] : [])));
  const added = messages.filter((message, i) => {
    // CopilotKit puts a system message of its own at the start of each request.
    if (ids.has(message.id) || (i === 0 && message.role === "system")) return false;
    return message.role !== "tool" || !results.has(message.toolCallId);
  });
  const calls = added.flatMap((message) => (message.role === "assistant" ? message.toolCalls : []));
  if (calls.reduce((sum, call) => sum + call.function.arguments.length, 0) > MAX_ARGUMENTS)
    throw new ApiError("invalid_request", {
      reason: `body.messages: the arguments of the tool calls in new messages have more than ${MAX_ARGUMENTS} characters in total`,
    });
  return added;
}

/** Returns the changed keys. Clients send the whole state back, and a reducer would add unchanged values a second time. */
const changesOf = (state: JsonObject = {}, values: JsonObject): JsonObject =>
  Object.fromEntries(
    Object.entries(state).filter(([key, value]) => !OWN_KEYS.has(key) && !isDeepStrictEqual(value, values[key])),
  );
