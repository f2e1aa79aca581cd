import {
  PushNotificationNotSupportedError,
  RequestMalformedError,
  TaskNotFoundError,
  UnsupportedOperationError,
} from "@a2a-js/sdk/errors";
import type { Caller } from "../../../platform/contract/caller.ts";
import { ApiError } from "../../../platform/errors.ts";
import type { BodyParser } from "../../../platform/http/body-parser.ts";
import type { Authorize } from "../../../platform/http/route.ts";
import { isUuid, newId } from "../../../platform/lib/ids.ts";
import type { Assistants } from "../../assistants/assistants.ts";
import { filterOf } from "../../auth/grants.ts";
import type { AgentContext } from "../../context.ts";
import type { MessageSend, PushConfigCreate, TaskList } from "../../contract/a2a.ts";
import { appRunRoutes } from "../../contract/app-runs.ts";
import { assistantRoutes } from "../../contract/assistants.ts";
import type { Assistant, Interrupt } from "../../contract/records.ts";
import { runCreate } from "../../contract/run-schemas.ts";
import { runRoutes } from "../../contract/runs.ts";
import type { Cancellations } from "../../engine/index.ts";
import type { RunRequest } from "../../runs/merge-request.ts";
import type { Runs } from "../../runs/runs.ts";
import { lockThreadAndRun, setPushConfigs } from "../../storage/runs.ts";
import type { PushConfig, RunRow } from "../../storage/schema.ts";
import { countTasks, findOutput, findTask, listTasks, type TaskRow, type TaskState } from "../../storage/tasks.ts";
import { findThread } from "../../storage/threads.ts";
import { deleteDelivery, pushDeliveryId } from "../../storage/webhooks.ts";
import { threadIdOf } from "../ag-ui/run-request.ts";
import { answerOf, inputOf } from "./messages.ts";

/** A request to an assistant. */
export interface A2aRequest {
  caller: Caller;
  /** Undefined if the caller needs no authorization by the project's handlers. */
  authorize: Authorize | undefined;
  /** Adds headers of the request to the configuration of its run. */
  withHeaders<Body extends Pick<RunRequest, "config">>(body: Body): Body;
  /** Version of the protocol. */
  version: PushConfig["version"];
}

/** The content of a task that its row does not contain. */
export interface TaskContent {
  /** The last messages of the state: at the end of the task or, if it has not succeeded, of its thread. */
  messages: unknown[];
  /** Whether the messages contain those of the task. */
  isOutput: boolean;
  interrupts: Interrupt[];
  error: { error: string; message: string } | undefined;
}

/** The last AI message is usually at the end, and clients request at most 10 messages. */
const MAX_MESSAGES = 30;
const MAX_INTERRUPTS = 100;
const MAX_PUSH_CONFIGS = 10;

const DEFAULT_PAGE = 50;

export class A2aTasks {
  readonly #context: AgentContext;
  readonly #runs: Runs;
  readonly #assistants: Assistants;
  readonly #cancellations: Cancellations;
  readonly #parser: Pick<BodyParser, "lastItems">;

  constructor(
    context: AgentContext,
    services: { runs: Runs; assistants: Assistants; cancellations: Cancellations },
    parser: Pick<BodyParser, "lastItems">,
  ) {
    this.#context = context;
    this.#runs = services.runs;
    this.#assistants = services.assistants;
    this.#cancellations = services.cancellations;
    this.#parser = parser;
  }

  get sendsPush(): boolean {
    return this.#context.webhooks.is_enabled;
  }

  /** @throws ApiError assistant_not_found, auth_refused */
  async findAssistant(
    { caller, authorize }: Pick<A2aRequest, "caller" | "authorize">,
    assistant_id: string,
  ): Promise<Assistant> {
    const parts = { params: { assistant_id }, query: {}, body: {}, caller };
    const authorized = await authorize?.(assistantRoutes.getAssistant, parts);
    return this.#assistants.get(authorized?.caller ?? caller, assistant_id);
  }

  /** @throws ApiError assistant_without_messages */
  async requireMessages({ assistant_id, graph_id, config, context }: Assistant): Promise<void> {
    const keys = await this.#assistants.inputKeys({ graph_id, config, context });
    if (!keys.includes("messages")) throw new ApiError("assistant_without_messages", { assistant_id });
  }

