import type { StateSnapshot } from "@langchain/langgraph";
import { selectState } from "../../threads/select-state.ts";
import type { AuthQuery } from "../auth-queries.ts";
import type {
  FromHost,
  GraphInUse,
  GraphQuery,
  GraphSchema,
  GraphSchemas,
  HistoryPage,
  JsonSchema,
  StagedUpdate,
  StateUpdate,
  ToHost,
} from "../host.ts";
import type { EmbedQuery } from "../host-store.ts";
import type { AppServer } from "./app-server.ts";
import { answerAuth } from "./auth-handlers.ts";
import { type Scope, withScope } from "./checkpointer.ts";
import { toCommand } from "./commands.ts";
import { embed } from "./loading/embeddings.ts";
import type { Library } from "./loading/library.ts";
import type { CompiledGraph, FactoryRuntime, LoadedGraph, LoadedGraphs } from "./loading/load.ts";
import { summarize, toConfigurable, toThreadState } from "./state.ts";
import { isError, toWire } from "./wire.ts";

type QueryMessage = Extract<ToHost, { type: "query" }>;
/** Encryption modules are loaded by Python hosts only. */
type Answered = GraphQuery | EmbedQuery | AuthQuery;
type QueryResult = Extract<FromHost, { type: "query_result" }>;

/** Never rejects: an error is returned as a result. */
export async function runQuery(
  { id, query }: QueryMessage,
  graphs: LoadedGraphs,
  app_server: AppServer,
): Promise<QueryResult> {
  try {
    const isForApp = query.kind === "app" || query.kind === "app_routes";
    return {
      type: "query_result",
      id,
      value: await (isForApp ? app_server.answer(query) : resultOf(query as Answered, graphs)),
    };
  } catch (error) {
    const { name, message } = isError(error) ? error : { name: "Error", message: String(error) };
    return { type: "query_result", id, error: { name, message } };
  }
}

async function resultOf(query: Answered, graphs: LoadedGraphs): Promise<unknown> {
  if (query.kind === "embed") return embed(await graphs.embeddings(), query);
  if (!("graph" in query)) return answerAuth(await graphs.auth(), query);
  const loaded = await loadGraph(query.graph, graphs, ACCESS[query.kind]);
  const { graph, library } = loaded;
  switch (query.kind) {
    case "state": {
      const config = { configurable: withScope(toConfigurable(query.checkpoint), READ_SCOPE) };
      return stateText(await graph.getState(config, { subgraphs: query.subgraphs }), query.select);
    }
    case "summary": {
      const scope = { ...READ_SCOPE, without: query.without };
      return summarize(await graph.getState({ configurable: withScope(toConfigurable(query.checkpoint), scope) }));
    }
    case "history":
      return await history(graph, query);
    case "update":
      return await stageUpdate(loaded, query);
    case "drawing": {
      // `xray` expands subgraphs; a number limits the levels.
      const drawable = await graph.getGraphAsync({ xray: query.xray } as never);
      return toWire(drawable.toJSON());
    }
    case "schemas":
      return schemasOf(graph, library);
    case "subgraphs":
      return await subgraphs(loaded, query);
  }
}

const READ_SCOPE: Scope = { metadata: {}, hideResumes: true };

const ACCESS: Record<GraphQuery["kind"], FactoryRuntime["accessContext"]> = {
  state: "threads.read",
  summary: "threads.read",
  history: "threads.read",
  update: "threads.update",
  drawing: "assistants.read",
  schemas: "assistants.read",
  subgraphs: "assistants.read",
};

const loadGraph = (
  { graph_id, config, context }: GraphInUse,
  graphs: LoadedGraphs,
  accessContext: FactoryRuntime["accessContext"],
) => graphs.get(graph_id, config, { accessContext, executionRuntime: context ? { context } : null });

/** A history page ends with the state that makes the page longer than this. */
const PAGE_CHARS = 8_000_000;

async function history(
  graph: CompiledGraph,
  { checkpoint, before, metadata, limit, select }: Extract<GraphQuery, { kind: "history" }>,
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

/** Computes an update. The service stores it in one transaction if the thread is still idle. */
async function stageUpdate(
  { graph, library }: LoadedGraph,
  query: Extract<GraphQuery, { kind: "update" }>,
): Promise<StagedUpdate> {
  const { thread_id } = query.checkpoint;
  const staged: Pick<StagedUpdate, "puts" | "writes"> = { puts: [], writes: [] };
  const { graph_id, config } = query.graph;
  const scope: Scope = { ...READ_SCOPE, staged, metadata: { ...config.metadata, thread_id, graph_id } };
  const start = { configurable: withScope(toConfigurable(query.checkpoint), scope) };
  const head = await graph.getState({ configurable: { thread_id } });
  let current: { configurable?: Record<string, unknown> } = start;
  for (const updates of query.supersteps) {
    current = await graph.bulkUpdateState(
      { configurable: withScope({ ...start.configurable, ...current.configurable }, scope) },
      [{ updates: updates.map((update) => toStateUpdate(update, library)) }],
    );
  }
  // The newest state, as it will be once the update is stored, including pending writes.
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
  { namespace, recurse }: Extract<GraphQuery, { kind: "subgraphs" }>,
) {
  const found: Record<string, GraphSchemas> = {};
  for await (const [name, subgraph] of graph.getSubgraphsAsync(namespace, recurse))
    found[name] = schemasOf(subgraph as CompiledGraph, library);
  return found;
}

/** The schema definitions of a StateGraph: records whose keys are the channels. */
interface Builder {
  _schemaDefinition?: unknown;
  _inputDefinition?: unknown;
  _outputDefinition?: unknown;
  _configSchema?: unknown;
}

/**
 * Returns the JSON schemas known at run time. For Zod or another Standard Schema they are complete. For TypeScript types they contain
 * only the names of the keys, and are null if the state is not an object.
 */
function schemasOf(graph: CompiledGraph, { schemas }: Library): GraphSchemas {
  const { builder = {} } = graph as { builder?: Builder };
  const read = (schemaOf: ((graph: never) => unknown) | undefined, definition: unknown): GraphSchema => {
    const declared = declaredSchema(schemaOf, graph);
    return declared ? { schema: declared, is_whole: true } : { schema: keysOf(definition), is_whole: false };
  };
  return {
    input: read(schemas?.getInputTypeSchema, builder._inputDefinition),
    output: read(schemas?.getOutputTypeSchema, builder._outputDefinition),
    state: read(schemas?.getStateTypeSchema, builder._schemaDefinition),
    config: read(schemas?.getConfigTypeSchema, builder._configSchema),
  };
}

/** Returns an object schema with the keys of the definition, without the types of their values; null if the state is not an object. */
function keysOf(definition: unknown): JsonSchema | null {
  const keys = (definition as { spec?: unknown } | undefined)?.spec ?? definition;
  if (typeof keys !== "object" || keys === null || "__root__" in keys) return null;
  return { type: "object", properties: Object.fromEntries(Object.keys(keys).map((key) => [key, {}])) };
}

/** Returns null if LangGraph throws because JSON schema does not support a type (functions, for example). */
function declaredSchema(schemaOf: ((graph: never) => unknown) | undefined, graph: CompiledGraph): JsonSchema | null {
  try {
    return (schemaOf?.(graph as never) as JsonSchema | undefined) ?? null;
  } catch {
    return null;
  }
}
