import { ApiError } from "../../platform/errors.ts";
import { isUuid } from "../../platform/lib/ids.ts";
import { isoOfMicroseconds, microsecondsOf } from "../../platform/lib/times.ts";
import type { RunFields } from "../contract/traces/traces.ts";
import type { TraceRunRow } from "../storage/traces/trace-schema.ts";

/** The position of a run in the tree of its trace. */
export interface TreePosition {
  trace_id: string;
  parent_run_id: string | null;
  dotted_order: string;
  is_root: boolean;
  /** True until the parent, or a request that contains the position, arrives. */
  is_provisional: boolean;
}

/** The limit of `dotted_order`: about 340 levels. */
export const MAX_ORDER_CHARS = 20_000;

const SEGMENT = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)(\d{6})Z(.{36})$/;

/** The segment of a run in `dotted_order`. */
export function segmentOf(start_us: number, run_id: string): string {
  const [seconds = "", fraction = ""] = isoOfMicroseconds(start_us).slice(0, -"+00:00".length).split(".");
  return `${seconds.replaceAll(/[-:]/g, "")}${fraction.padEnd(6, "0")}Z${run_id}`;
}

/** The time of the last segment: the start of the run, in microseconds. */
export function startOf(dotted_order: string): number | undefined {
  const [, year, month, day, hours, minutes, seconds, fraction] =
    SEGMENT.exec(dotted_order.split(".").at(-1) ?? "") ?? [];
  return microsecondsOf(`${year}-${month}-${day}T${hours}:${minutes}:${seconds}.${fraction}Z`);
}

/** Returns the ids of the runs above the run with this `dotted_order`, root first. */
export const ancestorIdsOf = (dotted_order: string): string[] =>
  dotted_order
    .split(".")
    .slice(0, -1)
    .map((segment) => segment.slice(-36));

/**
 * The position that the fields of a run define. The error messages are those of LangSmith.
 *
 * @param findParent returns the position of another run, or undefined if it is unknown
 * @returns undefined when the fields specify no position
 * @throws ApiError when the fields are invalid or contradict each other
 */
export function positionOf(
  run_id: string,
  fields: RunFields,
  start_us: number,
  findParent: (run_id: string) => Pick<TreePosition, "trace_id" | "dotted_order"> | undefined,
): TreePosition | undefined {
  const { dotted_order, trace_id } = fields;
  if (dotted_order !== undefined) return positionOfOrder(run_id, fields, dotted_order.toLowerCase());
  const segment = segmentOf(start_us, run_id);
  const parent_run_id = fields.parent_run_id ?? (trace_id === run_id ? undefined : trace_id);
  if (parent_run_id === run_id) throw invalidOrder("parent_run_id must not be the ID of the run itself");
  if (parent_run_id === undefined) return trace_id === undefined ? undefined : rootPosition(run_id, segment);
  const parent = findParent(parent_run_id);
  if (parent && !parent.dotted_order.includes(run_id)) {
    const dotted_order = `${parent.dotted_order}.${segment}`;
    return { trace_id: parent.trace_id, parent_run_id, dotted_order, is_root: false, is_provisional: false };
  }
  return { ...rootPosition(run_id, segment), parent_run_id, is_provisional: true };
}

export const rootPosition = (run_id: string, segment: string): TreePosition => ({
  trace_id: run_id,
  parent_run_id: null,
  dotted_order: segment,
  is_root: true,
  is_provisional: false,
});

