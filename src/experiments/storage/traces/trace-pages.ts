import { type RawBuilder, sql } from "kysely";
import type { Tx } from "../../../platform/database/database.ts";
import type { TracesQuery } from "../../contract/traces/app-traces.ts";
import type { TraceRunRow } from "./trace-schema.ts";
import { type FullTraceRun, type TraceSearch, traceRunsQuery } from "./trace-search.ts";

interface TraceHead {
  /** The session of the root, else of the first run. */
  session_id: string;
  version: string;
  root: Pick<TraceRunRow, "error" | "end_us"> | undefined;
}

/** Returns the session and the version of a trace. Any change of runs or feedback in its sessions changes the version. */
export async function sessionOfTrace(tx: Tx, tenant_id: string, trace_id: string): Promise<TraceHead | undefined> {
  const sessions = await tx.all(
    tx.k
      .selectFrom("trace_runs as r")
      .innerJoin("experiments as x", "x.experiment_no", "r.experiment_no")
      .select(["x.experiment_no", "x.experiment_id", "x.stats_version"])
      .select(({ fn }) => [fn.min("r.dotted_order").as("first"), fn.countAll<number>().as("runs")])
      .where("r.tenant_id", "=", tenant_id)
      .where("r.trace_id", "=", trace_id)
      .groupBy(["x.experiment_no", "x.experiment_id", "x.stats_version"])
      .orderBy("first"),
  );
  const [first] = sessions;
  if (!first) return undefined;
  const root = await tx.first(
    tx.k
      .selectFrom("trace_runs")
      .select(["error", "end_us"])
      .where("tenant_id", "=", tenant_id)
      .where("run_id", "=", trace_id)
      .where(sql<boolean>`is_root = 1`),
  );
  const version = sessions.map((session) => `${session.experiment_no}.${session.stats_version}.${session.runs}`);
  return { session_id: first.experiment_id, version: version.sort().join("-"), root };
}

/** The columns for one run in a page. They exclude the previews, which would double the size of a trace. */
const ROW_COLUMNS = [
  "run_id",
  "parent_run_id",
  "dotted_order",
  "name",
  "run_type",
  "start_us",
  "end_us",
  "tree_first_token_us",
  "error",
  "tree_total_tokens",
  "tree_total_cost",
  "tags",
] as const;

export type LightTraceRun = Pick<TraceRunRow, (typeof ROW_COLUMNS)[number]>;

/** The runs of a trace after a position in its tree, in the order of the tree. */
export function traceRunsAfter(
  tx: Tx,
  tenant_id: string,
  trace_id: string,
  { after, limit }: { after: string | undefined; limit: number },
): Promise<(LightTraceRun & Pick<TraceRunRow, "metadata">)[]> {
  let query = tx.k
    .selectFrom("trace_runs")
    .select([...ROW_COLUMNS, "metadata"])
    .where("tenant_id", "=", tenant_id)
    .where("trace_id", "=", trace_id);
  if (after !== undefined) query = query.where("dotted_order", ">", after);
  return tx.all(query.orderBy("dotted_order").limit(limit));
}

/** The last run of the previous page. */
export interface ListCursor {
  sort_key: number;
  run_id: string;
}

export type ListedTraceRun = FullTraceRun & ListCursor;

/** A run without a value comes after all others in descending order. */
const SORT_KEYS: Record<TracesQuery["order_by"], RawBuilder<number>> = {
  start_time: sql`r.start_us`,
  latency: sql`coalesce(r.end_us - r.start_us, -1)`,
  total_tokens: sql`coalesce(r.tree_total_tokens, -1)`,
  total_cost: sql`coalesce(r.tree_total_cost, -1)`,
};

export function listTraceRuns(
  tx: Tx,
  tenant_id: string,
  search: TraceSearch,
  page: { by: TracesQuery["order_by"]; descending: boolean; after: ListCursor | undefined; limit: number },
): Promise<ListedTraceRun[]> {
  const { by, descending, after, limit } = page;
  const key = SORT_KEYS[by];
  const direction = descending ? "desc" : "asc";
  let query = traceRunsQuery(tx, tenant_id, search).select(key.as("sort_key"));
  if (after)
    query = query.where(
      sql<boolean>`(${key}, r.run_id) ${sql.raw(descending ? "<" : ">")} (${after.sort_key}, ${after.run_id})`,
    );
  return tx.all(query.orderBy(key, direction).orderBy("r.run_id", direction).limit(limit)) as unknown as Promise<
    ListedTraceRun[]
  >;
}
