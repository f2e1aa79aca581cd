import { sql } from "kysely";
import { nowMs, type Tx } from "../../platform/database/database.ts";
import type { DeploymentRow, RevisionRow, RevisionStatus } from "./schema.ts";

/** All statuses that are not terminal. */
export const IN_PROGRESS = [
  "CREATING",
  "QUEUED",
  "AWAITING_BUILD",
  "BUILDING",
  "AWAITING_DEPLOY",
  "DEPLOYING",
] as const satisfies readonly RevisionStatus[];

const INITIAL = {
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

type NewRevision = Omit<RevisionRow, keyof typeof INITIAL> & { status: "CREATING" | "QUEUED" };

export async function insertRevision(tx: Tx, revision: NewRevision): Promise<RevisionRow> {
  const row = { ...revision, ...INITIAL };
  return (await tx.first(tx.k.insertInto("revisions").values(row).returningAll())) as RevisionRow;
}

type RevisionKey = Pick<RevisionRow, "tenant_id" | "deployment_id" | "revision_id">;

export const findRevision = (
  tx: Tx,
  { tenant_id, deployment_id, revision_id }: RevisionKey,
): Promise<RevisionRow | undefined> =>
  tx.first(
    tx.k
      .selectFrom("revisions")
      .selectAll()
      .where((e) => e.and({ tenant_id, deployment_id, revision_id })),
  );

interface RevisionFilter extends Omit<RevisionKey, "revision_id"> {
  limit: number;
  offset: number;
  statuses?: readonly string[] | undefined;
}

/** Newest first. */
export function listRevisions(
  tx: Tx,
  { tenant_id, deployment_id, limit, offset, statuses }: RevisionFilter,
): Promise<RevisionRow[]> {
  let query = tx.k
    .selectFrom("revisions")
    .selectAll()
    .where((e) => e.and({ tenant_id, deployment_id }));
  if (statuses) query = query.where("status", "in", statuses as RevisionStatus[]);
  return tx.all(query.orderBy("seq", "desc").limit(limit).offset(offset));
}

/** The caller must have locked the deployment. */
export async function hasRevisionInProgress(tx: Tx, deployment_id: string): Promise<boolean> {
  const query = tx.k.selectFrom("revisions").select("revision_id").where("deployment_id", "=", deployment_id);
  return (await tx.first(query.where("status", "in", IN_PROGRESS).limit(1))) !== undefined;
}

export const SKIPPED_MESSAGE = "Replaced in the queue by a newer revision.";

/** Skips the queued revision before a newer revision is queued. The caller must have locked the deployment. */
export const skipQueued = (tx: Tx, deployment_id: string): Promise<number> =>
  tx.run(
    tx.k
      .updateTable("revisions")
      .set({ status: "SKIPPED", status_message: SKIPPED_MESSAGE, updated_at: nowMs })
      .where("deployment_id", "=", deployment_id)
      .where("status", "=", "QUEUED"),
  );

/** Whether {@link redeployIfBuilt} redeploys the revision. */
export const canRedeploy = ({ status, artifact, deployed_at }: RevisionRow): boolean =>
  !(IN_PROGRESS as readonly RevisionStatus[]).includes(status) &&
  artifact !== null &&
  (status === "DEPLOYED" || deployed_at !== null);

/** Redeploys a revision that was DEPLOYED before and has an artifact. The caller must have locked the deployment. */
export const redeployIfBuilt = (tx: Tx, revision_id: string): Promise<number> =>
  tx.run(
    tx.k
      .updateTable("revisions")
      .set({
        status: "AWAITING_DEPLOY",
        status_message: null,
        interrupt_asked: 0,
        // A revision that was DEPLOYED once can be deployed again, even if this rollout fails.
        deployed_at: sql<number>`coalesce(deployed_at, updated_at)`,
        updated_at: nowMs,
      })
      .where("revision_id", "=", revision_id)
      .where("status", "not in", IN_PROGRESS)
      .where("artifact", "is not", null)
      .where((e) => e.or([e("status", "=", "DEPLOYED"), e("deployed_at", "is not", null)])),
  );

/** Requests an interrupt from the reconciler. Returns undefined if the revision has ended or does not exist. */
export const requestInterruptIfInProgress = (
  tx: Tx,
  { tenant_id, deployment_id, revision_id }: RevisionKey,
): Promise<RevisionRow | undefined> =>
  tx.first(
    tx.k
      .updateTable("revisions")
      .set({ interrupt_asked: 1, updated_at: nowMs })
      .where((e) => e.and({ tenant_id, deployment_id, revision_id }))
      .where("status", "in", IN_PROGRESS)
      .returningAll(),
  );

/** Revisions in progress, the active revision, and revisions with instances, ordered by `seq`. */
export const reconciledRevisions = (
  tx: Tx,
  { deployment_id, active_revision_id }: Pick<DeploymentRow, "deployment_id" | "active_revision_id">,
): Promise<RevisionRow[]> =>
  tx.all(
    tx.k
      .selectFrom("revisions")
      .selectAll()
      .where("deployment_id", "=", deployment_id)
      .where((e) =>
        e.or([
          e("status", "in", IN_PROGRESS),
          e("revision_id", "=", active_revision_id),
          e(
            "revision_id",
            "in",
            e.selectFrom("instances").select("revision_id").where("deployment_id", "=", deployment_id),
          ),
        ]),
      )
      .orderBy("seq"),
  );

export interface StatusTransition {
  revision_id: string;
  from: RevisionStatus;
  to: RevisionStatus;
  status_message: string | null;
  artifact?: string;
  /** Revision config with the SHA of the commit that was built. */
  source_revision_config?: string;
  /** Whether `to` is a terminal status. If so, a requested interrupt is cleared. */
  is_terminal: boolean;
}

/** Changes the status of a revision if the current status is `from`. Otherwise writes nothing and returns false. */
export const transitionIfStatus = async (
  tx: Tx,
  { revision_id, from, to, status_message, artifact, source_revision_config, is_terminal }: StatusTransition,
): Promise<boolean> =>
  (await tx.run(
    tx.k
      .updateTable("revisions")
      .set({
        status: to,
        status_message,
        updated_at: nowMs,
        ...(is_terminal && { interrupt_asked: 0 }),
        ...(artifact !== undefined && { artifact }),
        ...(source_revision_config !== undefined && { source_revision_config }),
        ...(from === "BUILDING" && artifact !== undefined && { built_at: nowMs }),
        // Instances compare this value, so it must increase with every rollout, even if the clock is set back.
        ...(to === "DEPLOYING" && {
          deploying_at: sql<number>`(select case when max(r.deploying_at) >= now_ms() then max(r.deploying_at) + 1 else now_ms() end
            from revisions r where r.deployment_id = revisions.deployment_id)`,
        }),
      })
      .where("revision_id", "=", revision_id)
      .where("status", "=", from),
  )) === 1;

export const setMessageIfStatus = (
  tx: Tx,
  { revision_id, status, status_message }: { revision_id: string; status: RevisionStatus; status_message: string },
): Promise<number> =>
  tx.run(
    tx.k
      .updateTable("revisions")
      .set({ status_message })
      .where("revision_id", "=", revision_id)
      .where("status", "=", status),
  );

export const setActiveRevision = (
  tx: Tx,
  { deployment_id, revision_id }: Pick<RevisionRow, "deployment_id" | "revision_id">,
): Promise<number> =>
  tx.run(
    tx.k
      .updateTable("deployments")
      .set({ active_revision_id: revision_id, updated_at: nowMs })
      .where("deployment_id", "=", deployment_id),
  );

/**
 * Clears the artifacts of a deployment's builds. Keeps the artifacts of revisions in progress, of the active revision, of revisions
 * with instances, and of the last `keep_count` deployed revisions. Does not affect images.
 */
export const clearOldArtifacts = (
  tx: Tx,
  { deployment_id, keep_count }: { deployment_id: string; keep_count: number },
): Promise<number> =>
  tx.run(
    tx.k
      .updateTable("revisions")
      .set({ artifact: null })
      .where("deployment_id", "=", deployment_id)
      .where("artifact", "is not", null)
      .where("source", "in", ["github", "internal_source"])
      .where("status", "not in", IN_PROGRESS)
      .where("revision_id", "not in", (e) =>
        e
          .selectFrom("revisions as r")
          .select("r.revision_id")
          .where("r.deployment_id", "=", deployment_id)
          .where((e) => e.or([e("r.status", "=", "DEPLOYED"), e("r.deployed_at", "is not", null)]))
          .orderBy("r.deploying_at", "desc")
          .limit(keep_count),
      )
      .where("revision_id", "not in", (e) =>
        e.selectFrom("instances").select("revision_id").where("deployment_id", "=", deployment_id),
      )
      .where((e) =>
        e.not(
          e.exists(
            e
              .selectFrom("deployments as d")
              .select("d.deployment_id")
              .where("d.deployment_id", "=", deployment_id)
              .whereRef("d.active_revision_id", "=", "revisions.revision_id"),
          ),
        ),
      ),
  );

/**
 * Stores the pinned name of a revision's image, unless another process has already stored a name.
 *
 * @returns the stored artifact
 */
export async function pinArtifact(
  tx: Tx,
  { revision_id, image, artifact }: { revision_id: string; image: string; artifact: string },
): Promise<string> {
  const update = tx.k.updateTable("revisions").set({ artifact });
  await tx.run(update.where("revision_id", "=", revision_id).where("artifact", "=", image));
  const [row] = await tx.all(tx.k.selectFrom("revisions").select("artifact").where("revision_id", "=", revision_id));
  return row?.artifact ?? artifact;
}

/** The distinct sources and artifacts of a deployment's revisions. */
export const artifactsOf = (tx: Tx, deployment_id: string): Promise<Pick<RevisionRow, "source" | "artifact">[]> =>
  tx.all(
    tx.k.selectFrom("revisions").select(["source", "artifact"]).distinct().where("deployment_id", "=", deployment_id),
  );
