import type { StateSnapshot } from "@langchain/langgraph";
import { selectState } from "../../../platform/lib/json/select-state.ts";
import type {
  FromHost,
  GraphInUse,
  GraphSchemas,
  HistoryPage,
  Question,
  StagedUpdate,
  StateUpdate,
  ToHost,
} from "../host.ts";
import { toCommand } from "./commands.ts";
import { draw } from "./drawing.ts";
import type { Library } from "./loading/library.ts";
import type { CompiledGraph, FactoryRuntime, LoadedGraph, LoadedGraphs } from "./loading/load.ts";
import { schemasOf } from "./schemas.ts";
import { type Scope, withScope } from "./scope.ts";
import { summarize, toConfigurable, toThreadState } from "./state.ts";
import { toWire } from "./wire.ts";

type Ask = Extract<ToHost, { type: "ask" }>;
type Answer = Extract<FromHost, { type: "answer" }>;

/** Answers one question; a failure is an answer too. */
export async function answerQuestion({ id, question }: Ask, graphs: LoadedGraphs): Promise<Answer> {
  try {
    return { type: "answer", id, value: await answer(question, graphs) };
  } catch (error) {
    const { name, message } = error instanceof Error ? error : { name: "Error", message: String(error) };
    return { type: "answer", id, error: { name, message } };
  }
}

async function answer(question: Question, graphs: LoadedGraphs): Promise<unknown> {
  const used = await useGraph(question.graph, graphs, ACCESS[question.kind]);
  const { graph, library } = used;
  switch (question.kind) {
    case "state": {
      const config = { configurable: withScope(toConfigurable(question.checkpoint), LOOK) };
      return stateText(await graph.getState(config, { subgraphs: question.subgraphs }), question.select);
    }
    case "summary": {
      const scope = { ...LOOK, without: question.without };
      return summarize(await graph.getState({ configurable: withScope(toConfigurable(question.checkpoint), scope) }));
    }
    case "history":
      return await history(graph, question);
    case "update":
      return await stageUpdate(used, question);
    case "drawing":
      return toWire(await draw(graph, question.xray));
    case "schemas":
      return schemasOf(graph, library);
    case "subgraphs":
      return await subgraphs(used, question);
  }
}

/** For who looks at a state, or changes it by hand. */
const LOOK: Scope = { metadata: {}, withoutAnswers: true };

const ACCESS: Record<Question["kind"], FactoryRuntime["accessContext"]> = {
  state: "threads.read",
  summary: "threads.read",
  history: "threads.read",
  update: "threads.update",
  drawing: "assistants.read",
  schemas: "assistants.read",
  subgraphs: "assistants.read",
};

const useGraph = (
  { graph_id, config, context }: GraphInUse,
  graphs: LoadedGraphs,
  accessContext: FactoryRuntime["accessContext"],
) => graphs.get(graph_id, config, { accessContext, executionRuntime: context ? { context } : null });

/** A page of history ends with the state that makes it longer than this. */
const PAGE_CHARS = 8_000_000;

async function history(
  graph: CompiledGraph,
  { checkpoint, before, metadata, limit, select }: Extract<Question, { kind: "history" }>,
): Promise<HistoryPage> {
  const states: string[] = [];
  const page = () => ({ states: new TextEncoder().encode(states.join()), count: states.length });
  let chars = 0;
  const options = {
    limit,
    filter: metadata as Record<string, unknown> | undefined,
    before: before === undefined ? undefined : { configurable: { checkpoint_id: before } },
  };
  for await (const snapshot of graph.getStateHistory({ configurable: toConfigurable(checkpoint) }, options)) {
    const text = stateText(snapshot, select);
    states.push(text);
    chars += text.length;
    if (chars > PAGE_CHARS && states.length < limit)
      return { ...page(), before: snapshot.config.configurable?.checkpoint_id };
  }
  return page();
}

const stateText = (snapshot: StateSnapshot, select: readonly string[] | undefined): string =>
  toWire(selectState(toThreadState(snapshot), select));

/** Works an update out without storing anything: the service stores it whole, if the thread is still free. */
async function stageUpdate(
  { graph, library }: LoadedGraph,
  question: Extract<Question, { kind: "update" }>,
): Promise<StagedUpdate> {
  const { thread_id } = question.checkpoint;
  const staged: Pick<StagedUpdate, "puts" | "writes"> = { puts: [], writes: [] };
  const { graph_id, config } = question.graph;
  const scope: Scope = { ...LOOK, staged, metadata: { ...config.metadata, thread_id, graph_id } };
  const start = { configurable: withScope(toConfigurable(question.checkpoint), scope) };
  const head = await graph.getState({ configurable: { thread_id } });
  let current: { configurable?: Record<string, unknown> } = start;
  for (const updates of question.supersteps) {
    current = await graph.bulkUpdateState(
      { configurable: withScope({ ...start.configurable, ...current.configurable }, scope) },
      [{ updates: updates.map((update) => toStateUpdate(update, library)) }],
    );
  }
  // Without a checkpoint id: what is newest once the update is stored, pending writes included.
  const state = summarize(await graph.getState({ configurable: withScope({ thread_id }, scope) }));
  const { checkpoint_ns = "", checkpoint_id } = (current.configurable ?? {}) as {
    checkpoint_ns?: string;
    checkpoint_id?: string;
  };
  return {
    ...staged,
    base: head.config.configurable?.checkpoint_id,
    checkpoint: { thread_id, checkpoint_ns, checkpoint_id },
    state,
  };
}

function toStateUpdate({ values, command, as_node }: StateUpdate, library: Library) {
  return {
    values: (command ? toCommand(command, library) : values) as Record<string, unknown>,
    asNode: as_node ?? undefined,
  };
}

async function subgraphs(
  { graph, library }: LoadedGraph,
  { namespace, recurse }: Extract<Question, { kind: "subgraphs" }>,
) {
  const found: Record<string, GraphSchemas> = {};
  for await (const [name, subgraph] of graph.getSubgraphsAsync(namespace, recurse))
    found[name] = schemasOf(subgraph as CompiledGraph, library);
  return found;
}
