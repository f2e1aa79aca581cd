import type { TraceRun } from "../../../../../src/experiments/contract/traces/app-traces.ts";

export interface TraceNode {
  run: TraceRun;
  /** 0 for the root. */
  depth: number;
  parent: TraceNode | undefined;
  children: TraceNode[];
  /** Whether the trace does not contain the run's parent. The run is then shown below the root. */
  isOrphan: boolean;
  /** Times in ms since the epoch. `end` is undefined while the run is pending. */
  start: number;
  end: number | undefined;
  firstToken: number | undefined;
}

/** In a trace with at least this many runs, runs at {@link FOLDED_DEPTH} and deeper are initially folded. */
const MANY_RUNS = 200;
const FOLDED_DEPTH = 2;

/**
 * Builds the tree of a trace.
 *
 * @param runs the runs in the order of `dotted_order`
 * @returns the nodes in the order of the tree
 */
export function treeOf(runs: readonly TraceRun[]): TraceNode[] {
  const nodes = runs.map(nodeOf);
  const byId = new Map(nodes.map((node) => [node.run.id, node]));
  const root = nodes.find(({ run }) => run.parent_run_id === null);
  const top: TraceNode[] = [];
  for (const node of nodes) {
    const parent = byId.get(node.run.parent_run_id ?? "");
    node.isOrphan = !parent && node.run.parent_run_id !== null;
    node.parent = parent ?? (node.isOrphan ? root : undefined);
    (node.parent?.children ?? top).push(node);
  }
  // Without recursion: a trace may be thousands of levels deep.
  const ordered: TraceNode[] = [];
  const rest = top.reverse();
  for (let node = rest.pop(); node; node = rest.pop()) {
    node.depth = node.parent ? node.parent.depth + 1 : 0;
    ordered.push(node);
    rest.push(...node.children.toReversed());
  }
  return ordered;
}

const timeOf = (time: string | null): number | undefined => (time === null ? undefined : Date.parse(time));

const nodeOf = (run: TraceRun): TraceNode => ({
  run,
  depth: 0,
  parent: undefined,
  children: [],
  isOrphan: false,
  start: Date.parse(run.start_time),
  end: timeOf(run.end_time),
  firstToken: timeOf(run.first_token_time),
});

/** Whether a run is folded until the user unfolds it. */
export const isFoldedAtFirst = ({ depth, children }: TraceNode, total: number): boolean =>
  total >= MANY_RUNS && depth >= FOLDED_DEPTH && children.length > 0;

/** Whether a run is a step of LangGraph itself. Such runs are shown only if a search finds them. */
export const isInternal = ({ run, children }: TraceNode): boolean =>
  (run.name === "__start__" || run.tags.includes("langsmith:hidden")) &&
  children.length === 0 &&
  run.status === "success";

/** A pending trace is treated as stopped if no run starts, ends or gets its first token for this long. Its program may have been killed. */
const SILENCE_MS = 10 * 60_000;

export interface Axis {
  start: number;
  end: number;
}

/** Returns the time range of a trace in ms since the epoch. The range of a pending trace ends now, unless the trace has stopped. */
export function axisOf(nodes: readonly TraceNode[], now: number): Axis {
  let [start, last, isPending] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, false];
  for (const node of nodes) {
    start = Math.min(start, node.start);
    last = Math.max(last, node.start, node.end ?? 0, node.firstToken ?? 0);
    isPending ||= node.end === undefined;
  }
  const end = isPending && now - last < SILENCE_MS ? Math.max(last, now) : last;
  return { start, end: Math.max(end, start + 1) };
}

/** Start and end times may be off by 1 ms: JavaScript clients encode the order of the runs in the microseconds. */
const TOLERANCE_MS = 1;

/**
 * Returns the IDs of the runs on a trace's critical path: the root, then for each of these runs the child that ends last, the sibling
 * that ends last before that child starts, and so on. Shortening any other run does not shorten the trace.
 */
export function criticalPathOf(nodes: readonly TraceNode[], axis: Axis): ReadonlySet<string> {
  const path = new Set<string>();
  const endOf = ({ end = axis.end, start }: TraceNode) => Math.max(end, start);
  const rest: { node: TraceNode; until: number }[] = nodes
    .slice(0, 1)
    .map((node) => ({ node, until: Number.POSITIVE_INFINITY }));
  for (let next = rest.pop(); next; next = rest.pop()) {
    const { node } = next;
    path.add(node.run.id);
    let until = Math.min(next.until, endOf(node));
    const byEnd = node.children
      .map((child) => ({ child, end: Math.min(endOf(child), until) }))
      .filter(({ child, end }) => end >= child.start)
      .sort((a, b) => b.end - a.end || b.child.start - a.child.start);
    for (const { child, end } of byEnd) {
      if (end > until + TOLERANCE_MS) continue;
      rest.push({ node: child, until: end });
      until = child.start;
    }
  }
  return path;
}

/** Whether every word occurs in a run's name, type, node, tags, error or status. The word `error` therefore finds failed runs. */
function matches({ run }: TraceNode, words: readonly string[]): boolean {
  const { name, run_type, error, status, tags, langgraph_node = "" } = run;
  const text = [name, run_type, error ?? "", status, langgraph_node, ...tags].join("\n").toLowerCase();
  return words.every((word) => text.includes(word));
}

export interface VisibleTree {
  rows: readonly TraceNode[];
  /** IDs of the runs that match the search. Undefined without a search. */
  found: ReadonlySet<string> | undefined;
}

/**
 * Returns the rows to show. A search shows the matching runs and their ancestors, even below folded runs.
 *
 * @param nodes in the order of the tree
 * @param also the IDs of runs that match the search by data that the nodes do not have
 */
export function visibleTree(
  nodes: readonly TraceNode[],
  { isFolded, search, also }: { isFolded(node: TraceNode): boolean; search: string; also?: ReadonlySet<string> },
): VisibleTree {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length > 0) {
    const found = nodes.filter((node) => matches(node, words) || also?.has(node.run.id));
    const shown = new Set<TraceNode>();
    for (const node of found)
      for (let at: TraceNode | undefined = node; at && !shown.has(at); at = at.parent) shown.add(at);
    return { rows: nodes.filter((node) => shown.has(node)), found: new Set(found.map(({ run }) => run.id)) };
  }
  const hidden = new Set<TraceNode>();
  const rows: TraceNode[] = [];
  for (const node of nodes) {
    const { parent } = node;
    if (parent && (hidden.has(parent) || isFolded(parent))) hidden.add(node);
    else if (!isInternal(node)) rows.push(node);
  }
  return { rows, found: undefined };
}
