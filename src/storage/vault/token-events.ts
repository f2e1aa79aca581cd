import { nowMs, type Tx } from "../database.ts";
import type { TokenEventRow } from "./schema.ts";
import type { TokensOfUser } from "./tokens.ts";

export type NewTokenEvent = Omit<TokenEventRow, "acknowledged_at" | "created_at">;

export async function insertTokenEvents(tx: Tx, events: readonly NewTokenEvent[]): Promise<void> {
  if (events.length === 0) return;
  const rows = events.map((event) => ({ ...event, acknowledged_at: null, created_at: nowMs }));
  await tx.run(tx.k.insertInto("oauth_token_events").values(rows));
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

export const deleteTokenEventsBefore = (tx: Tx, created_at: number): Promise<number> =>
  tx.run(tx.k.deleteFrom("oauth_token_events").where("created_at", "<", created_at));
