import { sql } from "kysely";
import { nowMs, type Tx } from "../../platform/database/database.ts";
import type { FlowRow } from "./schema.ts";

export type NewFlow = Omit<FlowRow, "expires_at" | "claimed_at" | "outcome" | "created_at">;

/** Begins a flow that ends by itself after `ttl_ms`. */
export async function insertFlow(tx: Tx, flow: NewFlow, ttl_ms: number): Promise<void> {
  const expires_at = sql<number>`now_ms() + ${ttl_ms}`;
  const row = { ...flow, expires_at, claimed_at: null, outcome: null, created_at: nowMs };
  await tx.run(tx.k.insertInto("oauth_flows").values(row));
}

/** Of any workspace: who comes back from a provider brings nothing but the flow's id and its secret. */
export const findFlow = (tx: Tx, auth_id: string): Promise<FlowRow | undefined> =>
  tx.first(tx.k.selectFrom("oauth_flows").selectAll().where("auth_id", "=", auth_id));

/** Takes a flow for the one callback that may have it. Undefined when it was taken, has expired or has ended. */
export const claimFlow = (tx: Tx, auth_id: string): Promise<FlowRow | undefined> =>
  tx.first(
    tx.k
      .updateTable("oauth_flows")
      .set({ claimed_at: nowMs })
      .where("auth_id", "=", auth_id)
      .where("claimed_at", "is", null)
      .where("outcome", "is", null)
      .where("expires_at", ">", nowMs)
      .returningAll(),
  );

/**
 * Ends a flow that is claimed, and forgets its verifier. Undefined when it was cancelled meanwhile.
 *
 * Take flows before tokens in every transaction that needs both: so they never wait for each other, and a deletion of tokens
 * sees either the flow still open, and cancels it, or the token that came of it.
 */
export const endFlowIfClaimed = (
  tx: Tx,
  auth_id: string,
  end: Pick<FlowRow, "outcome" | "token_id">,
): Promise<FlowRow | undefined> =>
  tx.first(
    tx.k
      .updateTable("oauth_flows")
      .set({ ...end, verifier: null })
      .where("auth_id", "=", auth_id)
      .where("claimed_at", "is not", null)
      .where("outcome", "is", null)
      .returningAll(),
  );

/**
 * Ends all open flows at a provider, of one user when that is named, also those whose callback is under way: no token comes of
 * them any more. Call it before anything is done to tokens ({@link endFlowIfClaimed} says why).
 *
 * @returns the ids of the flows, whose waiters want to know
 */
export async function cancelFlows(
  tx: Tx,
  { tenant_id, user_id, provider_id }: { tenant_id: string; user_id?: string; provider_id: string },
): Promise<string[]> {
  let query = tx.k
    .updateTable("oauth_flows")
    .set({ outcome: "cancelled", verifier: null })
    .where("tenant_id", "=", tenant_id)
    .where("provider_id", "=", provider_id)
    .where("outcome", "is", null);
  if (user_id !== undefined) query = query.where("user_id", "=", user_id);
  return (await tx.all(query.returning("auth_id"))).map((row) => row.auth_id);
}

/** Deletes all flows at a provider. @returns the ids of the flows, whose waiters want to know */
export async function deleteFlows(tx: Tx, tenant_id: string, provider_id: string): Promise<string[]> {
  const query = tx.k
    .deleteFrom("oauth_flows")
    .where("tenant_id", "=", tenant_id)
    .where("provider_id", "=", provider_id)
    .returning("auth_id");
  return (await tx.all(query)).map((row) => row.auth_id);
}

/** Deletes flows whose time ran out so long ago, at most `limit`. */
export const deleteFlowsExpiredFor = (tx: Tx, older_than_ms: number, limit: number): Promise<number> =>
  tx.run(
    tx.k
      .deleteFrom("oauth_flows")
      .where("auth_id", "in", (e) =>
        e
          .selectFrom("oauth_flows")
          .select("auth_id")
          .where("expires_at", "<", sql<number>`now_ms() - ${older_than_ms}`)
          .orderBy("expires_at")
          .limit(limit),
      ),
  );