function positionOfOrder(run_id: string, { trace_id, parent_run_id }: RunFields, given: string): TreePosition {
  const dotted_order = given.replaceAll("t", "T").replaceAll("z", "Z");
  const ids = dotted_order.split(".").map((segment) => {
    const id = SEGMENT.exec(segment)?.[8];
    if (id === undefined || !isUuid(id))
      throw invalidOrder(`dotted_order has the invalid part ${JSON.stringify(segment)}`);
    return id;
  });
  const found = { run_id: ids.at(-1), trace_id: ids[0] as string, parent_run_id: ids.at(-2) ?? null };
  const facts = `run_id: ${run_id}, trace_id: ${trace_id}, dotted_order: ${dotted_order}, parent_run_id: ${parent_run_id}`;
  if (found.run_id !== run_id) throw invalidOrder(`run_id does not match last part of dotted_order. ${facts}`);
  if (new Set(ids).size !== ids.length) throw invalidOrder(`dotted_order contains a run twice. ${facts}`);
  if (trace_id !== undefined && trace_id !== found.trace_id)
    throw invalidOrder(`trace_id does not match first part of dotted_order. ${facts}`);
  if (trace_id === run_id && ids.length > 1)
    throw invalidOrder(`dotted_order must contain a single part for root runs. ${facts}`);
  if (parent_run_id !== undefined && ids.length < 2)
    throw invalidOrder(`dotted_order must contain at least two parts for child runs. ${facts}`);
  if (parent_run_id !== undefined && parent_run_id !== found.parent_run_id)
    throw invalidOrder(`parent_run_id ${parent_run_id} does not match second to last part of dotted_order. ${facts}`);
  return {
    trace_id: found.trace_id,
    parent_run_id: found.parent_run_id,
    dotted_order,
    is_root: ids.length === 1,
    is_provisional: false,
  };
}

export const invalidOrder = (reason: string): ApiError => new ApiError("bad_dotted_order", { reason });

type TreeNode = Pick<
  TraceRunRow,
  "run_id" | "parent_run_id" | "trace_id" | "dotted_order" | "is_root" | "is_provisional"
>;

/**
 * If the parent of a provisional run has arrived, moves the run and all runs below it to their place below the parent. Each provisional
 * run is the root of its own trace, and parents move before their children, so every run moves only once.
 */
export function placeProvisional(nodes: Map<string, TreeNode>): void {
  const waiting = new Set([...nodes.values()].filter((run) => run.is_provisional === 1 && run.parent_run_id !== null));
  const traces = Map.groupBy(nodes.values(), ({ trace_id }) => trace_id);
  const place = (run: TreeNode): void => {
    const path = [run];
    for (let next = nodes.get(run.parent_run_id as string); next && waiting.has(next); ) {
      waiting.delete(next);
      path.push(next);
      next = nodes.get(next.parent_run_id as string);
    }
    for (const moved of path.reverse()) movePart(moved, nodes.get(moved.parent_run_id as string), traces);
  };
  for (const run of waiting) {
    waiting.delete(run);
    place(run);
  }
}

/** Moves the runs below a provisional run to the position that a request has given the run. */
export function moveRunsBelow(
  { trace_id, dotted_order }: TreeNode,
  before: Pick<TreeNode, "trace_id" | "dotted_order">,
  nodes: Iterable<TreeNode>,
): void {
  for (const node of nodes) {
    if (node.trace_id !== before.trace_id || !node.dotted_order.startsWith(`${before.dotted_order}.`)) continue;
    node.dotted_order = dotted_order + node.dotted_order.slice(before.dotted_order.length);
    node.trace_id = trace_id;
  }
}

function movePart(run: TreeNode, parent: TreeNode | undefined, traces: Map<string, TreeNode[]>): void {
  // A parent below the run itself would be a cycle.
  if (!parent || parent.dotted_order.includes(run.run_id)) return;
  const { trace_id, dotted_order } = run;
  const moved_order = `${parent.dotted_order}.${dotted_order}`;
  if (moved_order.length > MAX_ORDER_CHARS) return;
  for (const node of traces.get(trace_id) ?? []) {
    node.dotted_order = moved_order + node.dotted_order.slice(dotted_order.length);
    node.trace_id = parent.trace_id;
  }
  Object.assign(run, { is_root: 0, is_provisional: 0 });
}
