import type { Caller } from "../../platform/contract/caller.ts";
import type { Database, Tx } from "../../platform/database/database.ts";
import { isoOfMicroseconds } from "../../platform/lib/times.ts";
import type { GroupQuery, Thread } from "../contract/traces/threads.ts";
import type {
  ThreadQueryV2,
  ThreadStats,
  ThreadStatsQuery,
  ThreadTrace,
  ThreadTracesQuery,
} from "../contract/v2/threads.ts";
import { getExperiment } from "../lookups.ts";
import { selectFields } from "../serialization/records.ts";
import { runV2, selectedNames } from "../serialization/run-records.ts";
import { TRACED_RUN_V2 } from "../serialization/trace-records.ts";
import {
  countThreads,
  feedbackOfTraces,
  listThreads,
  rootsOfThreads,
  type ThreadPage,
  type ThreadRoot,
  usageDetailsOf,
} from "../storage/traces/threads.ts";
import { searchTraceRuns, type TraceSearch, traceRunsById } from "../storage/traces/trace-search.ts";
import { readCursor, readPosition, writeCursor, writePosition } from "./run-cursor.ts";
import { toSearch, toSearchV2 } from "./run-search.ts";
import { computeRunStats, feedbackStats } from "./stats.ts";

// A thread is the group of traces in a project whose roots have the same thread id. Clients choose the id.
// Postgres refuses text that contains NUL.
const isThreadId = (id: string) => !id.includes("\0");

export const threadOperations = ({ read }: Database) => ({
  async group(caller: Caller, body: GroupQuery): Promise<{ groups: Thread[]; total: number }> {
    await getExperiment(read, caller, body.session_id);
    const { filter, start_time, end_time, offset, limit } = body;
    const search = await toSearch(read, caller, { session: [body.session_id], filter, start_time, end_time });
    const roots = { ...(search.traced as TraceSearch), is_root: true };
    const { threads } = await readThreads(read, caller, roots, { offset, limit });
    return { groups: threads, total: await countThreads(read, caller.tenant_id, roots) };
  },

  async query(caller: Caller, { project_id, cursor, page_size, ...filters }: ThreadQueryV2) {
    const search = await rootSearch(read, caller, project_id, filters);
    const after = cursor === undefined ? undefined : readCursor(cursor, isThreadId);
    const { threads, last } = await readThreads(read, caller, search, { after, limit: page_size + 1 });
    const has_more = threads.length > page_size;
    return {
      items: threads.slice(0, page_size),
      has_more,
      ...(has_more && last && { next_cursor: writeCursor(last) }),
    };
  },

  /** The traces of a thread, oldest first. */
  async traces(caller: Caller, thread_id: string, query: ThreadTracesQuery) {
    const { project_id, cursor, page_size, selects = [], ...filters } = query;
    const search = ofThread(await rootSearch(read, caller, project_id, filters), thread_id);
    const after = cursor === undefined ? undefined : readPosition(cursor);
    const payloads = ["INPUTS", "OUTPUTS", "ERROR"].some((field) => selects.includes(field));
    const page = { descending: false, after, limit: page_size + 1, payloads };
    const found = await searchTraceRuns(read, caller.tenant_id, search, page);
    const runs = found.slice(0, page_size);
    const names = selectedNames(["TRACE_ID", ...selects]);
    const items = runs.map((run): Partial<ThreadTrace> => {
      const row = { run, feedback: [], base_url: "" };
      const latency = selects.includes("LATENCY") && { latency: TRACED_RUN_V2.latency_seconds(row) };
      return { ...runV2(TRACED_RUN_V2, row, names), ...latency };
    });
    const last = runs.at(-1);
    const has_more = found.length > page_size;
    return { items, has_more, ...(has_more && last && { next_cursor: writePosition(last) }) };
  },

  async stats(caller: Caller, thread_id: string, query: ThreadStatsQuery): Promise<Partial<ThreadStats>> {
    const { session_id, selects, filter } = query;
    const search = await rootSearch(read, caller, session_id, { filter });
    const roots = await rootsOfThreads(read, caller.tenant_id, search, [thread_id]);
    const ids = roots.map(({ run_id }) => run_id);
    const numbers = computeRunStats(roots);
    const ends = roots.flatMap(({ end_us }) => end_us ?? []);
    const timeOf = (us: number | undefined) => (us === undefined ? null : isoOfMicroseconds(us));
    const selected = new Set(selects);
    const stats: Omit<ThreadStats, keyof Details> = {
      turns: roots.length,
      first_start_time: timeOf(roots[0]?.start_us),
      last_start_time: timeOf(roots.at(-1)?.start_us),
      last_end_time: timeOf(ends.length === 0 ? undefined : ends.reduce((a, b) => Math.max(a, b))),
      latency_p50_seconds: numbers.latency_p50,
      latency_p99_seconds: numbers.latency_p99,
      prompt_tokens: numbers.prompt_tokens,
      prompt_cost: numbers.prompt_cost,
      completion_tokens: numbers.completion_tokens,
      completion_cost: numbers.completion_cost,
      total_tokens: numbers.total_tokens,
      total_cost: numbers.total_cost,
      feedback_stats: selected.has("FEEDBACK_STATS")
        ? feedbackStats(await feedbackOfTraces(read, caller.tenant_id, ids))
        : {},
    };
    const details = selects.some((name) => name.endsWith("_DETAILS"))
      ? await sumDetails(read, caller.tenant_id, ids)
      : {};
    return selectFields({ ...stats, ...details }, (name) => selected.has(name.toUpperCase().replace("_SECONDS", "")));
  },
});

