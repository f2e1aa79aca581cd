import { sql } from "kysely";
import { nowMs, type Tx } from "../../platform/database/database.ts";
import { insertMany } from "../../platform/database/insert-many.ts";
import type { FeedbackTokenRow } from "./traces/trace-schema.ts";

export const insertTokens = (tx: Tx, rows: FeedbackTokenRow[]): Promise<void> =>
  insertMany(tx, "feedback_tokens", rows);

const isValid = sql<boolean>`expires_at > ${nowMs}`;

export const findToken = (tx: Tx, token: string): Promise<FeedbackTokenRow | undefined> =>
  tx.first(tx.k.selectFrom("feedback_tokens").selectAll().where("token", "=", token).where(isValid));

/** The tokens of a run that have not expired, newest first. */
export const listTokens = (
  tx: Tx,
  tenant_id: string,
  { run_id, limit, offset }: { run_id: string; limit: number; offset: number },
): Promise<FeedbackTokenRow[]> =>
  tx.all(
    tx.k
      .selectFrom("feedback_tokens")
      .selectAll()
      .where("tenant_id", "=", tenant_id)
      .where("run_id", "=", run_id)
      .where(isValid)
      .orderBy("created_at", "desc")
      .orderBy("token")
      .limit(limit)
      .offset(offset),
  );

export const deleteExpiredTokens = (tx: Tx): Promise<number> =>
  tx.run(tx.k.deleteFrom("feedback_tokens").where(sql<boolean>`not ${isValid}`));
