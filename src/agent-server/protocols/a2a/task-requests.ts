import type { AgentCard, StreamResponse, Task, TaskPushNotificationConfig, TaskStatus } from "@a2a-js/sdk";
import {
  ContentTypeNotSupportedError,
  PushNotificationNotSupportedError,
  RequestMalformedError,
  TaskNotFoundError,
  UnsupportedOperationError,
} from "@a2a-js/sdk/errors";
import type { A2ARequestHandler } from "@a2a-js/sdk/server";
import type { z } from "zod";
import { exactIssues } from "../../../platform/contract/validation-errors.ts";
import { type MessageSend, messageSend, pushConfigCreate, taskGet, taskList } from "../../contract/a2a.ts";
import type { Assistant } from "../../contract/records.ts";
import { runRoutes } from "../../contract/runs.ts";
import type { StreamedEvent } from "../../engine/index.ts";
import type { Runs } from "../../runs/runs.ts";
import type { PushConfig, RunRow } from "../../storage/schema.ts";
import { submittedTask, type TaskRow } from "../../storage/tasks.ts";
import { type GraphMessage, textOf } from "../ag-ui/messages.ts";
import { artifactOf, contextIdOf, stateOf, statusOf, taskOf } from "./task-objects.ts";
import type { A2aRequest, A2aTasks } from "./tasks.ts";

export interface RequestOptions {
  tasks: A2aTasks;
  runs: Runs;
}

export interface ServedRequest extends A2aRequest {
  assistant: Assistant;
  card: AgentCard;
  /** Aborted when the client disconnects or loses access. The tasks continue. */
  signal: AbortSignal;
}

const MAX_HISTORY = 10;

/** The methods of the protocol. The SDK converts their parameters and results to the format of each version. */
export function taskRequests({ tasks, runs }: RequestOptions, request: ServedRequest): A2ARequestHandler {
  const { assistant, card, signal } = request;

  async function reload(run: Pick<RunRow, "tenant_id" | "run_id">): Promise<TaskRow> {
    const row = await tasks.reload(run);
    if (!row) throw new TaskNotFoundError(`Task not found: ${run.run_id}`);
    return row;
  }

  async function toTask(row: TaskRow, historyLength = MAX_HISTORY, artifacts = true): Promise<Task> {
    const isActive = row.state === "submitted" || row.state === "working";
    const hasReason = row.state === "failed" || row.state === "input-required";
    const isNeeded = historyLength > 0 || (artifacts && !isActive) || hasReason;
    return taskOf(row, isNeeded ? await tasks.contentOf(row) : undefined, { historyLength, artifacts });
  }

  type Updates = AsyncGenerator<StreamResponse, void, undefined>;

  async function* follow(row: TaskRow, events: AsyncGenerator<readonly StreamedEvent[]>): Updates {
    yield { payload: { $case: "task", value: await toTask(row, 0, false) } };
    const updates = new TaskUpdates(row);
    for await (const batch of events) for (const event of batch) yield* updates.take(event);
    const ended = await tasks.reload(row);
    yield* updates.finish(ended && (await toTask(ended, 0)));
  }

  function checkedMessage(params: unknown): MessageSend {
    const send = checked(messageSend, params);
    const modes = send.configuration?.acceptedOutputModes ?? [];
    if (modes.length === 0 || modes.some((mode) => /^(\*|text|application\/(\*|json))/.test(mode))) return send;
    throw new ContentTypeNotSupportedError("params.configuration.acceptedOutputModes: must contain text/plain");
  }

  async function pushConfigsOf(id: string): Promise<TaskPushNotificationConfig[]> {
    if (!tasks.sendsPush) throw new PushNotificationNotSupportedError();
    const { task } = await tasks.find(request, assistant, id);
    return (JSON.parse(task.push_configs ?? "[]") as PushConfig[]).map((config) => publicConfig(task, config));
  }

  return {
    getAgentCard: async () => card,

    // The card itself requires authentication, so there is no other card.
    getAuthenticatedExtendedAgentCard: async () => card,

    async sendMessage(params) {
      const send = checkedMessage(params);
      const { returnImmediately = false, historyLength } = send.configuration ?? {};
      const run = await tasks.send(request, assistant, send);
      if (returnImmediately) return toTask(submittedTask(run), historyLength);
      await runs.ending(run, signal, { isNew: true });
      return toTask(await reload(run), historyLength);
    },

    async *sendMessageStream(params) {
      const run = await tasks.send(request, assistant, checkedMessage(params));
      yield* follow(submittedTask(run), runs.eventsOfNew(run, signal));
    },

    async getTask(params) {
      const { historyLength } = checked(taskGet, params);
      return toTask((await tasks.find(request, assistant, params.id)).task, historyLength);
    },

    async listTasks(params) {
      const query = checked(taskList, params);
      const state = stateOf(query.status);
      const { tasks: rows, ...page } = await tasks.list(request, assistant, query, state);
      // No run has the other states of the protocol.
      if (query.status !== 0 && !state) return { ...page, tasks: [], nextPageToken: "", totalSize: 0 };
      const listed: Task[] = [];
      for (const row of rows) listed.push(await toTask(row, query.historyLength ?? 0, query.includeArtifacts ?? false));
      return { ...page, tasks: listed };
    },

    cancelTask: async ({ id }) => toTask(await reload(await tasks.cancel(request, assistant, id, signal))),

    async *resubscribe({ id }) {
      const { task, caller } = await tasks.find(request, assistant, id, runRoutes.joinRunStream);
      if (["completed", "failed", "canceled"].includes(task.state))
        throw new UnsupportedOperationError(`Task ${id} has ended: its state is ${task.state}.`);
      const { events } = await runs.events(caller, task, 0, signal);
      yield* follow(task, events);
    },

    async createTaskPushNotificationConfig(params) {
      const { id } = await tasks.addPushConfig(request, assistant, params.taskId, checked(pushConfigCreate, params));
      return { ...params, id };
    },

    async getTaskPushNotificationConfig({ taskId, id }) {
      // Clients of 0.3 may send no ID.
      const found = (await pushConfigsOf(taskId)).find((config) => config.id === id || !id);
      if (!found)
        throw new TaskNotFoundError(`Push notification config not found${id ? `: ${String(id).slice(0, 100)}` : ""}`);
      return found;
    },

    listTaskPushNotificationConfigs: async ({ taskId }) => ({
      configs: await pushConfigsOf(taskId),
      nextPageToken: "",
    }),

    deleteTaskPushNotificationConfig: ({ taskId, id }) => tasks.deletePushConfig(request, assistant, taskId, id),
  };
}

