import { sql } from "kysely";
import { nowMs, type Tx } from "../../platform/database/database.ts";
import type { DeploymentRow, InstanceRow } from "./schema.ts";

const INITIAL = {
  state: "wanted",
  handle: null,
  address: null,
  custom_auth: 0,
  drain_until: null,
  restarts: 0,
  restart_at: null,
  created_at: nowMs,
  updated_at: nowMs,
} as const;

export type NewInstance = Omit<InstanceRow, keyof typeof INITIAL>;

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

/** Inserts instances in the state `wanted`. Existing rows of the same rollout and replica stay unchanged. */
export const insertInstances = (tx: Tx, instances: readonly NewInstance[]): Promise<number> =>
  tx.run(
    tx.k
      .insertInto("instances")
      .values(instances.map((instance) => ({ ...instance, ...INITIAL })))
      .onConflict((conflict) => conflict.columns(["revision_id", "rollout", "replica"]).doNothing()),
  );

/**
 * Records an instance that a driver has started or attached to. If the handle has changed, the instance is `starting` again; a
 * draining instance stays draining. Returns 0 and writes nothing if the row already has these values.
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

/** An instance with a handle that was read before. Writes apply only if the handle has not changed. */
interface InstanceHandle {
  instance_id: string;
  handle: string | null;
}

const current = (tx: Tx, { instance_id, handle }: InstanceHandle) =>
  tx.k
    .updateTable("instances")
    .where("instance_id", "=", instance_id)
    .where("handle", handle === null ? "is" : "=", handle);

export const readyIfStarting = (tx: Tx, instance: InstanceHandle, custom_auth: boolean): Promise<number> =>
  tx.run(
    current(tx, instance)
      .set({ state: "ready", custom_auth: custom_auth ? 1 : 0, updated_at: nowMs })
      .where("state", "=", "starting"),
  );

/** Records that an instance has ended, and schedules its restart. A draining instance stays unchanged. */
export const scheduleRestart = (tx: Tx, instance: InstanceHandle, after_ms: number): Promise<number> =>
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

export const resetRestarts = (tx: Tx, instance: InstanceHandle): Promise<number> =>
  tx.run(current(tx, instance).set({ restarts: 0, updated_at: nowMs }).where("state", "=", "ready"));

/** Drains instances. They are stopped after at most `drain_ms`; an earlier time that was already set stays unchanged. */
export const drainInstances = (tx: Tx, instance_ids: readonly string[], drain_ms: number): Promise<number> =>
  tx.run(
    tx.k
      .updateTable("instances")
      .set({ state: "draining", drain_until: sql<number>`now_ms() + ${drain_ms}`, updated_at: nowMs })
      .where("instance_id", "in", instance_ids)
      .where((e) => e.or([e("state", "<>", "draining"), e("drain_until", ">", sql<number>`now_ms() + ${drain_ms}`)])),
  );

/** Like {@link drainInstances}, without a delay, for all instances of a rollout. */
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

/** Returns the IDs that have a row. */
export async function instancesOfDriver(tx: Tx, driver: string): Promise<Set<string>> {
  const rows = await tx.all(tx.k.selectFrom("instances").select("instance_id").where("driver", "=", driver));
  return new Set(rows.map(({ instance_id }) => instance_id));
}

export async function knownInstances(tx: Tx, instance_ids: readonly string[]): Promise<Set<string>> {
  if (instance_ids.length === 0) return new Set();
  const rows = await tx.all(
    tx.k.selectFrom("instances").select("instance_id").where("instance_id", "in", instance_ids),
  );
  return new Set(rows.map((row) => row.instance_id));
}

/** A deployment with an instance that receives its requests. The instance fields are null if there is no such instance. */
export type RouteRow = Pick<DeploymentRow, "deployment_id" | "slug" | "tenant_id"> & {
  [Column in "instance_id" | "address" | "api_key" | "custom_auth"]: InstanceRow[Column] | null;
};

/**
 * The ready instances of the active revision, except instances of a rollout in progress. Deployments that are being deleted have no
 * route.
 */
const routeRows = (tx: Tx) =>
  tx.k
    .selectFrom("deployments as d")
    .leftJoin("revisions as r", "r.revision_id", "d.active_revision_id")
    .leftJoin("instances as i", (join) =>
      join
        .onRef("i.revision_id", "=", "r.revision_id")
        .on("i.state", "=", "ready")
        .on("i.address", "is not", null)
        .on((e) => e.or([e("r.status", "<>", "DEPLOYING"), e("i.rollout", "<>", e.ref("r.deploying_at"))])),
    )
    .select(["d.deployment_id", "d.slug", "d.tenant_id", "i.instance_id", "i.address", "i.api_key", "i.custom_auth"])
    .where("d.status", "<>", "AWAITING_DELETE");

/** Returns an empty list if the deployment does not exist or is being deleted. */
export const routesOfSlug = (tx: Tx, slug: string): Promise<RouteRow[]> =>
  tx.all(routeRows(tx).where("d.slug", "=", slug));

export const routesOf = (tx: Tx, deployment_ids: readonly string[]): Promise<RouteRow[]> =>
  tx.all(routeRows(tx).where("d.deployment_id", "in", deployment_ids));
