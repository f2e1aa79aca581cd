import type { Tx } from "../../platform/database/database.ts";
import type { RevisionRow } from "./schema.ts";

/** What revisions of a deployment were made of, each with what was built. */
export const artifactsOf = (tx: Tx, deployment_id: string): Promise<Pick<RevisionRow, "source" | "artifact">[]> =>
  tx.all(
    tx.k.selectFrom("revisions").select(["source", "artifact"]).distinct().where("deployment_id", "=", deployment_id),
  );

/** A part of what a deployment wrote, the oldest first; says how many lines went. */
export const deleteSomeLogLines = (tx: Tx, deployment_id: string, limit: number): Promise<number> =>
  tx.run(
    tx.k
      .deleteFrom("deployment_logs")
      .where("log_no", "in", (e) =>
        e
          .selectFrom("deployment_logs")
          .select("log_no")
          .where("deployment_id", "=", deployment_id)
          .orderBy("at")
          .limit(limit),
      ),
  );

/** Every row that is left of a deployment whose instances are gone. */
export async function deleteDeploymentRows(tx: Tx, deployment_id: string): Promise<void> {
  for (const table of ["deployment_logs", "source_uploads", "instances", "revisions", "deployments"] as const) {
    await tx.run(tx.k.deleteFrom(table).where("deployment_id", "=", deployment_id));
  }
}
