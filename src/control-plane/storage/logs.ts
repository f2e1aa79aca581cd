import { sql } from "kysely";
import { nowMs, type Tx } from "../../platform/database/database.ts";
import type { DeploymentLogRow } from "./schema.ts";

export type NewLogLine = Omit<DeploymentLogRow, "log_no">;

/** Parameters of a line. */
const COLUMNS = 8;

/** Stores lines in the order in which they are given. */
export async function insertLogLines(tx: Tx, lines: readonly NewLogLine[]): Promise<void> {
  const most = Math.floor(Math.min(tx.dialect.max_parameters, 8000) / COLUMNS);
  for (let from = 0; from < lines.length; from += most)
    await tx.run(tx.k.insertInto("deployment_logs").values(lines.slice(from, from + most)));
}

/** The last line of a page: lines are in the order of their time, and those of one moment in the order of their storing. */
export type LogPlace = Pick<DeploymentLogRow, "at" | "log_no">;

export interface LogFilter {
  tenant_id: string;
  deployment_id: string;
  revision_id?: string | undefined;
  kind: "build" | "deploy";
  order: "asc" | "desc";
  limit: number;
  after?: LogPlace | undefined;
  levels?: readonly string[] | undefined;
  /** A part of the message, in any case. */
  query?: string | undefined;
  run_id?: string | undefined;
  /** Both inclusive. */
  start_at?: number | undefined;
  end_at?: number | undefined;
}

export function listLogLines(tx: Tx, filter: LogFilter): Promise<DeploymentLogRow[]> {
  const { revision_id, order, after, levels, query: part, run_id, start_at, end_at } = filter;
  let query = tx.k
    .selectFrom("deployment_logs")
    .selectAll()
    .where("tenant_id", "=", filter.tenant_id)
    .where("deployment_id", "=", filter.deployment_id)
    .where("kind", "=", filter.kind);
  if (revision_id !== undefined) query = query.where("revision_id", "=", revision_id);
  if (levels !== undefined) query = query.where("level", "in", levels);
  if (part !== undefined) query = query.where(tx.dialect.containsText(sql.ref<string>("message"), part));
  if (run_id !== undefined) query = query.where("run_id", "=", run_id);
  if (start_at !== undefined) query = query.where("at", ">=", start_at);
  if (end_at !== undefined) query = query.where("at", "<=", end_at);
  if (after !== undefined) {
    const beyond = order === "asc" ? ">" : "<";
    query = query.where((e) =>
      e.or([e("at", beyond, after.at), e.and([e("at", "=", after.at), e("log_no", beyond, after.log_no)])]),
    );
  }
  return tx.all(query.orderBy("at", order).orderBy("log_no", order).limit(filter.limit));
}

/** Lines that are older than so long, by the clock of the database. Answers how many were deleted. */
export const deleteOldLogLines = (tx: Tx, older_than_ms: number): Promise<number> =>
  tx.run(tx.k.deleteFrom("deployment_logs").where("at", "<", sql<number>`${nowMs} - ${older_than_ms}`));

/** Deployments with more lines than `most`. */
export async function deploymentsWithMoreLines(tx: Tx, most: number): Promise<string[]> {
  const rows = await tx.all(
    tx.k
      .selectFrom("deployment_logs")
      .select("deployment_id")
      .groupBy("deployment_id")
      .having((e) => e.fn.countAll(), ">", most),
  );
  return rows.map((row) => row.deployment_id);
}

/** Deletes the oldest lines of a deployment until `most` are left. */
export const trimLogLines = (tx: Tx, deployment_id: string, most: number): Promise<number> =>
  tx.run(
    tx.k
      .deleteFrom("deployment_logs")
      .where("deployment_id", "=", deployment_id)
      .where("log_no", "<=", (e) =>
        e
          .selectFrom("deployment_logs as kept")
          .select("kept.log_no")
          .where("kept.deployment_id", "=", deployment_id)
          .orderBy("kept.log_no", "desc")
          .limit(1)
          .offset(most),
      ),
  );
