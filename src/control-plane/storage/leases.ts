import { sql } from "kysely";
import { nowMs, type Tx } from "../../platform/database/database.ts";
import type { DeploymentRow } from "./schema.ts";

/** What a reconciler holds: its claim of a deployment. */
export interface DeploymentLease {
  deployment_id: string;
  epoch: number;
}

/** A `look_at` that does not come: nothing is to be done until somebody asks. Year 10000, and exact as a double. */
const NEVER = 253_402_300_800_000;

const isFree = sql<boolean>`(lease_until is null or lease_until < now_ms())`;

/** Whether any deployment may be claimable: cheap, and without a transaction. */
export const mayClaimDeployments = async (tx: Tx): Promise<boolean> =>
  (await tx.first(
    tx.k.selectFrom("deployments").select("deployment_id").where("look_at", "<=", nowMs).where(isFree).limit(1),
  )) !== undefined;

/** Takes deployments that are to be looked at and that nobody holds. */
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

/** Renews what a holder has of these. One that is not among the answers is somebody else's by now, or gone. */
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

/** A deployment while it is held at this epoch, and the time of the database. Undefined: somebody else has it, or it is gone. */
export const findIfHeld = (tx: Tx, lease: DeploymentLease): Promise<(DeploymentRow & { now: number }) | undefined> =>
  tx.first(held(tx, lease));

/** The fence. As {@link findIfHeld}, and the row is held until the transaction ends, so that nobody takes it in between. */
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

/** Gives back a deployment of which nothing runs and for which nothing is to be done. The caller holds its row. */
export const leaveDeployment = (tx: Tx, { deployment_id, epoch }: DeploymentLease): Promise<number> =>
  tx.run(
    tx.k
      .updateTable("deployments")
      .set({ lease_holder: null, lease_until: null, look_at: NEVER })
      .where("deployment_id", "=", deployment_id)
      .where("lease_epoch", "=", epoch),
  );

/** Gives back all that a holder has, for others to take at once. */
export const releaseDeployments = (tx: Tx, holder: string): Promise<number> =>
  tx.run(
    tx.k.updateTable("deployments").set({ lease_holder: null, lease_until: null }).where("lease_holder", "=", holder),
  );

/** For the start of the embedded database: this process is the only one, so whoever holds a lease is gone. */
export const dropDeploymentLeases = (tx: Tx): Promise<number> =>
  tx.run(
    tx.k
      .updateTable("deployments")
      .set({ lease_holder: null, lease_until: null })
      .where("lease_holder", "is not", null),
  );
