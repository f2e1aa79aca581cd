import type { Caller } from "../../../platform/contract/caller.ts";
import type { Database, Tx } from "../../../platform/database/database.ts";
import { ApiError } from "../../../platform/errors.ts";
import { getExperiment } from "../../lookups.ts";
import { readCursor, writeCursor } from "../../sessions/run-cursor.ts";
import { lockExperiment, markStatsDirty } from "../../storage/experiments.ts";
import type { RunCursor } from "../../storage/runs.ts";
import { findTraceRuns, payloadsOf, rootsAfter, type TraceNode, traceNodes } from "../../storage/traces/traces.ts";
import { deriveColumns, type Pricing } from "../merge-run.ts";
import { writeNodes } from "../trace-writer.ts";
import type { PriceMaps } from "./price-maps.ts";
import { sumUsage } from "./tree-usage.ts";

/** The time after which a call returns: the client waits for each response, and continues with another request. */
const MAX_WORK_MS = 2_000;

/** The target number of runs per transaction, which takes about 100 ms. A trace is never split. */
const MAX_RUNS = 1_000;
const MAX_TRACES = 200;

interface Repriced {
  traces: number;
  runs: number;
  next: string | null;
}

/** Recomputes the costs of stored runs, except costs that the client sent. */
export const repriceOperations = (database: Database, maps: PriceMaps) => ({
  /** @param after `next` of the previous call */
  async session(caller: Caller, session_id: string, after: string | undefined): Promise<Repriced> {
    const { experiment_no } = await getExperiment(database.read, caller, session_id);
    const pricing = await maps.pricingOf(database.read, caller.tenant_id);
    const started = performance.now();
    const done = { traces: 0, runs: 0 };
    let last = after === undefined ? undefined : readCursor(after);
    for (;;) {
      const step = await database.write((tx) => repriceNext(tx, caller.tenant_id, experiment_no, last, pricing));
      done.traces += step.traces;
      done.runs += step.runs;
      last = step.last;
      if (!last) return { ...done, next: null };
      if (performance.now() - started > MAX_WORK_MS) return { ...done, next: writeCursor(last) };
    }
  },
});

/** Reprices the next traces of a session. `last` is undefined when no traces are left. */
async function repriceNext(
  tx: Tx,
  tenant_id: string,
  experiment_no: number,
  after: RunCursor | undefined,
  pricing: Pricing,
): Promise<{ traces: number; runs: number; last: RunCursor | undefined }> {
  if (!(await lockExperiment(tx, experiment_no))) throw new ApiError("session_not_found");
  const roots = firstRoots(await rootsAfter(tx, experiment_no, { after, limit: MAX_TRACES }));
  const nodes = await traceNodes(
    tx,
    tenant_id,
    roots.map(({ run_id }) => run_id),
  );
  const changed = await repriceNodes(tx, tenant_id, nodes, pricing);
  const sessions = new Set(changed.map((node) => node.experiment_no));
  await markStatsDirty(tx, sessions.size > 0 ? [...sessions.add(experiment_no)].sort((a, b) => a - b) : []);
  return { traces: roots.length, runs: changed.length, last: roots.at(-1) };
}

/** The first roots whose traces together fit into one transaction, but at least one root. */
export function firstRoots<Root extends { run_count: number }>(roots: Root[]): Root[] {
  let runs = 0;
  const end = roots.findIndex(({ run_count }, index) => {
    runs += Number(run_count);
    return index > 0 && runs > MAX_RUNS;
  });
  return end === -1 ? roots : roots.slice(0, end);
}

/** @returns the runs whose own costs changed, and the runs above them */
async function repriceNodes(tx: Tx, tenant_id: string, nodes: TraceNode[], pricing: Pricing): Promise<TraceNode[]> {
  const before = new Map(nodes.map((node) => [node.run_id, { ...node }]));
  const byId = new Map(nodes.map((node) => [node.run_id, node]));
  const billed = nodes.filter((node) => (node.prompt_tokens ?? node.completion_tokens ?? node.total_cost) !== null);
  const runs = await findTraceRuns(
    tx,
    tenant_id,
    billed.map(({ run_id }) => run_id),
  );
  const payloads = await payloadsOf(
    tx,
    runs.map(({ run_no }) => run_no),
  );
  const payloadOf = new Map(payloads.map((payload) => [payload.run_no, payload]));
  for (const run of runs) {
    const payload = payloadOf.get(run.run_no);
    if (!payload) continue;
    const { usage_details } = run;
    deriveColumns({ run_no: run.run_no, run, payload, changes_usage: true, was_ended: run.end_us !== null }, pricing);
    const { prompt_cost, completion_cost, total_cost } = run;
    const details = run.usage_details === usage_details ? {} : { usage_details: run.usage_details };
    Object.assign(byId.get(run.run_id) as TraceNode, { prompt_cost, completion_cost, total_cost, ...details });
  }
  for (const trace of Map.groupBy(nodes, ({ trace_id }) => trace_id).values()) sumUsage(trace);
  return writeNodes(tx, tenant_id, nodes, before);
}
