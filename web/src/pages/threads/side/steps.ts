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
  isPaused: boolean;
  /** Number of the parent step. Undefined if the parent is the next older step or is not loaded. */
  forked_from: number | undefined;
}

/**
 * @param states newest state first
 * @param starts times at which the thread's runs were created, by run ID
 */
export function stepsOf(states: readonly StepState[], starts: ReadonlyMap<string, string>): Step[] {
  const byId = new Map(states.map((state) => [state.checkpoint?.checkpoint_id, state]));
  return states.map((state, index) => {
    const parent_id = state.parent_checkpoint?.checkpoint_id;
    const parent = parent_id ? byId.get(parent_id) : undefined;
    const below = states[index + 1];
    return {
      checkpoint_id: state.checkpoint?.checkpoint_id ?? "",
      number: numberOf(state),
      ...tasksOf(state, parent, starts),
      created_at: state.created_at,
      next: state.next,
      run_id: textOf(state.metadata?.run_id),
      source: textOf(state.metadata?.source),
      isPaused: state.tasks.some(({ interrupts }) => interrupts.length > 0),
      forked_from: parent && below && parent !== below ? numberOf(parent) : undefined,
    };
  });
}

const numberOf = ({ metadata }: StepState) => (typeof metadata?.step === "number" ? metadata.step : undefined);
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
  const byId = new Map(states.map((state) => [state.checkpoint?.checkpoint_id, state]));
  states.forEach((state, index) => {
    const duration_ms = steps[index]?.duration_ms;
    const parent = byId.get(state.parent_checkpoint?.checkpoint_id ?? "");
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
