import { sql } from "kysely";
import { nowMs, type Tx } from "../../platform/database/database.ts";
import type { DeploymentRow } from "./schema.ts";

export interface DeploymentLease {
  deployment_id: string;
  epoch: number;
}

/** Value of `look_at` if nothing is to be done until a request changes the deployment: the year 10000, exact as a double. */
const NEVER = 253_402_300_800_000;

const isFree = sql<boolean>`(lease_until is null or lease_until < now_ms())`;

const RELEASED = { lease_holder: null, lease_until: null };

/** Whether a claim would find a deployment. A claim itself is a write, even if it finds nothing. */
export const hasClaimableDeployment = async (tx: Tx): Promise<boolean> =>
  (await tx.first(
    tx.k.selectFrom("deployments").select("deployment_id").where("look_at", "<=", nowMs).where(isFree).limit(1),
  )) !== undefined;

export const claimDeployments = (
  tx: Tx,
  { holder, lease_ms, limit }: { holder: string; lease_ms: number; limit: number },
): Promise<DeploymentRow[]> =>
  tx.all(
    tx.k
      .updateTable("deployments")
      .set({
        lease_holder: holder,
        lease_until: sql<number>`now_ms() + ${lease_ms}`,
        lease_epoch: sql<number>`lease_epoch + 1`,
      })
      .where("deployment_id", "in", (e) =>
        tx.dialect.skipLocked(
          e
            .selectFrom("deployments")
            .select("deployment_id")
            .where("look_at", "<=", nowMs)
            .where(isFree)
            .orderBy("look_at")
            .limit(limit),
        ),
      )
      .returningAll(),
  );

/** Renews leases. A deployment that is missing from the result was deleted, or its lease no longer belongs to `holder`. */
export const renewDeploymentLeases = (
  tx: Tx,
  { holder, lease_ms, deployment_ids }: { holder: string; lease_ms: number; deployment_ids: readonly string[] },
): Promise<Pick<DeploymentRow, "deployment_id" | "lease_epoch">[]> =>
  tx.all(
    tx.k
      .updateTable("deployments")
      .set({ lease_until: sql<number>`now_ms() + ${lease_ms}` })
      .where("lease_holder", "=", holder)
      .where("deployment_id", "in", deployment_ids)
      .returning(["deployment_id", "lease_epoch"]),
  );

/** Returns the deployment and the database time; undefined if the lease was released or claimed again, or the deployment was deleted. */
export const findIfHeld = (tx: Tx, lease: DeploymentLease): Promise<(DeploymentRow & { now: number }) | undefined> =>
  tx.first(held(tx, lease));

/** Like {@link findIfHeld}, but locks the row, so that no other process claims the deployment during the transaction. */
export const lockIfHeld = (tx: Tx, lease: DeploymentLease): Promise<(DeploymentRow & { now: number }) | undefined> =>
  tx.first(tx.dialect.forUpdate(held(tx, lease)));

const held = (tx: Tx, { deployment_id, epoch }: DeploymentLease) =>
  tx.k
    .selectFrom("deployments")
    .selectAll()
    .select(nowMs.as("now"))
    .where("deployment_id", "=", deployment_id)
    .where("lease_epoch", "=", epoch)
    .where("lease_holder", "is not", null);

/** Releases the lease of a deployment without pending work. The caller must have locked the row. */
export const releaseDeployment = (tx: Tx, { deployment_id, epoch }: DeploymentLease): Promise<number> =>
  tx.run(
    tx.k
      .updateTable("deployments")
      .set({ ...RELEASED, look_at: NEVER })
      .where("deployment_id", "=", deployment_id)
      .where("lease_epoch", "=", epoch),
  );

/** Releases all leases of a holder, so that other processes can claim the deployments immediately. */
export const releaseAllDeployments = (tx: Tx, holder: string): Promise<number> =>
  tx.run(tx.k.updateTable("deployments").set(RELEASED).where("lease_holder", "=", holder));

/** Releases all leases at startup with an embedded database: only one process uses it, so the previous holders have ended. */
export const dropDeploymentLeases = (tx: Tx): Promise<number> =>
  tx.run(tx.k.updateTable("deployments").set(RELEASED).where("lease_holder", "is not", null));