  /** Accepts the run of a message. A message with the ID of a paused task continues its thread. */
  async send(
    request: A2aRequest,
    assistant: Assistant,
    { message, configuration, metadata }: MessageSend,
  ): Promise<RunRow> {
    const { assistant_id } = assistant;
    const { contextId, taskId } = message;
    const thread_id = contextId === "" ? newId() : threadIdOf(request.caller, contextId);
    const config = configuration?.taskPushNotificationConfig;
    const push_configs = config && [this.#pushConfigOf(request, config)];
    const shared = {
      assistant_id,
      metadata: { ...metadata, ...(contextId !== "" && { a2a_context_id: contextId }) },
      if_not_exists: "create",
      stream_mode: ["messages-tuple"],
      stream_subgraphs: true,
    };
    if (taskId === "") {
      await this.requireMessages(assistant);
      return this.#create(request, thread_id, { ...shared, input: inputOf(message) }, push_configs);
    }
    const { task } = await this.find(request, assistant, taskId);
    if (contextId !== "" && thread_id !== task.thread_id)
      throw new RequestMalformedError("params.message.contextId: must be the contextId of the task");
    const interrupts = await this.#openInterrupts(task);
    const resume = interrupts.length > 0 && answerOf(message, interrupts);
    const body = resume ? { ...shared, command: { resume }, strict_resume: true } : { ...shared, input: null };
    return this.#create(request, task.thread_id, body, push_configs);
  }

  async #create(
    { caller, authorize, withHeaders }: A2aRequest,
    thread_id: string,
    given: object,
    push_configs: PushConfig[] | undefined,
  ): Promise<RunRow> {
    const body = withHeaders(runCreate.parse(given));
    const parts = { params: { thread_id }, query: {}, body, caller };
    const authorized = ((await authorize?.(runRoutes.createRun, parts)) ?? parts) as typeof parts;
    return this.#runs.create(authorized.caller, thread_id, {
      ...authorized.body,
      ...(push_configs && { push_configs }),
    });
  }

  /** Returns the open interrupts of a paused task; none if it has stopped at a breakpoint. */
  async #openInterrupts({ tenant_id, thread_id, run_id, state }: TaskRow): Promise<Interrupt[]> {
    const thread =
      state === "input-required" ? await findThread(this.#context.database.read, tenant_id, thread_id) : undefined;
    if (thread?.status !== "interrupted")
      throw new UnsupportedOperationError(
        thread
          ? `Task ${run_id} cannot be continued, because its thread has the status ${thread.status}. To start a new task, send the message without taskId.`
          : `Task ${run_id} is not waiting for input: its state is ${state}. To start a new task, send the message without taskId.`,
      );
    return Object.values(JSON.parse(thread.interrupts) as Record<string, Interrupt[]>).flat();
  }

  /**
   * Finds a task of the assistant that the caller may access.
   *
   * @param route authorizes the access
   */
  async find(
    { caller, authorize }: A2aRequest,
    { assistant_id }: Assistant,
    id: string,
    route: Parameters<Authorize>[0] = runRoutes.getRun,
  ): Promise<{ task: TaskRow; caller: Caller }> {
    if (typeof id !== "string" || id === "") throw new RequestMalformedError("params: must contain the ID of a task");
    const { read } = this.#context.database;
    const key = { tenant_id: caller.tenant_id, assistant_id, run_id: id.toLowerCase() };
    const found = isUuid(id) ? await findTask(read, key) : undefined;
    const params = { thread_id: found?.thread_id, run_id: id };
    const authorized = await authorize?.(route, { params, query: {}, body: {}, caller });
    const access = authorized && filterOf(authorized.caller, "threads");
    const task = found && access ? await findTask(read, { ...key, access }) : found;
    if (!task) throw new TaskNotFoundError(`Task not found: ${id.slice(0, 100)}`);
    return { task, caller: authorized?.caller ?? caller };
  }

  /** Returns the current row of a task that the caller has found or created. */
  async reload({ tenant_id, run_id }: Pick<TaskRow, "tenant_id" | "run_id">): Promise<TaskRow | undefined> {
    return findTask(this.#context.database.read, { tenant_id, run_id });
  }

  async list(
    { caller, authorize }: A2aRequest,
    { assistant_id }: Assistant,
    query: TaskList,
    state: TaskState | undefined,
  ) {
    const { contextId, pageSize = DEFAULT_PAGE, pageToken, statusTimestampAfter } = query;
    const thread_id = contextId === "" ? undefined : threadIdOf(caller, contextId);
    const route = thread_id === undefined ? appRunRoutes.listAllRuns : runRoutes.listRuns;
    const authorized = await authorize?.(route, { params: { thread_id }, query: {}, body: {}, caller });
    const filter = {
      tenant_id: caller.tenant_id,
      access: authorized && filterOf(authorized.caller, "threads"),
      assistant_id,
      thread_id,
      state,
      changed_from: statusTimestampAfter === undefined ? undefined : Date.parse(statusTimestampAfter),
    };
    const [changed_at, seq] = pageToken.split(".").map(Number) as [number, number];
    const { search } = this.#context.database;
    const after = pageToken === "" ? undefined : { changed_at, seq };
    const rows = await listTasks(search, filter, { after, limit: pageSize + 1 });
    const tasks = rows.slice(0, pageSize);
    const last = rows.length > pageSize ? tasks.at(-1) : undefined;
    return {
      tasks,
      nextPageToken: last ? `${last.changed_at}.${last.seq}` : "",
      pageSize,
      totalSize: await countTasks(search, filter),
    };
  }

  /** Long outputs are parsed in a worker thread. */
  async contentOf({ tenant_id, run_id, thread_id, state }: TaskRow): Promise<TaskContent> {
    const { read } = this.#context.database;
    const output = state === "submitted" || state === "working" ? null : await findOutput(read, run_id);
    return readContent(state, output, this.#parser, async () => (await findThread(read, tenant_id, thread_id))?.values);
  }

  /** @throws ApiError run_ended */
  async cancel(request: A2aRequest, assistant: Assistant, id: string, signal: AbortSignal): Promise<TaskRow> {
    const { task, caller } = await this.find(request, assistant, id, runRoutes.cancelRun);
    const intent = { action: "interrupt", reason: null } as const;
    await this.#cancellations.cancel(caller, task.thread_id, task.run_id, intent, signal);
    return task;
  }

  /** Adds a configuration to an active task, or replaces the one with its ID. */
  async addPushConfig(
    request: A2aRequest,
    assistant: Assistant,
    id: string,
    given: PushConfigCreate,
  ): Promise<PushConfig> {
    const config = this.#pushConfigOf(request, given);
    const { task } = await this.find(request, assistant, id, runRoutes.cancelRun);
    await this.#changePushConfigs(task, (configs, { ended_at }) => {
      if (ended_at !== null) throw new UnsupportedOperationError(`Task ${id} is not running.`);
      const changed = [...configs.filter((other) => other.id !== config.id), config];
      if (changed.length > MAX_PUSH_CONFIGS)
        throw new UnsupportedOperationError(`A task can have at most ${MAX_PUSH_CONFIGS} push notification configs.`);
      return changed;
    });
    return config;
  }

  /** Also deletes the notification that has not been delivered. */
  async deletePushConfig(request: A2aRequest, assistant: Assistant, id: string, config_id: string): Promise<void> {
    if (!this.sendsPush) throw new PushNotificationNotSupportedError();
    const { task } = await this.find(request, assistant, id, runRoutes.cancelRun);
    await this.#changePushConfigs(task, (configs) => configs.filter((config) => config.id !== config_id), config_id);
  }

  async #changePushConfigs(
    task: TaskRow,
    change: (configs: PushConfig[], run: RunRow) => PushConfig[],
    deleted_id?: string,
  ): Promise<void> {
    await this.#context.database.write(async (tx) => {
      const run = await lockThreadAndRun(tx, task);
      if (!run) throw new TaskNotFoundError(`Task not found: ${task.run_id}`);
      const changed = change(JSON.parse(run.push_configs ?? "[]"), run);
      await setPushConfigs(tx, run.run_id, changed.length === 0 ? null : JSON.stringify(changed));
      if (deleted_id !== undefined) await deleteDelivery(tx, pushDeliveryId(run.run_id, deleted_id));
    });
  }

  #pushConfigOf({ version }: A2aRequest, { id, url, token, authentication }: PushConfigCreate): PushConfig {
    if (!this.sendsPush) throw new PushNotificationNotSupportedError();
    const refusal = URL.canParse(url) ? this.#context.webhooks.refusal(url) : "The URL must be absolute.";
    if (refusal !== undefined) throw new RequestMalformedError(`url: ${refusal}`);
    const { scheme, credentials } = authentication ?? { scheme: "", credentials: "" };
    return {
      id: id === "" ? newId() : id,
      url,
      ...(token !== "" && { token }),
      ...(scheme !== "" && { authentication: { scheme, credentials } }),
      version,
    };
  }
}

/** @param valuesOf returns the state of the thread, for a task that has none of its own */
export async function readContent(
  state: TaskState,
  output: string | null,
  parser: Pick<BodyParser, "lastItems">,
  valuesOf: () => Promise<string | null | undefined>,
): Promise<TaskContent> {
  const isOutput = state !== "failed" && output !== null;
  const text = isOutput ? output : ((await valuesOf()) ?? "{}");
  const counts = { messages: MAX_MESSAGES, __interrupt__: MAX_INTERRUPTS };
  const { messages, __interrupt__ } = await parser.lastItems(text, counts);
  const { __error__ } = (state === "failed" ? JSON.parse(output ?? "{}") : {}) as { __error__?: TaskContent["error"] };
  return { messages, isOutput, interrupts: __interrupt__ as Interrupt[], error: __error__ };
}
