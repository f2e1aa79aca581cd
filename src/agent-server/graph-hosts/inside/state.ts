import type { StateSnapshot } from "@langchain/langgraph";
import type { CheckpointData } from "../checkpoint-requests.ts";
import type { CheckpointKey, RunOrder, StateSummary } from "../host.ts";
import { type Scope, withScope } from "./checkpointer.ts";
import { INTERRUPT } from "./commands.ts";
import type { CompiledGraph } from "./loading/load.ts";
import { toWire } from "./wire.ts";

export function summarize(snapshot: StateSnapshot): StateSummary {
  const interrupts = openTasks(snapshot).map((task) => [task.id, task.interrupts]);
  return {
    values: toWire(snapshot.values ?? null),
    next: [...snapshot.next],
    interrupts: toWire(Object.fromEntries(interrupts)),
  };
}

/** Returns the interrupted tasks. LangGraph keeps the interrupts of a resumed task, but removes the task from `next`. */
export const openTasks = ({ tasks, next }: StateSnapshot) =>
  tasks.filter((task) => task.interrupts.length > 0 && next.includes(task.name));

/** Converts a state to the format of the API. */
export function toThreadState(snapshot: StateSnapshot): Record<string, unknown> {
  return {
    values: snapshot.values,
    next: snapshot.next,
    tasks: snapshot.tasks.map(({ id, name, path, error, interrupts, state, ...rest }) => ({
      id,
      name,
      path: path ?? [],
      error:
        typeof error === "object" && error !== null ? ((error as Error).message ?? String(error)) : (error ?? null),
      interrupts,
      checkpoint: state && !isSnapshot(state) ? toCheckpointKey(state) : null,
      state: state && isSnapshot(state) ? toThreadState(state) : null,
      result: (rest as { result?: unknown }).result ?? null,
    })),
    metadata: snapshot.metadata ?? {},
    created_at: snapshot.createdAt ?? null,
    checkpoint: toCheckpointKey(snapshot.config),
    parent_checkpoint: snapshot.parentConfig ? toCheckpointKey(snapshot.parentConfig) : null,
    interrupts: openTasks(snapshot).flatMap((task) => task.interrupts),
  };
}

const isSnapshot = (state: object): state is StateSnapshot => "values" in state;

/** Returns the API's reference to a checkpoint; null if the config refers to none. */
export function toCheckpointKey(config: { configurable?: Record<string, unknown> }): Record<string, unknown> | null {
  const { thread_id, checkpoint_ns = "", checkpoint_id = null, checkpoint_map = null } = config.configurable ?? {};
  if (checkpoint_id === null && checkpoint_ns === "") return null;
  return { thread_id, checkpoint_ns, checkpoint_id, checkpoint_map };
}

/** Converts a checkpoint reference to LangGraph's `configurable`. */
export const toConfigurable = ({ thread_id, checkpoint_ns = "", checkpoint_id }: CheckpointKey) => ({
  thread_id,
  checkpoint_ns,
  ...(checkpoint_id !== undefined && { checkpoint_id }),
});

export const readSummary = async (graph: CompiledGraph, order: RunOrder, scope: Scope): Promise<StateSummary> =>
  summarize(await graph.getState(stateConfig(order, scope)));

/** Returns the config for reading the newest state of the run's thread. */
const stateConfig = ({ thread_id }: RunOrder, scope: Scope) => ({
  // The head is valid only for the run, and only while it is the newest checkpoint.
  configurable: withScope({ thread_id }, { ...scope, head: undefined, hideResumes: true }),
});

/** Returns the config for reading the state that the run starts from: an older one if the request names its checkpoint. */
export const startConfig = (order: RunOrder, scope: Scope) => {
  const { configurable } = stateConfig(order, scope);
  const { checkpoint_id } = order.kwargs.config.configurable ?? {};
  return { configurable: checkpoint_id === undefined ? configurable : { ...configurable, checkpoint_id } };
};

type Nodes = "*" | readonly PropertyKey[];

/**
 * Returns the state of a run whose own newest checkpoint is at a breakpoint; undefined if it is not. LangGraph takes the missing input of a
 * run that continues for the permission to pass the breakpoint, at which an earlier claim was lost before the run ended.
 */
export async function stateAtBreakpoint(
  graph: CompiledGraph,
  order: RunOrder,
  head: CheckpointData,
  scope: Scope,
): Promise<StateSnapshot | undefined> {
  const before: Nodes = order.kwargs.interrupt_before ?? graph.interruptBefore ?? [];
  const after: Nodes = order.kwargs.interrupt_after ?? graph.interruptAfter ?? [];
  if (before.length + after.length === 0 || !hasUpdates(head)) return undefined;
  const { configurable } = stateConfig(order, scope);
  const state = await graph.getState({ configurable });
  const isIn = (nodes: Nodes) => (name: string) => nodes === "*" || nodes.includes(name);
  if (state.next.some(isIn(before))) return state;
  const checkpoint_id = state.parentConfig?.configurable?.checkpoint_id;
  // The checkpoint of an input was made by no node: those that were next before it have not run.
  if (after.length === 0 || checkpoint_id === undefined || state.metadata?.source !== "loop") return undefined;
  const { next } = await graph.getState({ configurable: { ...configurable, checkpoint_id } });
  return next.some(isIn(after)) ? state : undefined;
}

/** Whether a channel has changed since the last interrupt, without which LangGraph does not interrupt. */
function hasUpdates({ checkpoint }: CheckpointData): boolean {
  const { channel_versions, versions_seen } = JSON.parse(checkpoint) as {
    channel_versions: Record<string, number | string>;
    versions_seen: Record<string, Record<string, number | string>>;
  };
  const seen = versions_seen[INTERRUPT] ?? {};
  return Object.entries(channel_versions).some(([channel, version]) => {
    const last = seen[channel];
    return last === undefined || version > last;
  });
}
