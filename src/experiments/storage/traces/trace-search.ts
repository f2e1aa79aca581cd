import { type Expression, type SqlBool, sql } from "kysely";
import type { Tx } from "../../../platform/database/database.ts";
import { byIds } from "../../../platform/database/insert-many.ts";
import { compileFilter, TRACED } from "../compile-filter.ts";
import type { RunFilter } from "../run-filter.ts";
import { inWorkspace, oneOf, type RunPage, type RunSearch } from "../runs.ts";
import type { FeedbackRow } from "../schema.ts";
import type { TracePayloadRow, TraceRunRow, TreeUsage } from "./trace-schema.ts";

/** A traced run with the ids of its session, dataset and example. Payloads are optional. */
export type FullTraceRun = TraceRunRow & {
  experiment_id: string;
  trace_tier: string | null;
  dataset_id: string | null;
  example_id: string | null;
  share_token: string | null;
} & Partial<Pick<TracePayloadRow, "inputs" | "outputs" | "events" | "extra" | "serialized">> & {
    full_error?: string | null;
  };

/** A trace, or the part of it that consists of a run and all runs below it. */
export interface TreePart {
  trace_id: string;
  /** The `dotted_order` of the run; undefined for the whole trace. */
  below_order: string | undefined;
}

export interface TraceSearch extends Omit<RunSearch, "only_uploaded"> {
  trace_id?: string | undefined;
  parent_run_id?: string | undefined;
  run_type?: string | undefined;
  is_root?: boolean | undefined;
  part?: TreePart | undefined;
  /** Filters that the root of the trace must meet. */
  root_filters: RunFilter[];
  /** Filters that must each be met by at least one run of the trace. */
  tree_filters: RunFilter[];
}

export function searchTraceRuns(
  tx: Tx,
  tenant_id: string,
  search: TraceSearch,
  page: RunPage,
): Promise<FullTraceRun[]> {
  let query = withIds(tx, page.payloads).where(matching(tx, tenant_id, search));
  const direction = page.descending ? "desc" : "asc";
  if (page.after) {
    const { start_us, dotted_order } = page.after;
    const operator = sql.raw(page.descending ? "<" : ">");
    query = query.where(sql<boolean>`(r.start_us, r.dotted_order) ${operator} (${start_us}, ${dotted_order})`);
  }
  return tx.all(
    query.orderBy("r.start_us", direction).orderBy("r.dotted_order", direction).limit(page.limit),
  ) as unknown as Promise<FullTraceRun[]>;
}

/** The matching runs without payloads, in no particular order. */
export const traceRunsQuery = (tx: Tx, tenant_id: string, search: TraceSearch) =>
  withIds(tx, false).where(matching(tx, tenant_id, search));

export type TraceOutcome = Pick<TraceRunRow, "run_id" | "dotted_order" | "start_us" | "end_us" | "error"> & TreeUsage;

/** A query of the outcomes of all matching runs, in no particular order. */
export function outcomesOf(tx: Tx, tenant_id: string, search: TraceSearch) {
  // The bound on the start time makes SQLite read roots in the order in which they are stored.
  const from_us = search.from_us ?? (search.is_root === true ? 0 : undefined);
  return matchingRuns(tx, tenant_id, { ...search, from_us })
    .select(["r.run_id", "r.dotted_order", "r.start_us", "r.end_us", "r.error", "r.tree_prompt_tokens"])
    .select(["r.tree_completion_tokens", "r.tree_total_tokens", "r.tree_prompt_cost", "r.tree_completion_cost"])
    .select(["r.tree_total_cost", "r.tree_first_token_us"]);
}

/** The feedback on the matching runs, oldest first. */
export function feedbackOfMatching(tx: Tx, tenant_id: string, search: TraceSearch): Promise<FeedbackRow[]> {
  const { experiment_no } = search;
  const runs = matchingRuns(tx, tenant_id, search).select("r.run_id").whereRef("r.run_id", "=", sql.ref("f.run_id"));
  let query = tx.k
    .selectFrom("feedback as f")
    .selectAll("f")
    .where("f.tenant_id", "=", tenant_id)
    .where("f.run_id", "is not", null);
  if (experiment_no) query = query.where(oneOf("f.experiment_no", experiment_no) as Expression<boolean>);
  return tx.all(
    query
      .where(({ exists }) => exists(runs))
      .orderBy("f.created_us")
      .orderBy("f.feedback_id"),
  );
}

