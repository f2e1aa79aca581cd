import type { Caller } from "../../platform/contract/caller.ts";
import type { JsonObject } from "../../platform/lib/json/json.ts";
import type { CheckpointRef, RunCreate, StatelessRunCreate } from "../contract/run-schemas.ts";
import type { RunConfig, RunKwargs } from "../graph-hosts/host.ts";
import type { AssistantRow, PushConfig } from "../storage/schema.ts";

export type RunRequest = Partial<Pick<RunCreate, "checkpoint" | "checkpoint_id">> &
  Omit<StatelessRunCreate, "assistant_id" | "on_completion"> & {
    multitask_strategy?: RunCreate["multitask_strategy"];
    /** Set for runs that are started with the thread protocol. Not a field of requests. */
    stream_protocol?: "v2";
    /** Set for runs that A2A clients start. Not a field of requests. */
    push_configs?: readonly PushConfig[];
  };

/** Keys of `configurable` that the service sets. Values of clients are ignored. */
const RESERVED = new Set(["thread_id", "run_id", "graph_id", "assistant_id", "user_id", "checkpoint_ns"]);

const isReserved = (key: string) => RESERVED.has(key) || key.startsWith("__") || key.startsWith("langgraph_auth_");

export const withoutReserved = (object: JsonObject = {}): JsonObject =>
  Object.fromEntries(Object.entries(object).filter(([key]) => !isReserved(key)));

/**
 * Merges the settings of the assistant, the thread and the request. Later values take precedence: key by key in `configurable`, `metadata`
 * and `context`, as a whole elsewhere.
 */
export function mergeRequest(
  request: RunRequest,
  assistant: AssistantRow,
  thread: { thread_id: string; metadata: JsonObject },
  run: { run_id: string; temporary: boolean; keep_paused?: boolean },
  caller: Caller,
): { kwargs: RunKwargs; metadata: JsonObject } {
  const base = JSON.parse(assistant.config) as RunConfig;
  const { graph_id, assistant_id } = assistant;
  const metadata = {
    ...(JSON.parse(assistant.metadata) as JsonObject),
    ...withoutReserved(thread.metadata),
    ...withoutReserved(request.metadata),
  };
  delete metadata.created_by; // names the creator of the assistant, not of the run
  const config: RunConfig = {
    ...base,
    ...request.config,
    configurable: {
      ...withoutReserved(base.configurable),
      ...withoutReserved(request.config.configurable),
      // Only the request selects the checkpoint to start from, which is checked when the run is accepted.
      checkpoint_id: undefined,
      ...checkpointKeys(request),
      ...tracingKeys(request),
      run_id: run.run_id,
      thread_id: thread.thread_id,
      graph_id,
      assistant_id,
      ...identityOf(caller),
    },
    metadata,
  };
  const context = { ...(JSON.parse(assistant.context) as JsonObject), ...request.context };
  return {
    metadata: { ...metadata, graph_id, assistant_id },
    kwargs: {
      ...toKwargs(request, config, context, run.temporary),
      ...(run.keep_paused && { keep_paused: true }),
      ...(caller.user && { is_custom_user: true }),
    },
  };
}

/** Returns the keys that identify the run's user. `langgraph_auth_` keys are not copied into the metadata of checkpoints. */
function identityOf({ user_id, scopes, user }: Caller): JsonObject {
  const permissions = user?.permissions ?? [...scopes];
  return {
    user_id,
    langgraph_auth_user: user ?? { identity: user_id, is_authenticated: true, display_name: user_id, permissions },
    langgraph_auth_user_id: user_id,
    langgraph_auth_permissions: permissions,
  };
}

function toKwargs(request: RunRequest, config: RunConfig, context: JsonObject, temporary: boolean): RunKwargs {
  return {
    input: request.input,
    command: request.command ?? null,
    config,
    context: Object.keys(context).length > 0 ? context : null,
    stream_mode: request.stream_mode,
    interrupt_before: request.interrupt_before ?? null,
    interrupt_after: request.interrupt_after ?? null,
    webhook: request.webhook ?? null,
    feedback_keys: request.feedback_keys ?? null,
    ...(request.strict_resume && { strict_resume: true }),
    ...(request.stream_protocol && { stream_protocol: request.stream_protocol }),
    temporary,
    subgraphs: request.stream_subgraphs,
    resumable: request.stream_resumable,
    durability: durabilityOf(request),
    ...(request.langsmith_tracer && { langsmith_tracer: request.langsmith_tracer }),
  };
}

/** Returns the checkpoint that the run starts from, if it is not the newest. The body's own field takes precedence over `config`. */
export function startingCheckpoint({ checkpoint, checkpoint_id, config }: RunRequest): CheckpointRef {
  const id = checkpoint?.checkpoint_id ?? checkpoint_id ?? config.configurable?.checkpoint_id;
  return { ...checkpoint, checkpoint_id: typeof id === "string" && id !== "" ? id : undefined };
}

function checkpointKeys(request: RunRequest): JsonObject {
  const { checkpoint_ns, checkpoint_map, checkpoint_id } = startingCheckpoint(request);
  return {
    ...(checkpoint_ns !== undefined && { checkpoint_ns }),
    ...(checkpoint_map !== undefined && { checkpoint_map }),
    ...(checkpoint_id !== undefined && { checkpoint_id }),
  };
}

function tracingKeys({ langsmith_tracer }: RunRequest): JsonObject {
  return {
    ...(langsmith_tracer?.project_name !== undefined && { langsmith_project: langsmith_tracer.project_name }),
    ...(langsmith_tracer?.example_id !== undefined && { langsmith_example_id: langsmith_tracer.example_id }),
  };
}

function durabilityOf({ durability, checkpoint_during }: RunRequest): "sync" | "async" | "exit" {
  if (durability) return durability;
  if (checkpoint_during === undefined) return "sync";
  return checkpoint_during ? "async" : "exit";
}
