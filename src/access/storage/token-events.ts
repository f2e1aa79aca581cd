import { sql } from "kysely";
import { readNow, type Tx } from "../../platform/database/database.ts";
import { insertMany } from "../../platform/database/insert-many.ts";
import type { TokenEventRow } from "./schema.ts";
import type { TokensOfUser } from "./tokens.ts";

export type NewTokenEvent = Omit<TokenEventRow, "acknowledged_at" | "created_at">;

export async function insertTokenEvents(tx: Tx, events: readonly NewTokenEvent[]): Promise<void> {
  if (events.length === 0) return;
  const created_at = await readNow(tx);
  const rows = events.map((event) => ({ ...event, acknowledged_at: null, created_at }));
  await insertMany(tx, "oauth_token_events", rows);
}

/** Newest first. */
export function listTokenEvents(
  tx: Tx,
  { tenant_id, user_id, provider_id }: TokensOfUser,
  limit: number,
): Promise<TokenEventRow[]> {
  let query = tx.k
    .selectFrom("oauth_token_events")
    .selectAll()
    .where("tenant_id", "=", tenant_id)
    .where("user_id", "=", user_id);
  if (provider_id !== undefined) query = query.where("provider_id", "=", provider_id);
  return tx.all(query.orderBy("created_at", "desc").orderBy("event_id", "desc").limit(limit));
}

export const deleteOldTokenEvents = (tx: Tx, retention_ms: number, limit: number): Promise<number> =>
  tx.run(
    tx.k
      .deleteFrom("oauth_token_events")
      .where("event_id", "in", (e) =>
        e
          .selectFrom("oauth_token_events")
          .select("event_id")
          .where("created_at", "<", sql<number>`now_ms() - ${retention_ms}`)
          .orderBy("created_at")
          .limit(limit),
      ),
  );
