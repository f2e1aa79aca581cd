import type { TraceNode } from "../storage/traces/traces.ts";
import { MAX_ORDER_CHARS } from "./tree-position.ts";

/**
 * If the parent of a provisional run has arrived, moves the run and all runs below it to their place below the parent. Each provisional
 * run is the root of its own trace, and parents move before their children, so every run moves only once.
 */
export function placeProvisional(nodes: Map<string, TraceNode>): void {
  const waiting = new Set([...nodes.values()].filter((run) => run.is_provisional === 1 && run.parent_run_id !== null));
  const traces = Map.groupBy(nodes.values(), ({ trace_id }) => trace_id);
  const place = (run: TraceNode): void => {
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

function movePart(run: TraceNode, parent: TraceNode | undefined, traces: Map<string, TraceNode[]>): void {
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