/** Without the secrets, which other users of the workspace could read. */
const publicConfig = ({ run_id }: TaskRow, { id, url, authentication }: PushConfig): TaskPushNotificationConfig => ({
  id,
  taskId: run_id,
  url,
  token: "",
  authentication: authentication && { scheme: authentication.scheme, credentials: "" },
  tenant: "",
});

function checked<S extends z.ZodType>(schema: S, params: unknown): z.output<S> {
  const { success, data, error } = schema.safeParse(params, { reportInput: true });
  if (success) return data;
  const reasons = exactIssues(error.issues).map(
    ({ issue, path }) => `${["params", ...path].join(".")}: ${issue.message}`,
  );
  throw new RequestMalformedError(reasons.slice(0, 3).join("; "));
}

/** The text of a message that was sent. */
interface SentText {
  length: number;
  isOpen: boolean;
}

/** Converts the events of one run to updates of its task. Each AI message is an artifact, to which its tokens are appended. */
class TaskUpdates {
  readonly #row: TaskRow;
  /** By message ID. */
  readonly #sent = new Map<string, SentText>();
  #isSubmitted: boolean;

  constructor(row: TaskRow) {
    this.#row = row;
    this.#isSubmitted = row.state === "submitted";
  }

  take({ event, data }: StreamedEvent): StreamResponse[] {
    const [mode] = event.split("|");
    // A further attempt of the run sends its messages from the start, and a gap is a part of a message that is missing.
    const updates = mode === "metadata" || mode === "gap" ? this.#closeOpen() : [];
    if (this.#isSubmitted) updates.push(this.#status(statusOf({ ...this.#row, ...WORKING() }, undefined)));
    this.#isSubmitted = false;
    if (mode === "messages") updates.push(...this.#message((JSON.parse(data) as [GraphMessage])[0]));
    return updates;
  }

  /** Closes the messages that were streamed in part, and forgets all messages. */
  #closeOpen(): StreamResponse[] {
    const open = [...this.#sent].filter(([, { isOpen }]) => isOpen);
    this.#sent.clear();
    return open.map(([id]) => this.#artifact(id, "", { append: true, lastChunk: true }));
  }

  #message({ id, type, content, tool_call_chunks }: GraphMessage): StreamResponse[] {
    if (!id || (type !== "ai" && type !== "AIMessageChunk")) return [];
    const sent = this.#sent.get(id);
    const text = textOf(content);
    const isOpen = Array.isArray(tool_call_chunks);
    // A node returns messages that its model has already sent token by token.
    if (text === "" || (!isOpen && sent)) return [];
    this.#sent.set(id, { length: (sent?.length ?? 0) + text.length, isOpen });
    return [this.#artifact(id, text, { append: sent !== undefined, lastChunk: !isOpen })];
  }

  /** @param task the ended task; undefined if its run was deleted or rolled back */
  finish(task: Task | undefined): StreamResponse[] {
    const updates: StreamResponse[] = [];
    for (const { artifactId, parts } of task?.artifacts ?? []) {
      const content = parts[0]?.content;
      const text = content?.$case === "text" ? content.value : "";
      if (this.#sent.get(artifactId)?.length === text.length) continue;
      // The message was not streamed, or this reader has missed a part of it.
      this.#sent.delete(artifactId);
      updates.push(this.#artifact(artifactId, text, { append: false, lastChunk: true }));
    }
    return [
      ...updates,
      ...this.#closeOpen(),
      this.#status(task?.status ?? statusOf({ ...this.#row, state: "canceled" }, undefined)),
    ];
  }

  get #ids() {
    return { taskId: this.#row.run_id, contextId: contextIdOf(this.#row), metadata: undefined };
  }

  #status(status: TaskStatus): StreamResponse {
    return { payload: { $case: "statusUpdate", value: { ...this.#ids, status } } };
  }

  #artifact(id: string, text: string, flags: { append: boolean; lastChunk: boolean }): StreamResponse {
    return { payload: { $case: "artifactUpdate", value: { ...this.#ids, artifact: artifactOf(id, text), ...flags } } };
  }
}

const WORKING = () => ({ state: "working" as const, changed_at: Date.now() });
