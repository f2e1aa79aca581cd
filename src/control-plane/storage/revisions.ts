import { sql } from "kysely";
import { nowMs, type Tx } from "../../platform/database/database.ts";
import type { RevisionRow, RevisionStatus } from "./schema.ts";

/** Everything but the ends. */
export const UNDER_WAY = [
  "CREATING",
  "QUEUED",
  "AWAITING_BUILD",
  "BUILDING",
  "AWAITING_DEPLOY",
  "DEPLOYING",
] as const satisfies readonly RevisionStatus[];

export type NewRevision = Pick<
  RevisionRow,
  | "revision_id"
  | "deployment_id"
  | "tenant_id"
  | "seq"
  | "source"
  | "source_config"
  | "source_revision_config"
  | "secrets"
  | "secret_references"
  | "created_by"
> & { status: "CREATING" | "QUEUED" };

export async function insertRevision(tx: Tx, revision: NewRevision): Promise<RevisionRow> {
  const row = {
    ...revision,
    status_message: null,
    artifact: null,
    image_version: null,
    interrupt_asked: 0,
    built_at: null,
    deploying_at: null,
    deployed_at: null,
    created_at: nowMs,
    updated_at: nowMs,
  };
  return (await tx.first(tx.k.insertInto("revisions").values(row).returningAll())) as RevisionRow;
}

type Of = Pick<RevisionRow, "tenant_id" | "deployment_id">;
type One = Of & Pick<RevisionRow, "revision_id">;

export const findRevision = (
  tx: Tx,
  { tenant_id, deployment_id, revision_id }: One,
): Promise<RevisionRow | undefined> =>
  tx.first(
    tx.k
      .selectFrom("revisions")
      .selectAll()
      .where("tenant_id", "=", tenant_id)
      .where("deployment_id", "=", deployment_id)
      .where("revision_id", "=", revision_id),
  );

export interface RevisionFilter extends Of {
  limit: number;
  offset: number;
  statuses?: readonly string[] | undefined;
}

/** The newest first. */
export function listRevisions(tx: Tx, filter: RevisionFilter): Promise<RevisionRow[]> {
  let query = tx.k
    .selectFrom("revisions")
    .selectAll()
    .where("tenant_id", "=", filter.tenant_id)
    .where("deployment_id", "=", filter.deployment_id);
  if (filter.statuses) query = query.where("status", "in", filter.statuses as RevisionStatus[]);
  return tx.all(query.orderBy("seq", "desc").limit(filter.limit).offset(filter.offset));
}

/** Of a deployment that is locked. */
export async function isUnderWay(tx: Tx, deployment_id: string): Promise<boolean> {
  const query = tx.k.selectFrom("revisions").select("revision_id").where("deployment_id", "=", deployment_id);
  return (await tx.first(query.where("status", "in", UNDER_WAY).limit(1))) !== undefined;
}

/** Those that wait for their turn, when a newer one is about to be queued. Of a deployment that is locked. */
export const skipQueued = (tx: Tx, deployment_id: string): Promise<number> =>
  tx.run(
    tx.k
      .updateTable("revisions")
      .set({ status: "SKIPPED", status_message: "A newer revision took its place in the queue.", updated_at: nowMs })
      .where("deployment_id", "=", deployment_id)
      .where("status", "=", "QUEUED"),
  );

/** Sends a revision that has served before to be deployed once more, as it was built. Of a deployment that is locked. */
export const redeployIfBuilt = (tx: Tx, revision_id: string): Promise<number> =>
  tx.run(
    tx.k
      .updateTable("revisions")
      .set({
        status: "AWAITING_DEPLOY",
        status_message: null,
        interrupt_asked: 0,
        // What was DEPLOYED once may be deployed again, also when this time it fails.
        deployed_at: sql<number>`coalesce(deployed_at, updated_at)`,
        updated_at: nowMs,
      })
      .where("revision_id", "=", revision_id)
      .where("status", "not in", UNDER_WAY)
      .where("artifact", "is not", null)
      .where((e) => e.or([e("status", "=", "DEPLOYED"), e("deployed_at", "is not", null)])),
  );

/** Writes the wish down; a reconciler fulfils it. Undefined when the revision has ended, or is not there. */
export const askToInterruptIfUnderWay = (
  tx: Tx,
  { tenant_id, deployment_id, revision_id }: One,
): Promise<RevisionRow | undefined> =>
  tx.first(
    tx.k
      .updateTable("revisions")
      .set({ interrupt_asked: 1, updated_at: nowMs })
      .where("tenant_id", "=", tenant_id)
      .where("deployment_id", "=", deployment_id)
      .where("revision_id", "=", revision_id)
      .where("status", "in", UNDER_WAY)
      .returningAll(),
  );
