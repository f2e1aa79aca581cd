import type { RunOrder, TraceOrder } from "../host.ts";
import type { Library, TracingClient, TracingLibrary } from "./loading/library.ts";
import type { TraceSink } from "./trace-sink.ts";

type Tracer = InstanceType<TracingLibrary["LangChainTracer"]>;

/** Environment variables that make a project send its traces to LangSmith or another server. */
const TRACING_VARIABLES = ["LANGSMITH_TRACING_V2", "LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2", "LANGCHAIN_TRACING"];

/** Identifies the deployment in the metadata of the root, using variables that the control plane sets in instances. */
export const withDeployment = (trace: TraceOrder): TraceOrder => {
  const { LANGSMITH_HOST_PROJECT_ID: deployment_id, LANGSMITH_HOST_REVISION_ID: revision_id } = process.env;
  return deployment_id === undefined
    ? trace
    : { ...trace, metadata: { ...trace.metadata, deployment_id, revision_id } };
};

/** A run that is traced. */
export interface TracedExecution {
  order: RunOrder;
  trace: TraceOrder;
  sink: TraceSink;
}

/**
 * Returns the option `callbacks`, which traces a run. LangChain then adds no tracer of its own. If the project traces to another
 * server, a replica sends the runs there, too.
 */
export function tracingCallbacks({ tracing }: Library, { order, trace, sink }: TracedExecution) {
  if (!tracing) return undefined;
  const { LangChainTracer, CallbackManager, RunTree } = tracing;
  const { project_name: projectName, example_id: exampleId, parent } = trace;
  const client = sink as unknown as TracingClient;
  // The environment of this thread is that of the graphs, which may have changed it.
  const sendsElsewhere = TRACING_VARIABLES.some((name) => process.env[name] === "true");
  const replicas = sendsElsewhere ? [{ client, projectName }, theirReplica(RunTree)] : undefined;
  const options = { client, projectName, exampleId, replicas };
  const tracer = withRoot(new LangChainTracer(options as object), order, trace);
  if (parent?.kind !== "run") return [tracer];
  const config = { client, project_name: projectName, replicas };
  tracer.updateFromRunTree(RunTree.fromHeaders({ "langsmith-trace": parent.dotted_order }, config));
  const manager = new CallbackManager(parent.dotted_order.slice(-UUID_CHARS));
  manager.addHandler(tracer, true);
  return manager;
}

const UUID_CHARS = 36;

/** Returns the replica for the environment's own project. It uses LangSmith's shared client, which sends batches in the background. */
const theirReplica = (RunTree: TracingLibrary["RunTree"]) => ({
  client: RunTree.getSharedClient(),
  projectName: new RunTree({ name: "project" }).project_name,
});

/** The members of LangChain's tracers that create runs. Copies of a tracer share its runs. */
interface RunCreator {
  runTreeMap?: Map<string, object>;
  replicas?: unknown;
  client?: unknown;
  projectName?: string;
  exampleId?: string;
  _addRunToRunMap?(run: { id: string; [field: string]: unknown }): unknown;
  getRunTreeWithTracingConfig?(id: string): object | undefined;
  copyWithTracingConfig?(config: unknown): Tracer;
}

/**
 * Names the root after the graph, and gives it the start time of the first attempt, so that all attempts are one trace. If there are no
 * replicas, runs are copied for each report without LangSmith's constructor, which takes a tenth of the CPU time of a short run.
 */
function withRoot(tracer: Tracer, order: RunOrder, trace: TraceOrder): Tracer {
  const creator = tracer as unknown as RunCreator;
  const add = creator._addRunToRunMap?.bind(tracer);
  const copy = creator.copyWithTracingConfig?.bind(tracer);
  const root = { name: order.graph_id, start_time: trace.started_at };
  if (add) creator._addRunToRunMap = (run) => add(run.id === order.run_id ? { ...run, ...root } : run);
  if (copy) creator.copyWithTracingConfig = (config) => withRoot(copy(config), order, trace);
  const { runTreeMap, replicas } = creator;
  if (!replicas && runTreeMap && creator.getRunTreeWithTracingConfig)
    creator.getRunTreeWithTracingConfig = (id) => {
      const run = runTreeMap.get(id);
      const { client, projectName: project_name, exampleId: reference_example_id } = creator;
      const config = { client, project_name, reference_example_id, replicas: undefined, tracingEnabled: true };
      return run && Object.assign(Object.create(Object.getPrototypeOf(run)), run, config);
    };
  return tracer;
}
