import type { OwnUsage, TreeUsage } from "../../storage/traces/trace-schema.ts";
import type { TraceNode } from "../../storage/traces/traces.ts";
import { picoOf, usdOf } from "./rates.ts";

/** The totals of a run alone, or of a run and all runs below it. Null means that no value is known. */
export interface Totals {
  prompt_tokens: number | null;
  completion_tokens: number | null;
  total_tokens: number | null;
  prompt_cost: number | null;
  completion_cost: number | null;
  total_cost: number | null;
  first_token_us: number | null;
}

export interface OwnTotals extends Totals {
  run_id: string;
  parent_run_id: string | null;
  run_type: string;
}

/** Prompt, completion, total. */
type Sum = [number | null, number | null, number | null];

/** The tokens of an `llm` run include those of the `llm` runs below it, but not those of embeddings. */
const KINDS = ["llm", "embedding", "other"] as const;
type Kind = (typeof KINDS)[number];

interface Node {
  own: OwnTotals;
  parent: Node | undefined;
  /** The number of children that have not been added yet. */
  pending: number;
  isDone: boolean;
  /** Sums over the runs below, and also over the run itself once it is done. Costs are in picodollars. */
  tokens: Partial<Record<Kind, Sum>>;
  costs: Partial<Record<Kind, Sum>>;
  first_token_us: number | null;
}

/** The totals of each run of a trace. Parents may be missing; a cycle is cut at its first run. Takes linear time. */
export function treeUsage(runs: readonly OwnTotals[]): Map<string, Totals> {
  const nodes = new Map<string, Node>();
  for (const own of runs) {
    const node = { own, parent: undefined, pending: 0, isDone: false, tokens: {}, costs: {}, first_token_us: null };
    nodes.set(own.run_id, node);
  }
  for (const node of nodes.values()) {
    node.parent = node.own.parent_run_id === null ? undefined : nodes.get(node.own.parent_run_id);
    if (node.parent) node.parent.pending++;
  }
  const totals = new Map<string, Totals>();
  const finishUpwards = (start: Node): void => {
    for (let node: Node | undefined = start; node && !node.isDone; node = node.parent) {
      totals.set(node.own.run_id, finish(node));
      if (!node.parent) return;
      addTo(node.parent, node);
      if (--node.parent.pending > 0) return;
    }
  };
  for (const node of nodes.values()) if (node.pending === 0) finishUpwards(node);
  // Only runs in cycles are left.
  for (const node of nodes.values()) finishUpwards(node);
  return totals;
}

function finish(node: Node): Totals {
  const { own, tokens, costs } = node;
  node.isDone = true;
  const kind = own.run_type === "llm" || own.run_type === "embedding" ? own.run_type : "other";
  const own_tokens: Sum = [own.prompt_tokens, own.completion_tokens, own.total_tokens];
  // If a run that wraps other runs of its kind reports 0 tokens, the tokens of those runs are kept.
  const hasTokens = own_tokens.some((count) => (tokens[kind] ? count : count !== null));
  if (kind !== "other" && hasTokens) tokens[kind] = own_tokens;
  const own_costs: Sum = [pico(own.prompt_cost), pico(own.completion_cost), pico(own.total_cost)];
  const isCounted = kind !== "other" || !(costs.llm ?? costs.embedding ?? costs.other);
  if (isCounted && own_costs.some((cost) => cost !== null)) costs[kind] = own_costs;
  const first_token_us = own.first_token_us ?? node.first_token_us;
  node.first_token_us = earlier(own.first_token_us, node.first_token_us);
  const [prompt_tokens, completion_tokens, total_tokens] = sumOf(tokens);
  const cost = sumOf(costs);
  const [prompt_cost, completion_cost, total_cost] = [usd(cost[0]), usd(cost[1]), usd(cost[2])];
  return { prompt_tokens, completion_tokens, total_tokens, prompt_cost, completion_cost, total_cost, first_token_us };
}

const pico = (cost: number | null) => (cost === null ? null : picoOf(cost));
const usd = (cost: number | null) => (cost === null ? null : usdOf(cost));

function sumOf({ llm, embedding, other }: Partial<Record<Kind, Sum>>): Sum {
  const sum: Sum = [null, null, null];
  for (const more of [llm, embedding, other]) if (more) add(sum, more);
  return sum;
}

function add(sum: Sum, more: Sum): void {
  for (const part of [0, 1, 2] as const) {
    const value = more[part];
    if (value !== null) sum[part] = (sum[part] ?? 0) + value;
  }
}

