import { type Artifact, type Message, type Part, Role, type Task, TaskState, type TaskStatus } from "@a2a-js/sdk";
import { isObject, type JsonObject } from "../../../platform/lib/json/json.ts";
import type { TaskState as State, TaskRow } from "../../storage/tasks.ts";
import { type GraphMessage, textOf, toAgUiMessages } from "../ag-ui/messages.ts";
import type { TaskContent } from "./tasks.ts";

const STATES: Record<State, TaskState> = {
  submitted: TaskState.TASK_STATE_SUBMITTED,
  working: TaskState.TASK_STATE_WORKING,
  completed: TaskState.TASK_STATE_COMPLETED,
  failed: TaskState.TASK_STATE_FAILED,
  canceled: TaskState.TASK_STATE_CANCELED,
  "input-required": TaskState.TASK_STATE_INPUT_REQUIRED,
};

/** Returns the state of tasks that a client selects; undefined if no task can have it. */
export const stateOf = (wanted: TaskState): State | undefined =>
  (Object.keys(STATES) as State[]).find((state) => STATES[state] === wanted);

/** Clients choose the IDs of contexts; without one, it is that of the thread. */
export function contextIdOf({ metadata, thread_id }: Pick<TaskRow, "metadata" | "thread_id">): string {
  const { a2a_context_id: id } = JSON.parse(metadata) as JsonObject;
  return typeof id === "string" ? id : thread_id;
}

export const textPart = (value: string): Part => partOf({ $case: "text", value }, "text/plain");

const partOf = (content: Part["content"], mediaType: string, metadata?: JsonObject): Part => ({
  content,
  mediaType,
  filename: "",
  metadata,
});

export const artifactOf = (artifactId: string, text: string): Artifact => ({
  artifactId,
  name: "answer",
  description: "",
  parts: [textPart(text)],
  metadata: undefined,
  extensions: [],
});

export function taskOf(
  row: TaskRow,
  content: TaskContent | undefined,
  { historyLength, artifacts = true }: { historyLength: number; artifacts?: boolean },
): Task {
  const contextId = contextIdOf(row);
  const history = content && historyLength > 0 ? historyOf(content.messages, contextId).slice(-historyLength) : [];
  const answer = artifacts && content?.isOutput ? answerIn(content.messages) : undefined;
  return {
    id: row.run_id,
    contextId,
    status: statusOf(row, content),
    artifacts: answer ? [answer] : [],
    history,
    metadata: undefined,
  };
}

export function statusOf(row: TaskRow, content: TaskContent | undefined): TaskStatus {
  const parts = statusParts(row, content);
  const ids = { messageId: `${row.run_id}-status`, contextId: contextIdOf(row), taskId: row.run_id };
  return {
    state: STATES[row.state],
    message: parts.length > 0 ? messageOf(Role.ROLE_AGENT, parts, ids) : undefined,
    timestamp: new Date(row.changed_at).toISOString(),
  };
}

const messageOf = (role: Role, parts: Part[], ids: Pick<Message, "messageId" | "contextId" | "taskId">): Message => ({
  ...ids,
  role,
  parts,
  metadata: undefined,
  extensions: [],
  referenceTaskIds: [],
});

const AT_BREAKPOINT =
  "The task is paused at a breakpoint. To continue the task, send any message and set its taskId to the ID of the task.";

/** The reason for the state of a task. */
function statusParts({ state, cancel_reason }: TaskRow, content: TaskContent | undefined): Part[] {
  if (state === "canceled") return cancel_reason === null ? [] : [textPart(cancel_reason)];
  if (state === "failed") {
    const { error = "Error", message = "The run failed." } = content?.error ?? {};
    return [textPart(`${error}: ${message}`)];
  }
  if (state !== "input-required") return [];
  const interrupts = content?.interrupts ?? [];
  if (interrupts.length === 0) return [textPart(AT_BREAKPOINT)];
  return interrupts.map(({ id, value = null }) =>
    typeof value === "string"
      ? { ...textPart(value), metadata: { interrupt_id: id } }
      : partOf({ $case: "data", value }, "application/json", { interrupt_id: id }),
  );
}

/** Returns the text of the last AI message after the last message of the user. */
function answerIn(messages: readonly unknown[]): Artifact | undefined {
  for (const message of messages.toReversed().filter(isObject) as GraphMessage[]) {
    if (message.type === "human") return undefined;
    const text = message.type === "ai" || message.type === "AIMessageChunk" ? textOf(message.content) : "";
    if (text !== "") return artifactOf(message.id ?? "answer", text);
  }
  return undefined;
}

/** Returns the messages of the user and the texts of the assistant. */
function historyOf(messages: readonly unknown[], contextId: string): Message[] {
  return toAgUiMessages(messages).flatMap((message) => {
    if (message.role !== "user" && message.role !== "assistant") return [];
    const content =
      typeof message.content === "string"
        ? [{ type: "text" as const, text: message.content }]
        : (message.content ?? []);
    const parts = content.flatMap(historyPart);
    const ids = { messageId: message.id, contextId, taskId: "" };
    return parts.length === 0
      ? []
      : [messageOf(message.role === "user" ? Role.ROLE_USER : Role.ROLE_AGENT, parts, ids)];
  });
}

type HistoryContent = Exclude<
  Extract<ReturnType<typeof toAgUiMessages>[number], { role: "user" }>["content"],
  string
>[number];

function historyPart(content: HistoryContent): Part[] {
  if (content.type === "text") return content.text === "" ? [] : [textPart(content.text)];
  if (!("source" in content)) return [];
  const { type, value, mimeType = "" } = content.source;
  if (type === "url") return [partOf({ $case: "url", value }, mimeType)];
  return [partOf({ $case: "raw", value: Buffer.from(value, "base64") }, mimeType)];
}
