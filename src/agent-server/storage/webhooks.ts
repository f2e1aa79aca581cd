import { sql } from "kysely";
import type { MetadataFilter } from "../../platform/contract/caller.ts";
import { nowMs, type Tx } from "../../platform/database/database.ts";
import { idOfName } from "../../platform/lib/ids.ts";
import type { WebhookDeliveryQuery } from "../contract/webhooks.ts";
import type { RunKey, WebhookDeliveryRow } from "./schema.ts";
import { onAccessibleThread } from "./search.ts";

/** The fields of a delivery without its payload, which can be as large as the state of a thread. */
const LISTED = [
  "delivery_id",
  "run_id",
  "tenant_id",
  "url",
  "status",
  "attempts",
  "next_at",
  "response_status",
  "error",
  "created_at",
  "updated_at",
] as const;
export type ListedDelivery = Pick<WebhookDeliveryRow, (typeof LISTED)[number]>;

type NewDelivery = Pick<WebhookDeliveryRow, "delivery_id" | "run_id" | "tenant_id" | "url" | "origin" | "push"> & {
  payload: string;
};

const PUSH_NAMES = "0b8f0e0c-52a6-4a0c-8a43-9d1f7a5b7d11";

/** Returns the ID of a push notification, which its configuration determines: deleting the configuration deletes the notification. */
export const pushDeliveryId = (run_id: string, config_id: string): string =>
  idOfName(JSON.stringify([run_id, config_id]), PUSH_NAMES);

/** Stores a delivery of a run, in the transaction that ends the run. */
export const insertWebhookDelivery = (tx: Tx, delivery: NewDelivery): Promise<number> =>
  tx.run(
    tx.k.insertInto("webhook_deliveries").values({
      ...delivery,
      status: "pending",
      attempts: 0,
      next_at: nowMs,
      queued_at: nowMs,
      created_at: nowMs,
      updated_at: nowMs,
    }),
  );

const ready = (tx: Tx, except_origins: readonly string[]) =>
  tx.k
    .selectFrom("webhook_deliveries")
    .where("next_at", "is not", null)
    .$if(except_origins.length > 0, (query) => query.where("origin", "not in", except_origins))
    .orderBy("next_at");

/** Milliseconds until the next attempt; undefined if there is none. */
export async function msUntilNextDelivery(tx: Tx, except_origins: readonly string[]): Promise<number | undefined> {
  const next = ready(tx, except_origins).select(sql<number>`next_at - now_ms()`.as("ms"));
  return (await tx.first(next.limit(1)))?.ms;
}

/** A delivery that this process sends. */
export type ClaimedDelivery = WebhookDeliveryRow & { payload: string; next_at: number };

/** Claims deliveries that are due. If the process dies, another process claims them when the lease has expired. */
export const claimWebhookDeliveries = (
  tx: Tx,
  { lease_ms, limit, except_origins }: { lease_ms: number; limit: number; except_origins: readonly string[] },
): Promise<ClaimedDelivery[]> => {
  const due = ready(tx, except_origins).where("next_at", "<=", nowMs).select("delivery_id").limit(limit);
  return tx.all(
    tx.k
      .updateTable("webhook_deliveries")
      .set({ attempts: sql<number>`attempts + 1`, next_at: sql<number>`now_ms() + ${lease_ms}` })
      .where("delivery_id", "in", tx.dialect.skipLocked(due))
      .returningAll()
      .$narrowType<{ payload: string; next_at: number }>(),
  );
};

type Claim = Pick<WebhookDeliveryRow, "delivery_id" | "attempts">;

/** The result of an attempt: the status of the response, if any, and the error of a failed attempt. */
export type AttemptResult = Pick<WebhookDeliveryRow, "response_status" | "error">;

/** Updates a claimed delivery, unless it has been claimed again and thus belongs to another process. */
const claimed = (tx: Tx, { delivery_id, attempts }: Claim) =>
  tx.k
    .updateTable("webhook_deliveries")
    .where("delivery_id", "=", delivery_id)
    .where("attempts", "=", attempts)
    .where("status", "=", "pending");

/** Schedules the next attempt. */
export const retryDelivery = (tx: Tx, claim: Claim, result: AttemptResult, delay_ms: number): Promise<number> =>
  tx.run(claimed(tx, claim).set({ ...result, next_at: sql<number>`now_ms() + ${delay_ms}`, updated_at: nowMs }));

/** Ends a delivery. A failed one keeps its payload, for its redelivery. */
export const endDelivery = (
  tx: Tx,
  claim: Claim,
  result: AttemptResult & { status: "delivered" | "failed" },
): Promise<number> =>
  tx.run(
    claimed(tx, claim).set({
      ...result,
      ...(result.status === "delivered" && { payload: null, push: null }),
      next_at: null,
      updated_at: nowMs,
    }),
  );

/** Returns a page of a workspace's deliveries, newest first. */
export function listWebhookDeliveries(
  tx: Tx,
  tenant_id: string,
  { run_id, status, limit, offset, access }: WebhookDeliveryQuery & { access: MetadataFilter | undefined },
): Promise<ListedDelivery[]> {
  let query = tx.k.selectFrom("webhook_deliveries").select(LISTED).where("tenant_id", "=", tenant_id);
  if (run_id !== undefined) query = query.where("run_id", "=", run_id);
  if (status !== undefined) query = query.where("status", "=", status);
  if (access)
    query = query.where((e) =>
      e.exists(
        e
          .selectFrom("runs")
          .select("runs.run_id")
          .whereRef("runs.run_id", "=", "webhook_deliveries.run_id")
          .$call(onAccessibleThread(access, "runs.thread_id")),
      ),
    );
  return tx.all(query.orderBy("created_at", "desc").orderBy("delivery_id", "desc").limit(limit).offset(offset));
}

/** Makes the pending and failed deliveries of a run due. The retries of failed ones start again. */
export const requeueDeliveries = (tx: Tx, { run_id, tenant_id }: RunKey): Promise<ListedDelivery[]> =>
  tx.all(
    tx.k
      .updateTable("webhook_deliveries")
      .set({
        status: "pending",
        attempts: sql<number>`case when status = 'failed' then 0 else attempts end`,
        next_at: nowMs,
        queued_at: nowMs,
        updated_at: nowMs,
      })
      .where("run_id", "=", run_id)
      .where("tenant_id", "=", tenant_id)
      .where("status", "!=", "delivered")
      .returning(LISTED),
  );

/** Deletes up to `limit` deliveries that ended longer ago than the given age. Pending deliveries are kept. */
export const deleteEndedDeliveries = (tx: Tx, older_than_ms: number, limit: number): Promise<number> =>
  tx.run(
    tx.k
      .deleteFrom("webhook_deliveries")
      .where("delivery_id", "in", (e) =>
        e
          .selectFrom("webhook_deliveries")
          .select("delivery_id")
          .where("next_at", "is", null)
          .where("updated_at", "<", sql<number>`now_ms() - ${older_than_ms}`)
          .limit(limit),
      ),
  );

/** Deletes a delivery. A request that a process is sending is not stopped. */
export const deleteDelivery = (tx: Tx, delivery_id: string): Promise<number> =>
  tx.run(tx.k.deleteFrom("webhook_deliveries").where("delivery_id", "=", delivery_id));
