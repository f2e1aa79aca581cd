import type { StreamEvent } from "@langchain/core/tracers/log_stream";
import { ASK_FOR_TOKEN, type AskForToken, isTokenQuestion } from "../author/token-question.ts";
import type { CheckpointData, HostOutcome, RunOrder, StateSummary, WriteKey } from "../host.ts";
import { INTERRUPT, isGivenAnswer } from "./answers.ts";
import { toCommand } from "./commands.ts";
import { CommitPoints } from "./commit-points.ts";
import type { Library } from "./loading/library.ts";
import type { CompiledGraph, LoadedGraph, LoadedGraphs } from "./loading/load.ts";
import type { RunningInHost } from "./running-in-host.ts";
import { describedBy, type Scope, withScope } from "./scope.ts";
import { openTasks, summarize } from "./state.ts";
import { StreamTranslator, sourceModes } from "./stream-modes.ts";
import { toWire } from "./wire.ts";

export interface Execution {
  order: RunOrder;
  /** The thread's newest root checkpoint. */
  head: CheckpointData | null;
  /** What an earlier claim of the run has written on the checkpoint that it starts from. */
  begun: readonly WriteKey[];
  graphs: LoadedGraphs;
  run: RunningInHost;
  /** Where the run's events go. */
  emit: (event: string, data: string) => void;
  /** How the run's graph asks for tokens of the run's user. */
  askForToken: AskForToken;
}

/** Executes a run to its end, whatever that is: it answers how the run ended and never throws. */
export async function executeRun(execution: Execution): Promise<HostOutcome> {
  const { order, head, graphs, run, emit } = execution;
  const translator = new StreamTranslator(order.kwargs.stream_mode, emit);
  const scope: Scope = { run: order, metadata: checkpointMetadata(order), head: { data: head } };
  // LangGraph forgets in memory alone that an answer was given: it would give it to the next question, too.
  scope.answered = execution.begun.some(isGivenAnswer);
  let graph: CompiledGraph | undefined;
  try {
    const loaded = await graphs.get(order.graph_id, order.kwargs.config, {
      accessContext: "threads.create_run",
      executionRuntime: { context: order.kwargs.context ?? undefined },
    });
    graph = loaded.graph;
    scope.commits = new CommitPoints(order.kwargs.durability, graph);
    run.signal.throwIfAborted();
    await stream(loaded, execution, scope, translator);
    run.signal.throwIfAborted();
    return await finished(graph, order, scope, translator);
  } catch (error) {
    return await failed(error, graph, execution, scope);
  }
}

async function stream(
  { graph, library }: LoadedGraph,
  execution: Execution,
  scope: Scope,
  translator: StreamTranslator,
): Promise<void> {
  const { order, run, begun } = execution;
  const { kwargs } = order;
  const resumed = hasOwnCheckpoint(execution);
  const { RunControl } = library.langgraph;
  const control = RunControl && new RunControl();
  run.onDrain(() => control?.requestDrain("shutdown"));
  const options = {
    ...streamOptions(execution, scope, resumed),
    ...(control && { control }),
    signal: run.signal,
    streamMode: sourceModes(kwargs.stream_mode),
    subgraphs: kwargs.subgraphs,
  };
  const input = resumed || begun.length > 0 ? null : await inputOf(graph, library, execution, scope);
  const take = (chunk: unknown) => {
    const [namespace, mode, data] = kwargs.subgraphs
      ? (chunk as [string[], string, unknown])
      : [[], ...(chunk as [string, unknown])];
    translator.take(namespace, mode, data);
  };
  if (!kwargs.stream_mode.includes("events")) {
    const chunks = (await graph.stream(input as never, options as never)) as AsyncIterable<unknown>;
    for await (const chunk of chunks) take(chunk);
    return;
  }
  const events = graph.streamEvents(
    input as never,
    { ...options, version: "v2" } as never,
  ) as unknown as AsyncIterable<StreamEvent>;
  for await (const event of events) {
    // The root's own chunks are what graph.stream() would have yielded; everything else is a LangChain event.
    if (event.event === "on_chain_stream" && event.run_id === order.run_id) take(event.data.chunk);
    else translator.takeEvent(event);
  }
}

