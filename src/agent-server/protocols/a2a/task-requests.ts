import type { AgentCard, StreamResponse, Task, TaskPushNotificationConfig } from "@a2a-js/sdk";
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
import { stateOf, taskOf } from "./task-objects.ts";
import { TaskUpdates } from "./task-updates.ts";
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
      if (!found) throw new TaskNotFoundError(`Push notification config not found: ${String(id).slice(0, 100)}`);
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
