import type { Tx } from "../../platform/database/database.ts";
import { lockExperiments, markStatsDirty } from "../storage/experiments.ts";
import {
  deleteTraceRuns,
  runsOfTraces,
  sessionNumbersOf,
  type TraceMember,
  traceNodes,
  updateTraceRun,
} from "../storage/traces/traces.ts";
import type { RunOperation } from "./operation.ts";
import { sumUsage } from "./usage/tree-usage.ts";

/** How the open runs of a trace end. */
export interface TraceEnd {
  run_id: string;
  /** Fields of the root, in case it was never sent. */
  name: string;
  session_name: string;
  /** In milliseconds. */
  started_at: number;
  /** Error of the root, even if it has already ended; undefined keeps its result. */
  error: string | undefined;
  /** Error of all runs that have not ended. For the root, `error` takes precedence if it is given. */
  open_error: string;
}

/** The operations that end a run and the runs below it. */
export async function endOperations(tx: Tx, tenant_id: string, end: TraceEnd): Promise<RunOperation[]> {
  const { run_id, name, session_name, started_at, error, open_error } = end;
  const end_time = Date.now() * 1000;
  const found = await subtrees(tx, tenant_id, [run_id]);
  const hasRoot = found.some((run) => run.run_id === run_id);
  const open = found.filter(({ end_us }) => end_us === null).map((run) => run.run_id);
  const start = { name, run_type: "chain", session_name, start_time: started_at * 1000 };
  return [
    ...(hasRoot ? [] : [{ kind: "post" as const, id: run_id, fields: start }]),
    ...(hasRoot ? open : [...open, run_id]).map((id) => ({
      kind: "patch" as const,
      id,
      fields: { end_time, error: open_error },
    })),
    ...(error === undefined ? [] : [{ kind: "patch" as const, id: run_id, fields: { error } }]),
  ];
}

/** Deletes runs with all runs below them, their feedback and their rows of experiments. Unknown runs are ignored. */
export async function deleteSubtrees(tx: Tx, tenant_id: string, run_ids: string[]): Promise<void> {
  const sessions = await sessionNumbersOf(tx, tenant_id, run_ids);
  if (sessions.size === 0) return;
  await lockExperiments(tx, [...new Set(sessions.values())]);
  const found = await subtrees(tx, tenant_id, run_ids);
  await deleteTraceRuns(
    tx,
    tenant_id,
    found.map(({ run_id }) => run_id),
  );
  // Runs of a client's trace may remain. Their sums are recomputed, because they still include the tokens of the deleted runs.
  const trace_ids = new Set(found.map(({ trace_id }) => trace_id));
  const rest = await traceNodes(tx, tenant_id, [...trace_ids]);
  for (const runs of Map.groupBy(rest, ({ trace_id }) => trace_id).values()) {
    sumUsage(runs);
    for (const { run_id, ...columns } of runs) await updateTraceRun(tx, { tenant_id, run_id }, columns);
  }
  const changed = new Set([...found, ...rest].map(({ experiment_no }) => experiment_no));
  await markStatsDirty(
    tx,
    [...changed].sort((a, b) => a - b),
  );
}

const UUID_CHARS = 36;

async function subtrees(tx: Tx, tenant_id: string, run_ids: string[]): Promise<TraceMember[]> {
  const wanted = new Set(run_ids);
  const isBelow = (segment: string) => wanted.has(segment.slice(-UUID_CHARS));
  return (await runsOfTraces(tx, tenant_id, run_ids)).filter((run) => run.dotted_order.split(".").some(isBelow));
}
