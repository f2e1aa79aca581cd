import type { StreamEvent } from "@langchain/core/tracers/log_stream";
import { isObject } from "../../../platform/lib/json/json.ts";
import { unlessAborted } from "../../../platform/lib/signal.ts";
import { isTokenInterrupt, REQUEST_TOKEN_KEY, type RequestToken } from "../author/token-interrupt.ts";
import type { CheckpointData, WriteKey } from "../checkpoint-requests.ts";
import type { AbortReason, HostOutcome, RunOrder } from "../host.ts";
import { type Scope, withScope } from "./checkpointer.ts";
import { INTERRUPT, isConsumedResume, isResume, toCommand } from "./commands.ts";
import { CommitPoints } from "./commit-points.ts";
import type { Library } from "./loading/library.ts";
import type { CompiledGraph, LoadedGraph, LoadedGraphs } from "./loading/load.ts";
import { MessageBlocks } from "./message-blocks.ts";
import { openTasks, readSummary, startConfig, stateAtBreakpoint } from "./state.ts";
import { StreamedState, StreamTranslator, sourceModes } from "./stream-modes.ts";
import { PROTOCOL_MODES, type ProtocolEvent, ThreadProtocolTranslator, withMessageBlocks } from "./thread-protocol.ts";
import { type TracedExecution, tracingCallbacks } from "./tracer.ts";
import { isError, toWire } from "./wire.ts";

export class RunControls {
  readonly #controller = new AbortController();
  #requestDrain: (() => void) | undefined;
  #draining = false;
  abort_reason: AbortReason | undefined;

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  abort(reason: AbortReason): void {
    this.abort_reason ??= reason;
    this.#controller.abort(new Error(`The run was stopped: ${reason.replace("_", " ")}.`));
  }

  drain(): void {
    this.#draining = true;
    this.#requestDrain?.();
  }