async function inputOf(graph: CompiledGraph, library: Library, execution: Execution, scope: Scope): Promise<unknown> {
  const { command, input } = execution.order.kwargs;
  if (!command) return input ?? null;
  if (!("resume" in command)) return toCommand(command, library);
  // The plain answer of an earlier run is still there, and was for a question of that run.
  scope.answered = true;
  if (command.resume && !mayAskForToken(execution)) return toCommand(command, library);
  const open = openTasks(await graph.getState(stateConfig(execution.order, scope))).flatMap((task) => task.interrupts);
  const question = open.find((one) => !isTokenQuestion(one));
  // LangGraph takes an answer that is false in a condition (null, 0, "") for none, unless it is given by id. A question for a
  // token takes no answer: a plain one would go to the next question that the node asks.
  const id = command.resume && question ? undefined : (question ?? open[0])?.id;
  return toCommand(id === undefined ? command : { ...command, resume: { [id]: command.resume } }, library);
}

/** False when the run surely answers no question for a token, which saves it the look at the thread's state. */
function mayAskForToken({ order, head }: Execution): boolean {
  const { checkpoint_id } = order.kwargs.config.configurable ?? {};
  if (checkpoint_id !== undefined && checkpoint_id !== head?.checkpoint_id) return true;
  return head?.writes.some(({ channel, value }) => channel === INTERRUPT && value.includes('"auth_url"')) ?? false;
}

/** Undefined options are left out: LangGraph would take them for a wish and forget the graph's own defaults. */
function streamOptions({ order, askForToken }: Execution, scope: Scope, resumed: boolean): Record<string, unknown> {
  const { run_id, kwargs, thread_id } = order;
  const { recursion_limit, tags, configurable = {} } = kwargs.config;
  // A resumed run goes on from its own newest checkpoint, not from the one it once forked from.
  const { checkpoint_id, ...own } = configurable;
  const position = resumed || checkpoint_id === undefined ? own : configurable;
  const options: Record<string, unknown> = {
    configurable: withScope({ ...position, thread_id, run_id, [ASK_FOR_TOKEN]: askForToken }, scope),
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

/** Metadata of the run's checkpoints; LangGraph recognises a retried run by the run id in it. */
function checkpointMetadata({
  run_id,
  thread_id,
  graph_id,
  assistant_id,
  attempt,
  kwargs,
}: RunOrder): Record<string, unknown> {
  return {
    ...describedBy(kwargs.config.configurable),
    ...kwargs.config.metadata,
    run_id,
    thread_id,
    graph_id,
    assistant_id,
    run_attempt: attempt,
  };
}

/** Whether an earlier claim of the run got as far as a checkpoint, so that this one goes on from there. */
function hasOwnCheckpoint({ order, head }: Execution): boolean {
  if (order.epoch === 1 || !head) return false;
  return (JSON.parse(head.metadata) as { run_id?: string }).run_id === order.run_id;
}

async function finished(
  graph: CompiledGraph,
  order: RunOrder,
  scope: Scope,
  translator: StreamTranslator,
): Promise<HostOutcome> {
  const { lastValues, interrupts } = translator;
  if (interrupts === undefined && lastValues !== undefined) {
    // The graph ran to its end, so its last values are its state: no need to read that back.
    const output = translator.lastText ?? toWire(lastValues);
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
  { order, run }: Execution,
  scope: Scope,
): Promise<HostOutcome> {
  const state = graph && (await readSummary(graph, order, scope).catch(() => undefined));
  const output = state?.values ?? "null";
  if (run.reason !== undefined) return { ended: "aborted", output, state, error: undefined };
  const { name, message } = describeError(error);
  if (name === "GraphDrained") return { ended: "drained", output, state, error: undefined };
  return { ended: "error", output, state, error: { error: name, message } };
}

function describeError(error: unknown): { name: string; message: string } {
  if (error instanceof Error) return { name: error.name, message: error.message };
  return { name: "Error", message: typeof error === "string" ? error : safeWire(error) };
}

function safeWire(value: unknown): string {
  try {
    return toWire(value);
  } catch {
    return String(value);
  }
}

const readSummary = async (graph: CompiledGraph, order: RunOrder, scope: Scope): Promise<StateSummary> =>
  summarize(await graph.getState(stateConfig(order, scope)));

/** Where the newest state of the run's thread is. */
const stateConfig = ({ thread_id }: RunOrder, scope: Scope) => ({
  // The checkpoint that came with the order is for the run itself, and only while it is the newest.
  configurable: withScope({ thread_id }, { ...scope, head: undefined, withoutAnswers: true }),
});
