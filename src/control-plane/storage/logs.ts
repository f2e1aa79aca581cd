import { sql } from "kysely";
import { nowMs, type Tx } from "../../platform/database/database.ts";
import { insertMany } from "../../platform/database/insert-many.ts";
import type { DeploymentLogRow } from "./schema.ts";

export type NewLogLine = Omit<DeploymentLogRow, "log_no">;

export const insertLogLines = (tx: Tx, lines: readonly NewLogLine[]): Promise<void> =>
  insertMany(tx, "deployment_logs", lines);

/** Position of the last line of a page. Lines are sorted by time, then by order of insertion. */
export type LogCursor = Pick<DeploymentLogRow, "at" | "log_no">;

interface LogFilter {
  tenant_id: string;
  deployment_id: string;
  revision_id?: string | undefined;
  kind: "build" | "deploy";
  order: "asc" | "desc";
  limit: number;
  after?: LogCursor | undefined;
  levels?: readonly string[] | undefined;
  /** Text that the message contains, case-insensitive. */
  query?: string | undefined;
  run_id?: string | undefined;
  /** `start_at` and `end_at` are inclusive. */
  start_at?: number | undefined;
  end_at?: number | undefined;
}

export function listLogLines(tx: Tx, filter: LogFilter): Promise<DeploymentLogRow[]> {
  const { tenant_id, deployment_id, kind, revision_id, order, after, levels, run_id, start_at, end_at } = filter;
  let query = tx.k
    .selectFrom("deployment_logs")
    .selectAll()
    .where((e) => e.and({ tenant_id, deployment_id, kind }));
  if (revision_id !== undefined) query = query.where("revision_id", "=", revision_id);
  if (levels !== undefined) query = query.where("level", "in", levels);
  if (filter.query !== undefined)
    query = query.where(tx.dialect.containsText(sql.ref<string>("message"), filter.query));
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

/** `older_than_ms` is measured by the database clock. */
export const deleteOldLogLines = (tx: Tx, older_than_ms: number): Promise<number> =>
  tx.run(tx.k.deleteFrom("deployment_logs").where("at", "<", sql<number>`${nowMs} - ${older_than_ms}`));

export async function deploymentsWithMoreLines(tx: Tx, max: number): Promise<string[]> {
  const rows = await tx.all(
    tx.k
      .selectFrom("deployment_logs")
      .select("deployment_id")
      .groupBy("deployment_id")
      .having((e) => e.fn.countAll(), ">", max),
  );
  return rows.map((row) => row.deployment_id);
}

/** Deletes the oldest lines of a deployment until `max` are left. */
export const trimLogLines = (tx: Tx, deployment_id: string, max: number): Promise<number> =>
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
          .offset(max),
      ),
  );

/** Time of the last log line after `since` from the revision's instances, if any. */
export async function lastLineSince(
  tx: Tx,
  { deployment_id, revision_id, since }: { deployment_id: string; revision_id: string; since: number },
): Promise<number | undefined> {
  const row = await tx.first(
    tx.k
      .selectFrom("deployment_logs")
      .select("at")
      .where((e) => e.and({ deployment_id, revision_id, kind: "deploy" }))
      .where("at", ">", since)
      .orderBy("at", "desc")
      .limit(1),
  );
  return row?.at;
}

/** Deletes up to `limit` lines of a deployment, oldest first. Returns the number of deleted lines. */
export const deleteLogLines = (tx: Tx, deployment_id: string, limit: number): Promise<number> =>
  tx.run(
    tx.k
      .deleteFrom("deployment_logs")
      .where("log_no", "in", (e) =>
        e
          .selectFrom("deployment_logs")
          .select("log_no")
          .where("deployment_id", "=", deployment_id)
          .orderBy("at")
          .limit(limit),
      ),
  );
