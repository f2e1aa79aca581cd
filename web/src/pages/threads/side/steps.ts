import type { ThreadState } from "../../../../../src/agent-server/contract/records.ts";

/** A state without its values, because each step's values contain the whole conversation. */
export type StepState = Omit<ThreadState, "values">;

/** A step in a thread's history: the nodes that created a checkpoint and the keys that the nodes changed. */
export interface Step {
  checkpoint_id: string;
  /** LangGraph's step number. -1 is the thread's first input. */
  number: number | undefined;
  /** Nodes that created the checkpoint. Empty if no node ran, for example at the start of a run. */
  nodes: readonly string[];
  /** State keys that the nodes changed. */
  changed: readonly string[];
  /** Time that the nodes took. Undefined if no node ran or the time is unknown. */
  duration_ms: number | undefined;
  created_at: string | null;
  /** Nodes that run next. */
  next: readonly string[];
  run_id: string | undefined;
  source: string | undefined;
  /** Input of the run that starts at this step. Undefined if no run with an input starts here. */
  input: unknown;
  isPaused: boolean;
  /** The branches that begin here, if other branches have the same parent. */
  fork: Fork | undefined;
  parent_id: string | undefined;
}

/** Branches with the same parent checkpoint. */
export interface Fork {
  /** ID of the newest checkpoint of each branch, oldest branch first. */
  heads: readonly string[];
  /** Index of the shown branch. */
  at: number;
}

const idOf = ({ checkpoint }: StepState): string => checkpoint?.checkpoint_id ?? "";
const parentOf = ({ parent_checkpoint }: StepState): string => parent_checkpoint?.checkpoint_id ?? "";

/**
 * Returns one branch of a thread: the checkpoint, the newest branch after it, and all checkpoints before it.
 *
 * @param states all branches, newest state first, so that every state is before its parent
 * @param checkpoint_id undefined, or one that is not in `states`, for the branch of the newest checkpoint
 */
export function branchOf(
  states: readonly StepState[],
  checkpoint_id: string | undefined,
): { states: StepState[]; forks: ReadonlyMap<string, Fork> } {
  const byId = new Map(states.map((state) => [idOf(state), state]));
  const siblings = Map.groupBy(states, parentOf);
  /** Index of the newest descendant, which is the state itself at the end of a branch. */
  const newest = new Map<string, number>();
  const headOf = (state: StepState): number => newest.get(idOf(state)) ?? states.indexOf(state);
  for (const state of states)
    newest.set(parentOf(state), Math.min(newest.get(parentOf(state)) ?? Number.POSITIVE_INFINITY, headOf(state)));
  const anchor = byId.get(checkpoint_id ?? "");
  const branch: StepState[] = [];
  const forks = new Map<string, Fork>();
  for (let state = anchor ? states[headOf(anchor)] : states[0]; state; state = byId.get(parentOf(state))) {
    branch.push(state);
    const others = (siblings.get(parentOf(state)) ?? []).toReversed();
    if (others.length > 1)
      forks.set(idOf(state), {
        heads: others.map((each) => idOf(states[headOf(each)] as StepState)),
        at: others.indexOf(state),
      });
  }
  return { states: branch, forks };
}

/**
 * @param states states of one branch, newest state first
 * @param starts times at which the thread's runs were created, by run ID
 */
export function stepsOf(
  states: readonly StepState[],
  starts: ReadonlyMap<string, string>,
  forks: ReadonlyMap<string, Fork>,
): Step[] {
  return states.map((state, index) => {
    const parent = states[index + 1];
    return {
      checkpoint_id: idOf(state),
      number: typeof state.metadata?.step === "number" ? state.metadata.step : undefined,
      ...tasksOf(state, parent, starts),
      created_at: state.created_at,
      next: state.next,
      run_id: textOf(state.metadata?.run_id),
      source: textOf(state.metadata?.source),
      input: state.tasks.find(({ name }) => name === "__start__")?.result,
      isPaused: state.tasks.some(({ interrupts }) => interrupts.length > 0),
      fork: forks.get(idOf(state)),
      parent_id: parentOf(state) || undefined,
    };
  });
}

const textOf = (value: unknown) => (typeof value === "string" ? value : undefined);

/** Derives a checkpoint's nodes, changed keys and duration from the parent checkpoint, whose tasks created the checkpoint. */
function tasksOf(
  state: StepState,
  parent: StepState | undefined,
  starts: ReadonlyMap<string, string>,
): Pick<Step, "nodes" | "changed" | "duration_ms"> {
  // No tasks ran to create the checkpoint of a run's input or of a state update.
  if (!parent || state.metadata?.source !== "loop") return { nodes: [], changed: [], duration_ms: undefined };
  return {
    nodes: parent.tasks.map(({ name }) => name),
    changed: [...new Set(parent.tasks.flatMap(({ result }) => keysOf(result)))],
    duration_ms: durationOf(state, parent, starts),
  };
}

/**
 * Time since the parent checkpoint. If another run created the parent, the thread waited between the runs, for example for a person, and
 * only the time since the start of the later run counts.
 */
function durationOf(state: StepState, parent: StepState, starts: ReadonlyMap<string, string>): number | undefined {
  const run_id = textOf(state.metadata?.run_id);
  const isSameRun = run_id === undefined || run_id === textOf(parent.metadata?.run_id);
  const start = isSameRun ? parent.created_at : starts.get(run_id);
  return state.created_at && start ? Math.max(0, Date.parse(state.created_at) - Date.parse(start)) : undefined;
}

const keysOf = (result: unknown): string[] =>
  typeof result === "object" && result !== null && !Array.isArray(result) ? Object.keys(result) : [];

/** Maps tool call IDs to durations in ms. The duration of a call is the duration of the step that returned the result. */
export function toolDurations(states: readonly StepState[], steps: readonly Step[]): ReadonlyMap<string, number> {
  const durations = new Map<string, number>();
  states.forEach((_, index) => {
    const duration_ms = steps[index]?.duration_ms;
    const parent = states[index + 1];
    if (duration_ms === undefined || !parent) return;
    for (const { result } of parent.tasks)
      for (const message of messagesIn(result))
        if (typeof message?.tool_call_id === "string") durations.set(message.tool_call_id, duration_ms);
  });
  return durations;
}

const messagesIn = (result: unknown): { tool_call_id?: unknown }[] => {
  const { messages } = (result ?? {}) as { messages?: unknown };
  return Array.isArray(messages) ? messages : [];
};

/** Joins names and counts repetitions, for example `study × 3`. */
export const withCounts = (names: readonly string[]): string =>
  [...new Set(names)]
    .map((name) => {
      const times = names.filter((each) => each === name).length;
      return times > 1 ? `${name} × ${times}` : name;
    })
    .join(", ");
