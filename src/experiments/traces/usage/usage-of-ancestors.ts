import type { OwnUsage, TreeUsage } from "../../storage/traces/trace-schema.ts";
import { picoOf, usdOf } from "./rates.ts";
import { type OwnTotals, treeUsage } from "./tree-usage.ts";

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
