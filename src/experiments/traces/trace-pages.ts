import type { Caller } from "../../platform/contract/caller.ts";
import type { Database } from "../../platform/database/database.ts";
import { ApiError } from "../../platform/errors.ts";
import { isUuid } from "../../platform/lib/ids.ts";
import type {
  ListedRun,
  Trace,
  TraceRun,
  TracesPage,
  TracesQuery,
  UsageOverTime,
  UsageQuery,
} from "../contract/traces/app-traces.ts";
import { readFilters } from "../filter/parse.ts";
import { getExperiment } from "../lookups.ts";
import { parseJson } from "../serialization/records.ts";
import { statusOf, timeOf } from "../serialization/trace-records.ts";
import { feedbackStats, sumOf } from "../sessions/stats.ts";
import { feedbackOfRuns } from "../storage/feedback.ts";
import { type BucketUsage, findStartBefore, sumUsageByBucket } from "../storage/traces/outcome-sums.ts";
import {
  type LightTraceRun,
  type ListCursor,
  type ListedTraceRun,
  listTraceRuns,
  sessionOfTrace,
  traceRunsAfter,
} from "../storage/traces/trace-pages.ts";
import type { TraceRunRow } from "../storage/traces/trace-schema.ts";

/** A page of 5,000 runs has 2 MB. */
const MAX_RUNS = 5_000;

/** Maximum number of traces whose usage is summed. */
const MAX_SUMMED = 50_000;

const MAX_ASSISTANTS = 100;

/** The data of the trace pages in the UI: runs without payloads. */
export const tracePageOperations = ({ read }: Database) => ({
  /** @param after `next` of the previous page */
  async read({ tenant_id }: Caller, trace_id: string, after: string | undefined): Promise<Trace> {
    const trace = await sessionOfTrace(read, tenant_id, trace_id);
    if (!trace) throw new ApiError("trace_not_found");
    const found = await traceRunsAfter(read, tenant_id, trace_id, { after, limit: MAX_RUNS + 1 });
    const rows = found.slice(0, MAX_RUNS);
    return {
      trace_id,
      session_id: trace.session_id,
      status: trace.root ? statusOf(trace.root) : "pending",
      version: trace.version,
      next: found.length > MAX_RUNS ? (rows.at(-1)?.dotted_order ?? null) : null,
      runs: rows.map(toTraceRun),
    };
  },

  async list(
    caller: Caller,
    { session_id, filter, query, cursor, limit, ...search }: TracesQuery,
  ): Promise<TracesPage> {
    const experiment = session_id === undefined ? undefined : await getExperiment(read, caller, session_id);
    const found = await listTraceRuns(
      read,
      caller.tenant_id,
      {
        experiment_no: experiment && [experiment.experiment_no],
        id: search.id,
        is_root: search.is_root,
        filters: readFilters([filter], query),
        root_filters: [],
        tree_filters: [],
      },
      {
        by: search.order_by,
        descending: search.descending,
        after: cursor === undefined ? undefined : readCursor(cursor, search.order_by),
        limit: limit + 1,
      },
    );
    const rows = found.slice(0, limit);
    const ids = rows.map(({ run_id }) => run_id);
    const feedback = Map.groupBy(await feedbackOfRuns(read, caller.tenant_id, ids), ({ run_id }) => run_id);
    const last = found.length > limit ? rows.at(-1) : undefined;
    return {
      runs: rows.map(
        (row): ListedRun => ({
          ...fieldsOf(row),
          trace_id: row.trace_id,
          session_id: row.experiment_id,
          thread_id: row.thread_id,
          inputs_preview: row.inputs_preview,
          outputs_preview: row.outputs_preview,
          feedback_stats: feedbackStats(feedback.get(row.run_id) ?? []),
        }),
      ),
      next: last ? cursorOf(last) : null,
    };
  },

  async usage({ tenant_id }: Caller, query: UsageQuery, max_summed = MAX_SUMMED): Promise<UsageOverTime> {
    const { from, until, bucket_ms, assistant_id } = query;
    const bucket_us = bucket_ms * 1000;
    const filter = { tenant_id, assistant_id, from_us: from, until_us: until, bucket_us };
    const first_us = await findStartBefore(read, filter, max_summed - 1);
    const usage = await sumUsageByBucket(read, filter, first_us);
    const buckets = [...Map.groupBy(usage, ({ bucket }) => bucket)].sort(([a], [b]) => a - b);
    const assistants = [...Map.groupBy(usage, (group) => group.assistant_id)].map(([id, own]) => ({
      assistant_id: id,
      ...usageOf(own),
    }));
    assistants.sort((a, b) => (b.total_tokens ?? 0) - (a.total_tokens ?? 0));
    return {
      total: usageOf(usage),
      buckets: buckets.map(([bucket, own]) => ({ at: timeOf(bucket * bucket_us) as string, ...usageOf(own) })),
      assistants: assistants.slice(0, MAX_ASSISTANTS),
      incomplete_until: timeOf(first_us),
    };
  },
});

const usageOf = (groups: readonly BucketUsage[]) => ({
  total_tokens: sumOf(groups.map(({ tree_total_tokens }) => tree_total_tokens)),
  completion_tokens: sumOf(groups.map(({ tree_completion_tokens }) => tree_completion_tokens)),
  total_cost: sumOf(groups.map(({ tree_total_cost }) => tree_total_cost)),
});

const fieldsOf = (row: LightTraceRun) => ({
  id: row.run_id,
  parent_run_id: row.parent_run_id,
  dotted_order: row.dotted_order,
  name: row.name ?? "",
  run_type: row.run_type,
  status: statusOf(row),
  start_time: timeOf(row.start_us) as string,
  end_time: timeOf(row.end_us),
  first_token_time: timeOf(row.tree_first_token_us),
  error: row.error?.split("\n", 1)[0] ?? null,
  total_tokens: row.tree_total_tokens ?? 0,
  total_cost: row.tree_total_cost,
  tags: parseJson<string[]>(row.tags) ?? [],
});

function toTraceRun(row: LightTraceRun & Pick<TraceRunRow, "metadata">): TraceRun {
  // Parses only metadata that contains the key. Most metadata does not.
  const node = row.metadata?.includes('"langgraph_node"') && parseJson<Record<string, unknown>>(row.metadata);
  const name = node ? node.langgraph_node : undefined;
  return { ...fieldsOf(row), ...(typeof name === "string" && { langgraph_node: name }) };
}

const cursorOf = ({ sort_key, run_id }: ListedTraceRun): string =>
  Buffer.from(JSON.stringify([sort_key, run_id])).toString("base64url");

function readCursor(cursor: string, order_by: TracesQuery["order_by"]): ListCursor {
  // The sort keys other than costs are integers.
  const isKey = order_by === "total_cost" ? Number.isFinite : Number.isSafeInteger;
  try {
    const [sort_key, run_id] = JSON.parse(Buffer.from(cursor, "base64url").toString());
    if (isKey(sort_key) && isUuid(run_id)) return { sort_key, run_id };
  } catch {
    // The error below reports it.
  }
  throw new ApiError("bad_cursor");
}