  onDrain(request: () => void): void {
    this.#requestDrain = request;
    if (this.#draining) request();
  }
}

export interface Execution {
  order: RunOrder;
  head: CheckpointData | null;
  prior_writes: readonly WriteKey[];
  /** Whether a task of the graph or of a subgraph has consumed a resume value of the run in an earlier claim. */
  resume_consumed: boolean;
  graphs: LoadedGraphs;
  controls: RunControls;
  emit: (event: string, data: string) => void;
  requestToken: RequestToken;
  /** Undefined if the run is not traced. */
  tracing: TracedExecution | undefined;
}

const NO_THREAD_PROTOCOL =
  "The thread protocol (version 2 of streaming) requires a newer version of @langchain/langgraph. Update the package, or use the run endpoints.";

/** Never rejects: an error is returned as an outcome. */
export async function executeRun(execution: Execution): Promise<HostOutcome> {
  const { order, head, graphs, controls } = execution;
  const streamed = new StreamedState();
  const scope: Scope = { run: order, metadata: checkpointMetadata(order), head: { data: head } };
  // LangGraph records the consumption of a resume value only in memory; a later claim would pass it to the next interrupt, too.
  scope.isResumeConsumed = execution.resume_consumed;
  let graph: CompiledGraph | undefined;
  try {
    const loading = graphs.get(order.graph_id, order.kwargs.config, {
      accessContext: "threads.create_run",
      executionRuntime: { context: order.kwargs.context ?? undefined },
    });
    // A factory that hangs would keep the slot of the run.
    const loaded = await unlessAborted(controls.signal, loading);
    graph = loaded.graph;
    scope.commits = new CommitPoints(order.kwargs.durability, graph);
    controls.signal.throwIfAborted();
    await stream(loaded, execution, scope, streamed);
    controls.signal.throwIfAborted();
    return await finished(graph, order, scope, streamed);
  } catch (error) {
    return await failed(error, graph, execution, scope);
  }
}

async function stream(
  { graph, library }: LoadedGraph,
  execution: Execution,
  scope: Scope,
  streamed: StreamedState,
): Promise<void> {
  const { order, controls, prior_writes, emit } = execution;
  const { kwargs } = order;
  const resumed = hasOwnCheckpoint(execution);
  const stopped = resumed && execution.head && (await stateAtBreakpoint(graph, order, execution.head, scope));
  if (stopped) {
    streamed.lastValues = stopped.values;
    streamed.interrupts = [];
    return;
  }
  const { RunControl } = library.langgraph;
  const control = RunControl && new RunControl();
  controls.onDrain(() => control?.requestDrain("shutdown"));
  const options = {
    ...streamOptions(execution, scope, resumed),
    ...(control && { control }),
    ...(execution.tracing && { callbacks: tracingCallbacks(library, execution.tracing) }),
    signal: controls.signal,
  };
  const input = resumed
    ? null
    : prior_writes.length > 0
      ? await remainingInput(graph, library, execution, scope)
      : await inputOf(graph, library, execution, scope);
  if (kwargs.stream_protocol === "v2") return streamThreadProtocol({ graph, library }, input, options, emit, streamed);
  const translator = new StreamTranslator(kwargs.stream_mode, emit, streamed);
  const modes = { ...options, streamMode: sourceModes(kwargs.stream_mode), subgraphs: kwargs.subgraphs };
  const take = (chunk: unknown) => {
    const [namespace, mode, data] = kwargs.subgraphs
      ? (chunk as [string[], string, unknown])
      : [[], ...(chunk as [string, unknown])];
    translator.take(namespace, mode, data);
  };
  if (!kwargs.stream_mode.includes("events")) {
    const chunks = (await graph.stream(input as never, modes as never)) as AsyncIterable<unknown>;
    for await (const chunk of chunks) take(chunk);
    return;
  }
  const events = graph.streamEvents(
    input as never,
    { ...modes, version: "v2" } as never,
  ) as unknown as AsyncIterable<StreamEvent>;
  for await (const event of events) {
    // The chunks of the root graph are those of graph.stream(); the rest are LangChain events.
    if (event.event === "on_chain_stream" && event.run_id === order.run_id) take(event.data.chunk);
    else translator.takeEvent(event);
  }
}

async function streamThreadProtocol(
  { graph, library }: Pick<LoadedGraph, "graph" | "library">,
  input: unknown,
  options: Record<string, unknown>,
  emit: Execution["emit"],
  streamed: StreamedState,
): Promise<void> {
  const { createGraphRunStream } = library.langgraph;
  if (!createGraphRunStream) throw new Error(NO_THREAD_PROTOCOL);
  const translator = new ThreadProtocolTranslator(emit, streamed);
  const messages = new MessageBlocks();
  // With any `version` except v3, LangGraph also streams references to checkpoints, and passes models the same callbacks as without it.
  const modes = { ...options, streamMode: PROTOCOL_MODES, subgraphs: true, version: "v2" };
  const chunks = (await graph.stream(input as never, modes as never)) as never;
  const events = createGraphRunStream(withMessageBlocks(chunks, messages) as never, [
    ...(graph.streamTransformers ?? []),
  ]);
  try {
    for await (const event of events as AsyncIterable<ProtocolEvent>) translator.take(event);
  } finally {
    for (const event of messages.fail()) translator.takeMessage(event);
    translator.end();
  }
}

async function inputOf(graph: CompiledGraph, library: Library, execution: Execution, scope: Scope): Promise<unknown> {
  const { command, input } = execution.order.kwargs;
  if (!command) return input ?? null;
  if (!("resume" in command)) return toCommand(command, library);
  // The stored resume value belongs to an interrupt of an earlier run.
  scope.isResumeConsumed = true;
  if (command.resume && !mayNeedToken(execution)) return toCommand(command, library);
  const state = await graph.getState(startConfig(execution.order, scope));
  const open = openTasks(state).flatMap((task) => task.interrupts);
  const interrupt = open.find((item) => !isTokenInterrupt(item));
  // LangGraph ignores a falsy resume value (null, 0, "") without an interrupt id. A token interrupt consumes no value: without an id,
  // the value would go to the next interrupt of the node.
  const id = command.resume && interrupt ? undefined : (interrupt ?? open[0])?.id;
  return toCommand(id === undefined ? command : { ...command, resume: { [id]: command.resume } }, library);
}

const INTERRUPT_ID = /^[0-9a-f]{32}$/;

/**
 * Returns the answers by interrupt ID that no task has consumed. LangGraph stores an answer for the task of its interrupt when the task
 * ends; until then it knows the answer only from the input.
 */
async function remainingInput(
  graph: CompiledGraph,
  library: Library,
  { order, prior_writes }: Execution,
  scope: Scope,
): Promise<unknown> {
  const { command } = order.kwargs;
  const resume: unknown = command?.resume;
  if (!command || !("resume" in command) || (resume && !isObject(resume))) return null;
  const open = openTasks(await graph.getState(startConfig(order, scope)));
  // LangGraph has stored the answers for tasks with the IDs of the interrupts. inputOf() has chosen the one for a value that is falsy.
  const stored = prior_writes.find((write) => isResume(write) && INTERRUPT_ID.test(write.task_id))?.task_id;
  const answers: Record<string, unknown> = isObject(resume) ? resume : stored === undefined ? {} : { [stored]: resume };
  const consumed = new Set(
    prior_writes
      .filter((write) => isConsumedResume(write) && !(write.task_id in answers))
      .map(({ task_id }) => task_id),
  );
  const waiting = open.filter(({ id }) => !consumed.has(id)).flatMap(({ interrupts }) => interrupts);
  const remaining = waiting.flatMap(({ id }) => (id !== undefined && id in answers ? [[id, answers[id]]] : []));
  return remaining.length === 0 ? null : toCommand({ resume: Object.fromEntries(remaining) }, library);
}

/** Whether the run may resume a token interrupt. False saves a read of the thread's state. */
function mayNeedToken({ order, head }: Execution): boolean {
  const { checkpoint_id } = order.kwargs.config.configurable ?? {};
  if (checkpoint_id !== undefined && checkpoint_id !== head?.checkpoint_id) return true;
  return head?.writes.some(({ channel, value }) => channel === INTERRUPT && value.includes('"auth_url"')) ?? false;
}

/** Undefined options are omitted, because in LangGraph they would override the graph's defaults. */
function streamOptions({ order, requestToken }: Execution, scope: Scope, resumed: boolean): Record<string, unknown> {
  const { run_id, kwargs, thread_id } = order;
  const { recursion_limit, tags, configurable = {} } = kwargs.config;
  // A resumed run continues from its own newest checkpoint, not from the checkpoint that it forked.
  const { checkpoint_id, ...own } = configurable;
  const position = resumed || checkpoint_id === undefined ? own : configurable;
  const options: Record<string, unknown> = {
    configurable: withScope({ ...position, thread_id, run_id, [REQUEST_TOKEN_KEY]: requestToken }, scope),
    metadata: scope.metadata,
    runId: run_id,
    durability: kwargs.durability ?? "sync",
    tags,
    recursionLimit: recursion_limit,
    context: kwargs.context ?? undefined,
    interruptBefore: kwargs.interrupt_before ?? undefined,
    interruptAfter: kwargs.interrupt_after ?? undefined,
  };
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}

/** Returns the metadata of the run's checkpoints. LangGraph recognizes a retried run by the run id. */
function checkpointMetadata({ run_id, thread_id, graph_id, assistant_id, attempt, kwargs }: RunOrder) {
  return {
    ...configurableMetadata(kwargs.config.configurable),
    ...kwargs.config.metadata,
    run_id,
    thread_id,
    graph_id,
    assistant_id,
    run_attempt: attempt,
  };
}

/** Whether an earlier claim of the run stored a checkpoint, from which this claim continues. */
function hasOwnCheckpoint({ order, head }: Execution): boolean {
  if (order.epoch === 1 || !head) return false;
  return (JSON.parse(head.metadata) as { run_id?: string }).run_id === order.run_id;
}

async function finished(
  graph: CompiledGraph,
  order: RunOrder,
  scope: Scope,
  streamed: StreamedState,
): Promise<HostOutcome> {
  const { lastValues, interrupts } = streamed;
  if (interrupts === undefined && lastValues !== undefined) {
    // The last values of a completed graph are its state.
    const output = streamed.lastValuesText ?? toWire(lastValues);
    return { ended: "success", output, state: { values: output, next: [], interrupts: "{}" }, error: undefined };
  }
  const state = await readSummary(graph, order, scope);
  const ended = interrupts !== undefined || state.next.length > 0 ? "interrupted" : "success";
  const output =
    interrupts === undefined
      ? state.values
      : toWire({ ...(lastValues as object | undefined), __interrupt__: interrupts });
  return { ended, output, state, error: undefined };
}

async function failed(
  error: unknown,
  graph: CompiledGraph | undefined,
  { order, controls }: Execution,
  scope: Scope,
): Promise<HostOutcome> {
  const state = graph && (await readSummary(graph, order, scope).catch(() => undefined));
  const output = state?.values ?? "null";
  if (controls.abort_reason !== undefined) return { ended: "aborted", output, state, error: undefined };
  const { name, message } = describeError(error);
  if (name === "GraphDrained") return { ended: "drained", output, state, error: undefined };
  return { ended: "error", output, state, error: { error: name, message } };
}

function describeError(error: unknown): { name: string; message: string } {
  if (isError(error)) return { name: error.name, message: error.message };
  return { name: "Error", message: typeof error === "string" ? error : safeWire(error) };
}

function safeWire(value: unknown): string {
  try {
    return toWire(value);
  } catch {
    return String(value);
  }
}

const INTERNAL_KEYS = new Set(["checkpoint_ns", "checkpoint_id", "checkpoint_map", "run_id", "thread_id"]);

/** Returns `configurable` without internal keys and without the caller's identity. */
function configurableMetadata(configurable: Record<string, unknown> = {}): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(configurable).filter(
      ([key]) => !key.startsWith("__") && !key.startsWith("langgraph_auth_") && !INTERNAL_KEYS.has(key),
    ),
  );
}