/** Adds the sums of a finished run to its parent, and reuses the arrays if the parent has none. */
function addTo(parent: Node, { tokens, costs, first_token_us }: Node): void {
  for (const kind of KINDS) {
    moveTo(parent.tokens, kind, tokens[kind]);
    moveTo(parent.costs, kind, costs[kind]);
  }
  parent.first_token_us = earlier(parent.first_token_us, first_token_us);
}

function moveTo(sums: Partial<Record<Kind, Sum>>, kind: Kind, more: Sum | undefined): void {
  const sum = sums[kind];
  if (sum && more) add(sum, more);
  else if (more) sums[kind] = more;
}

const earlier = (one: number | null, other: number | null): number | null =>
  one === null || other === null ? (one ?? other) : Math.min(one, other);

type UsageNode = OwnTotals & TreeUsage;

const TOKENS = ["prompt_tokens", "completion_tokens", "total_tokens"] as const;
const COSTS = ["prompt_cost", "completion_cost", "total_cost"] as const;
const OWN = [...TOKENS, ...COSTS, "first_token_us"] as const;

const hasUsage = (run: OwnUsage): boolean => OWN.some((column) => run[column] !== null);
const hasTreeUsage = (run: TreeUsage): boolean => OWN.some((column) => run[`tree_${column}`] !== null);

/**
 * Adds the usage of changed runs of a trace to the runs above them. Without this, a trace of 25,000 runs in requests of 100 runs would be
 * read 250 times.
 *
 * @param stored the changed runs as they were before the request; no entry for new runs, which have no stored children
 * @param findRun returns a changed run, or a run above one
 * @returns false, without any change, if the sums depend on other runs of the trace
 */
export function addUsageToAncestors(
  changed: readonly UsageNode[],
  stored: ReadonlyMap<string, OwnUsage & TreeUsage>,
  findRun: (run_id: string) => UsageNode | undefined,
): boolean {
  const counted = changed.filter((run) =>
    OWN.some((column) => run[column] !== (stored.get(run.run_id)?.[column] ?? null)),
  );
  const isReplaced = counted
    .map(({ run_id }) => stored.get(run_id))
    .some((old) => old && (hasUsage(old) || hasTreeUsage(old)));
  if (isReplaced) return false;
  const sums = treeUsage(counted);
  const ancestors = new Map(counted.map((run) => [run, ancestorsOf(run, findRun)]));
  const isCounted = ({ run_id }: UsageNode) => sums.has(run_id);
  const above = (run: UsageNode) => (ancestors.get(run) ?? []).filter((ancestor) => !isCounted(ancestor));
  // `treeUsage` does not connect changed runs that have an unchanged run between them.
  if (
    [...ancestors.values()].some(
      (path) =>
        path.findLastIndex(isCounted) > path.findIndex((each) => !isCounted(each)) &&
        path.some((each) => !isCounted(each)),
    )
  )
    return false;
  // The tokens or costs of a run itself may replace the sums of the runs below it.
  const covers = (run: UsageNode) => [...TOKENS, ...COSTS].some((column) => run[column] !== null);
  if (counted.some((run) => above(run).some(covers))) return false;
  for (const run of counted) {
    const sum = sums.get(run.run_id) as OwnUsage;
    for (const column of OWN) run[`tree_${column}`] = sum[column];
    for (const ancestor of above(run)) {
      const isPassedOn = sums.has(run.parent_run_id as string);
      if (!isPassedOn) addSum(ancestor, sum);
      if (ancestor.first_token_us === null && run.first_token_us !== null)
        ancestor.tree_first_token_us = Math.min(ancestor.tree_first_token_us ?? run.first_token_us, run.first_token_us);
    }
  }
  return true;
}

function ancestorsOf(run: UsageNode, findRun: (run_id: string) => UsageNode | undefined): UsageNode[] {
  const found: UsageNode[] = [];
  for (let id = run.parent_run_id; id !== null; ) {
    const parent = findRun(id);
    if (!parent) break;
    found.push(parent);
    id = parent.parent_run_id;
  }
  return found;
}

function addSum(run: TreeUsage, sum: OwnUsage): void {
  for (const column of TOKENS)
    if (sum[column] !== null) run[`tree_${column}`] = (run[`tree_${column}`] ?? 0) + sum[column];
  for (const column of COSTS)
    if (sum[column] !== null) run[`tree_${column}`] = usdOf(picoOf(run[`tree_${column}`] ?? 0) + picoOf(sum[column]));
}

/** Adds up the tokens and costs of the runs of a trace. */
export function sumUsage(runs: TraceNode[]): void {
  const sums = treeUsage(runs);
  for (const run of runs) {
    const sum = sums.get(run.run_id);
    for (const [column, value] of Object.entries(sum ?? {})) run[`tree_${column}` as keyof TreeUsage] = value;
  }
}
