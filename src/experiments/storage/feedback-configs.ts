import { sql } from "kysely";
import { nowMs, type Tx } from "../../platform/database/database.ts";
import type { KeyConfigQuery } from "../contract/feedback/feedback-configs.ts";
import type { FeedbackConfigRow } from "./schema.ts";

type NewConfig = Pick<FeedbackConfigRow, "tenant_id" | "feedback_key" | "config" | "is_lower_score_better">;

/** @returns undefined when the key has a config */
export const insertConfig = (tx: Tx, config: NewConfig): Promise<FeedbackConfigRow | undefined> =>
  tx.first(
    tx.k
      .insertInto("feedback_configs")
      .values({ ...config, modified_at: nowMs })
      .onConflict((conflict) => conflict.doNothing())
      .returningAll(),
  );

/** Locks the config until the transaction ends. */
export const lockConfig = (tx: Tx, tenant_id: string, key: string): Promise<FeedbackConfigRow | undefined> =>
  tx.first(
    tx.dialect.forUpdate(
      tx.k
        .selectFrom("feedback_configs")
        .selectAll()
        .where("tenant_id", "=", tenant_id)
        .where("feedback_key", "=", key),
    ),
  );

export function listConfigs(
  tx: Tx,
  tenant_id: string,
  { key, name_contains, sort_by_desc, limit, offset }: KeyConfigQuery,
): Promise<FeedbackConfigRow[]> {
  let query = tx.k.selectFrom("feedback_configs").selectAll().where("tenant_id", "=", tenant_id);
  if (key) query = query.where("feedback_key", "in", key);
  if (name_contains) query = query.where(tx.dialect.containsText(sql.ref("feedback_key"), name_contains));
  return tx.all(
    query
      .orderBy("modified_at", sort_by_desc ? "desc" : "asc")
      .orderBy("feedback_key")
      .limit(limit)
      .offset(offset),
  );
}

/** The keys for which a lower score is better. */
export async function lowerIsBetterKeys(tx: Tx, tenant_id: string): Promise<Set<string>> {
  const rows = await tx.all(
    tx.k
      .selectFrom("feedback_configs")
      .select("feedback_key")
      .where("tenant_id", "=", tenant_id)
      .where("is_lower_score_better", "=", 1),
  );
  return new Set(rows.map((row) => row.feedback_key));
}

export const updateConfig = (
  tx: Tx,
  tenant_id: string,
  key: string,
  changes: Partial<Pick<FeedbackConfigRow, "config" | "is_lower_score_better">>,
): Promise<FeedbackConfigRow | undefined> =>
  tx.first(
    tx.k
      .updateTable("feedback_configs")
      .set({ ...changes, modified_at: nowMs })
      .where("tenant_id", "=", tenant_id)
      .where("feedback_key", "=", key)
      .returningAll(),
  );

export const deleteConfig = (tx: Tx, tenant_id: string, key: string): Promise<number> =>
  tx.run(tx.k.deleteFrom("feedback_configs").where("tenant_id", "=", tenant_id).where("feedback_key", "=", key));