type ThreadFilters = Pick<ThreadQueryV2, "filter" | "trace_filter" | "tree_filter"> &
  Partial<Pick<ThreadQueryV2, "min_start_time" | "max_start_time">>;

async function rootSearch(read: Tx, caller: Caller, project_id: string, filters: ThreadFilters): Promise<TraceSearch> {
  const { traced } = await toSearchV2(read, caller, { ...filters, project_ids: [project_id] });
  return { ...(traced as TraceSearch), is_root: true };
}

const ofThread = (search: TraceSearch, thread_id: string): TraceSearch => ({
  ...search,
  filters: [...search.filters, { op: "thread", ids: [thread_id] }],
});

/** `last` is the cursor for the next page, if `page.limit` is the page size plus one. */
async function readThreads(read: Tx, { tenant_id }: Caller, search: TraceSearch, page: ThreadPage) {
  const listed = await listThreads(read, tenant_id, search, page);
  const thread_ids = listed.map(({ thread_id }) => thread_id);
  const roots = Map.groupBy(await rootsOfThreads(read, tenant_id, search, thread_ids), ({ thread_id }) => thread_id);
  const all = [...roots.values()].flat();
  const byTrace = Map.groupBy(
    await feedbackOfTraces(
      read,
      tenant_id,
      all.map(({ run_id }) => run_id),
    ),
    ({ trace_id }) => trace_id,
  );
  const ends = [...roots.values()].flatMap((of) => [of[0]?.run_id ?? "", of.at(-1)?.run_id ?? ""]);
  const previews = await traceRunsById(read, tenant_id, [...new Set(ends)], false);
  const threads = thread_ids.flatMap((thread_id): Thread | [] => {
    const of = roots.get(thread_id);
    const [first, last] = [of?.[0], of?.at(-1)];
    if (!of || !first || !last) return [];
    const numbers = computeRunStats(of);
    return {
      thread_id,
      filter: `eq(thread_id, ${JSON.stringify(thread_id)})`,
      count: of.length,
      total_tokens: numbers.total_tokens ?? 0,
      total_cost: numbers.total_cost,
      latency_p50: numbers.latency_p50,
      latency_p99: numbers.latency_p99,
      min_start_time: isoOfMicroseconds(first.start_us),
      max_start_time: isoOfMicroseconds(last.start_us),
      start_time: isoOfMicroseconds(last.start_us),
      trace_id: last.run_id,
      first_trace_id: first.run_id,
      last_trace_id: last.run_id,
      first_inputs: previews.get(first.run_id)?.inputs_preview ?? "",
      last_outputs: previews.get(last.run_id)?.outputs_preview ?? "",
      last_error: of.findLast(({ error }) => error !== null)?.error ?? null,
      num_errored_turns: of.filter(({ error }: ThreadRoot) => error !== null).length,
      feedback_stats: feedbackStats(of.flatMap(({ run_id }) => byTrace.get(run_id) ?? [])),
    };
  });
  const end = listed[page.limit - 2];
  return { threads, last: end && { start_us: end.last_us, run_id: end.thread_id } };
}

const DETAILS = [
  "prompt_token_details",
  "completion_token_details",
  "prompt_cost_details",
  "completion_cost_details",
] as const;
type Details = Record<(typeof DETAILS)[number], { raw: Record<string, number> }>;

/** Sums the usage details of traces. A run below a run of the same type is skipped, because the upper run includes its usage. */
async function sumDetails(read: Tx, tenant_id: string, trace_ids: string[]): Promise<Details> {
  const sums = Object.fromEntries(DETAILS.map((name) => [name, { raw: {} }])) as Details;
  const counted = new Set<string>();
  for (const { run_id, run_type, dotted_order, usage_details } of await usageDetailsOf(read, tenant_id, trace_ids)) {
    const above = dotted_order.split(".").slice(0, -1);
    if (above.some((segment) => counted.has(`${run_type} ${segment.slice(-36)}`))) continue;
    counted.add(`${run_type} ${run_id}`);
    const details = JSON.parse(usage_details as string) as Record<string, Record<string, number> | null>;
    for (const name of DETAILS)
      for (const [kind, value] of Object.entries(details[name] ?? {}))
        sums[name].raw[kind] = Number(((sums[name].raw[kind] ?? 0) + value).toFixed(12));
  }
  return sums;
}