/** Returns a query for the matching runs, with the table alias `r`. The caller selects the columns. */
export const matchingRuns = (tx: Tx, tenant_id: string, search: TraceSearch) =>
  filteredRuns(tx, search.filters).where(matching(tx, tenant_id, search));

export const findTraceRun = (tx: Tx, tenant_id: string, run_id: string): Promise<FullTraceRun | undefined> =>
  tx.first(withIds(tx, true).where("r.tenant_id", "=", tenant_id).where("r.run_id", "=", run_id)) as unknown as Promise<
    FullTraceRun | undefined
  >;

/** Traced runs by id. */
export async function traceRunsById(
  tx: Tx,
  tenant_id: string,
  run_ids: string[],
  payloads: boolean,
): Promise<Map<string, FullTraceRun>> {
  const runs = await byIds(run_ids, (batch) =>
    tx.all(withIds(tx, payloads).where("r.tenant_id", "=", tenant_id).where("r.run_id", "in", batch)),
  );
  return new Map((runs as unknown as FullTraceRun[]).map((run) => [run.run_id, run]));
}

/** The runs of a trace below one of its runs, in the order of the tree. */
export const runsBelow = (
  tx: Tx,
  { tenant_id, trace_id, dotted_order }: TraceRunRow,
): Promise<Pick<TraceRunRow, "run_id" | "parent_run_id">[]> =>
  tx.all(
    tx.k
      .selectFrom("trace_runs")
      .select(["run_id", "parent_run_id"])
      .where("tenant_id", "=", tenant_id)
      .where("trace_id", "=", trace_id)
      .where(isBelow("dotted_order", dotted_order))
      .orderBy("dotted_order"),
  );

/** The runs below the roots of traces, in the order of each tree. */
export const runsOfTraces = (
  tx: Tx,
  tenant_id: string,
  trace_ids: string[],
): Promise<Pick<TraceRunRow, "trace_id" | "run_id" | "parent_run_id">[]> =>
  byIds(trace_ids, (batch) =>
    tx.all(
      tx.k
        .selectFrom("trace_runs")
        .select(["trace_id", "run_id", "parent_run_id"])
        .where("tenant_id", "=", tenant_id)
        .where("trace_id", "in", batch)
        .where("is_root", "=", 0)
        .orderBy("dotted_order"),
    ),
  );

/** The attachments of runs, sorted by name. */
export const attachmentsOf = (
  tx: Tx,
  numbers: number[],
): Promise<{ run_no: number; name: string; mime_type: string; token: string }[]> =>
  byIds(numbers, (batch) =>
    tx.all(
      tx.k
        .selectFrom("trace_attachments")
        .select(["run_no", "name", "mime_type", "token"])
        .where("run_no", "in", batch)
        .orderBy("name"),
    ),
  );

const isBelow = (column: string, order: string) =>
  sql<boolean>`substr(${sql.ref(column)}, 1, ${order.length + 1}) = ${`${order}.`}`;

const isInPart = ({ trace_id, below_order: order }: TreePart): Expression<SqlBool> =>
  order === undefined
    ? sql`r.trace_id = ${trace_id}`
    : sql`r.trace_id = ${trace_id} and (r.dotted_order = ${order} or ${isBelow("r.dotted_order", order)})`;

function withIds(tx: Tx, payloads: boolean) {
  const query = tx.k
    .selectFrom("trace_runs as r")
    .innerJoin("experiments as x", "x.experiment_no", "r.experiment_no")
    .leftJoin("examples as e", (join) =>
      join.onRef("e.tenant_id", "=", "r.tenant_id").onRef("e.example_id", "=", "r.reference_example_id"),
    )
    .leftJoin("datasets as d", "d.dataset_no", "e.dataset_no")
    .leftJoin("run_shares as s", (join) =>
      join.onRef("s.tenant_id", "=", "r.tenant_id").onRef("s.run_id", "=", "r.run_id"),
    )
    .selectAll("r")
    .select(["x.experiment_id", "x.trace_tier", "d.dataset_id", "e.example_id", "s.share_token"]);
  if (!payloads) return query;
  return query
    .innerJoin("trace_payloads as p", "p.run_no", "r.run_no")
    .select(["p.inputs", "p.outputs", "p.events", "p.extra", "p.serialized", "p.error as full_error"]);
}

