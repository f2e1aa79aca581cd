import { sql } from "kysely";
import { nowMs, type Tx } from "../../platform/database/database.ts";
import type { InstanceRow } from "./schema.ts";

export type NewInstance = Pick<
  InstanceRow,
  "instance_id" | "deployment_id" | "revision_id" | "tenant_id" | "rollout" | "replica" | "driver" | "api_key"
>;

export const instancesOf = (tx: Tx, deployment_id: string): Promise<InstanceRow[]> =>
  tx.all(
    tx.k
      .selectFrom("instances")
      .selectAll()
      .where("deployment_id", "=", deployment_id)
      .orderBy("rollout")
      .orderBy("replica")
      .orderBy("instance_id"),
  );

/** Instances that are to be there. One that is, by its roll-out and number, stays as it is. */
export const insertWanted = (tx: Tx, instances: readonly NewInstance[]): Promise<number> =>
  tx.run(
    tx.k
      .insertInto("instances")
      .values(
        instances.map((instance) => ({
          ...instance,
          handle: null,
          address: null,
          state: "wanted" as const,
          drain_until: null,
          restarts: 0,
          restart_at: null,
          created_at: nowMs,
          updated_at: nowMs,
        })),
      )
      .onConflict((conflict) => conflict.columns(["revision_id", "rollout", "replica"]).doNothing()),
  );

/**
 * An instance that a driver has started or found. Another one than before has to show that it is ready; one that is to go
 * stays so. Nothing is written when the row says it all already.
 */
export const recordStarted = (
  tx: Tx,
  { instance_id, handle, address }: { instance_id: string; handle: string; address: string },
): Promise<number> =>
  tx.run(
    tx.k
      .updateTable("instances")
      .set({
        state: sql`case when state = 'draining' or (state = 'ready' and handle = ${handle}) then state else 'starting' end`,
        handle,
        address,
        restart_at: null,
        updated_at: nowMs,
      })
      .where("instance_id", "=", instance_id)
      .where((e) =>
        e.or([
          e("handle", "is", null),
          e("handle", "<>", handle),
          e("address", "is", null),
          e("address", "<>", address),
          e("state", "=", "wanted"),
        ]),
      ),
  );

/** An instance with what its driver knows it by; undefined stands for none. */
export interface Started {
  instance_id: string;
  handle: string | null;
}

const current = (tx: Tx, { instance_id, handle }: Started) =>
  tx.k
    .updateTable("instances")
    .where("instance_id", "=", instance_id)
    .where("handle", handle === null ? "is" : "=", handle);

export const readyIfStarting = (tx: Tx, instance: Started): Promise<number> =>
  tx.run(current(tx, instance).set({ state: "ready", updated_at: nowMs }).where("state", "=", "starting"));

/** It is gone, and to be started again after a while. One that is to go anyway stays as it is. */
export const wantAgain = (tx: Tx, instance: Started, after_ms: number): Promise<number> =>
  tx.run(
    current(tx, instance)
      .set({
        state: "wanted",
        handle: null,
        address: null,
        restarts: sql<number>`restarts + 1`,
        restart_at: sql<number>`now_ms() + ${after_ms}`,
        updated_at: nowMs,
      })
      .where("state", "<>", "draining"),
  );

/** It has been ready for so long that its restarts are forgotten. */
export const forgetRestarts = (tx: Tx, instance: Started): Promise<number> =>
  tx.run(current(tx, instance).set({ restarts: 0, updated_at: nowMs }).where("state", "=", "ready"));

/** Takes them out of service: they end in `drain_ms` at the latest, or when they were to end before that. */
export const drainInstances = (tx: Tx, instance_ids: readonly string[], drain_ms: number): Promise<number> =>
  tx.run(
    tx.k
      .updateTable("instances")
      .set({ state: "draining", drain_until: sql<number>`now_ms() + ${drain_ms}`, updated_at: nowMs })
      .where("instance_id", "in", instance_ids)
      .where((e) => e.or([e("state", "<>", "draining"), e("drain_until", ">", sql<number>`now_ms() + ${drain_ms}`)])),
  );

/** As {@link drainInstances}, at once, for all instances of a roll-out. */
export const drainRollout = (
  tx: Tx,
  { revision_id, rollout }: Pick<InstanceRow, "revision_id" | "rollout">,
): Promise<number> =>
  tx.run(
    tx.k
      .updateTable("instances")
      .set({ state: "draining", drain_until: nowMs, updated_at: nowMs })
      .where("revision_id", "=", revision_id)
      .where("rollout", "=", rollout),
  );

export const deleteInstance = (tx: Tx, instance_id: string): Promise<number> =>
  tx.run(tx.k.deleteFrom("instances").where("instance_id", "=", instance_id));

/** Those of the ids that have a row. */
export async function knownInstances(tx: Tx, instance_ids: readonly string[]): Promise<Set<string>> {
  if (instance_ids.length === 0) return new Set();
  const rows = await tx.all(
    tx.k.selectFrom("instances").select("instance_id").where("instance_id", "in", instance_ids),
  );
  return new Set(rows.map((row) => row.instance_id));
}
