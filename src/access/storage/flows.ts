import { sql } from "kysely";
import { nowMs, type Tx } from "../../platform/database/database.ts";
import type { FlowRow } from "./schema.ts";

export type NewFlow = Omit<FlowRow, "expires_at" | "claimed_at" | "outcome" | "created_at">;

export async function insertFlow(tx: Tx, flow: NewFlow, ttl_ms: number): Promise<void> {
  const expires_at = sql<number>`now_ms() + ${ttl_ms}`;
  const row = { ...flow, expires_at, claimed_at: null, outcome: null, created_at: nowMs };
  await tx.run(tx.k.insertInto("oauth_flows").values(row));
}

/** Finds a flow in any workspace, because a browser that returns from a provider sends only the state, which contains the flow ID. */
export const findFlow = (tx: Tx, auth_id: string): Promise<FlowRow | undefined> =>
  tx.first(tx.k.selectFrom("oauth_flows").selectAll().where("auth_id", "=", auth_id));

/** Claims a flow. Returns undefined if the flow was already claimed, has expired or has ended. */
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
 * Ends a claimed flow and deletes its verifier. Returns undefined if the flow was cancelled in the meantime.
 *
 * Lock order: a transaction that locks both flows and tokens locks the flows first. This prevents deadlocks, and a deletion of tokens either
 * finds the flow open and cancels it, or finds the token that the flow created.
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
 * Cancels all open flows at a provider, or those of one user, including flows whose callback is in progress. Call it before the
 * transaction locks tokens, see {@link endFlowIfClaimed}.
 *
 * @returns the ids of the cancelled flows, whose waiters must be notified
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

/** Deletes all flows at a provider. @returns their ids, whose waiters must be notified */
export async function deleteFlows(tx: Tx, tenant_id: string, provider_id: string): Promise<string[]> {
  const query = tx.k
    .deleteFrom("oauth_flows")
    .where("tenant_id", "=", tenant_id)
    .where("provider_id", "=", provider_id)
    .returning("auth_id");
  return (await tx.all(query)).map((row) => row.auth_id);
}

export const deleteExpiredFlows = (tx: Tx, older_than_ms: number, limit: number): Promise<number> =>
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