function matching(tx: Tx, tenant_id: string, search: TraceSearch): Expression<SqlBool> {
  const { example_id, from_us, to_us, has_error, trace_id, parent_run_id, run_type, is_root } = search;
  const all: Expression<SqlBool>[] = [inWorkspace(tenant_id, search)];
  if (example_id) all.push(oneOf("r.reference_example_id", example_id));
  if (from_us !== undefined) all.push(sql`r.start_us >= ${from_us}`);
  if (to_us !== undefined) all.push(sql`r.start_us <= ${to_us}`);
  if (has_error !== undefined) all.push(has_error ? sql`r.error is not null` : sql`r.error is null`);
  if (trace_id !== undefined) all.push(sql`r.trace_id = ${trace_id}`);
  if (parent_run_id !== undefined) all.push(sql`r.parent_run_id = ${parent_run_id}`);
  if (run_type !== undefined) all.push(sql`r.run_type = ${run_type}`);
  if (search.part) all.push(isInPart(search.part));
  // A literal, so that the planner can use the index of roots.
  if (is_root !== undefined) all.push(is_root ? sql`r.is_root = 1` : sql`r.is_root = 0`);
  all.push(...search.filters.map((filter) => compileFilter(tx, filter, TRACED)));
  const searched = { tenant_id, part: search.part };
  for (const filter of search.root_filters) all.push(traceMatches(tx, searched, filter, true));
  for (const filter of search.tree_filters) all.push(traceMatches(tx, searched, filter, false));
  return sql.join(all, sql` and `);
}

/**
 * Whether a run of the same trace meets a filter. The inner `r` and `e` hide the outer ones. Only the searched part counts: a reader of a
 * shared run must not find out what the rest of the trace contains.
 */
function traceMatches(
  tx: Tx,
  { tenant_id, part }: { tenant_id: string; part: TreePart | undefined },
  filter: RunFilter,
  of_root: boolean,
): Expression<SqlBool> {
  let query = filteredRuns(tx, [filter])
    .select("r.trace_id")
    .where(sql<boolean>`r.tenant_id = ${tenant_id}`)
    .where(compileFilter(tx, filter, TRACED));
  if (of_root) query = query.where(sql<boolean>`r.is_root = 1`);
  if (part) query = query.where(isInPart(part));
  return sql`r.trace_id in ${query}`;
}

/** Returns the examples whose rows in an experiment belong to matching roots of traces. */
export const searchTracedRows = (
  tx: Tx,
  tenant_id: string,
  experiment_no: number,
  filters: RunFilter[],
): Promise<{ example_index: number }[]> =>
  tx.all(
    filteredRuns(tx, filters)
      .innerJoin("experiment_runs as row", (join) =>
        join.onRef("row.tenant_id", "=", "r.tenant_id").onRef("row.run_id", "=", "r.run_id"),
      )
      .select("row.example_index")
      .where("row.experiment_no", "=", experiment_no)
      .where(
        matching(tx, tenant_id, {
          experiment_no: [experiment_no],
          is_root: true,
          filters,
          root_filters: [],
          tree_filters: [],
        }),
      ),
  );

/** Selects runs `r`, and joins their example `e` only if a filter needs it: the joins of 100,000 runs take 100 ms. */
function filteredRuns(tx: Tx, filters: RunFilter[]) {
  const runs = tx.k.selectFrom("trace_runs as r");
  const withExamples = runs.leftJoin("examples as e", (join) =>
    join.onRef("e.tenant_id", "=", "r.tenant_id").onRef("e.example_id", "=", "r.reference_example_id"),
  );
  const needsExample = JSON.stringify(filters).includes('"reference_example"');
  return needsExample ? withExamples : (runs as unknown as typeof withExamples);
}
