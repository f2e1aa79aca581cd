import { sql } from "kysely";
import { nowMs, type Tx } from "../../platform/database/database.ts";
import type { RevisionRow, RevisionStatus } from "./schema.ts";

/** What a reconciler has to do with: revisions with one of these statuses, the one that serves, and those of instances. */
export const revisionsAtWork = (
  tx: Tx,
  {
    deployment_id,
    active_revision_id,
    statuses,
  }: { deployment_id: string; active_revision_id: string | null; statuses: readonly RevisionStatus[] },
): Promise<RevisionRow[]> =>
  tx.all(
    tx.k
      .selectFrom("revisions")
      .selectAll()
      .where("deployment_id", "=", deployment_id)
      .where((e) =>
        e.or([
          e("status", "in", statuses),
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

export interface RevisionStep {
  revision_id: string;
  from: RevisionStatus;
  to: RevisionStatus;
  status_message: string | null;
  artifact?: string;
  /** With what the build has found out. */
  source_revision_config?: string;
  /** Whether `to` is an end: what was asked of it on the way there is answered. */
  ends: boolean;
}

/** Moves a revision on, if it is where the caller believes it to be. False when it is not: then nothing was written. */
export const moveIfAt = async (
  tx: Tx,
  { revision_id, from, to, status_message, artifact, source_revision_config, ends }: RevisionStep,
): Promise<boolean> =>
  (await tx.run(
    tx.k
      .updateTable("revisions")
      .set({
        status: to,
        status_message,
        updated_at: nowMs,
        ...(ends && { interrupt_asked: 0 }),
        ...(artifact !== undefined && { artifact }),
        ...(source_revision_config !== undefined && { source_revision_config }),
        ...(from === "BUILDING" && artifact !== undefined && { built_at: nowMs }),
        // Higher than that of any roll-out of the deployment before, also when the clock has been set back: instances go by it.
        ...(to === "DEPLOYING" && {
          deploying_at: sql<number>`(select case when max(r.deploying_at) >= now_ms() then max(r.deploying_at) + 1 else now_ms() end
            from revisions r where r.deployment_id = revisions.deployment_id)`,
        }),
      })
      .where("revision_id", "=", revision_id)
      .where("status", "=", from),
  )) === 1;

/** Tells what is awaited, while that is awaited. */
export const tellIfAt = (
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

/** A revision serves from now on. */
export const setActiveRevision = (
  tx: Tx,
  { deployment_id, revision_id }: { deployment_id: string; revision_id: string },
): Promise<number> =>
  tx.run(
    tx.k
      .updateTable("deployments")
      .set({ active_revision_id: revision_id, updated_at: nowMs })
      .where("deployment_id", "=", deployment_id),
  );

/**
 * Forgets what was built for revisions of a deployment, but for those that are under way, the one that serves, those of instances,
 * and the `kept` that were deployed last. Images are named by their users, so they are no builds.
 *
 * @param statuses of revisions that are under way
 */
export const forgetBuildsButNewest = (
  tx: Tx,
  { deployment_id, statuses, kept }: { deployment_id: string; statuses: readonly RevisionStatus[]; kept: number },
): Promise<number> =>
  tx.run(
    tx.k
      .updateTable("revisions")
      .set({ artifact: null })
      .where("deployment_id", "=", deployment_id)
      .where("artifact", "is not", null)
      .where("source", "in", ["github", "internal_source"])
      .where("status", "not in", statuses)
      .where("revision_id", "not in", (e) =>
        e
          .selectFrom("revisions as r")
          .select("r.revision_id")
          .where("r.deployment_id", "=", deployment_id)
          .where((e) => e.or([e("r.status", "=", "DEPLOYED"), e("r.deployed_at", "is not", null)]))
          .orderBy("r.deploying_at", "desc")
          .limit(kept),
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
