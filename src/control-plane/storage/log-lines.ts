import type { Tx } from "../../platform/database/database.ts";

/** When an instance of the revision last wrote something, if that was after `since`. */
export async function lastLineSince(
  tx: Tx,
  { deployment_id, revision_id, since }: { deployment_id: string; revision_id: string; since: number },
): Promise<number | undefined> {
  const row = await tx.first(
    tx.k
      .selectFrom("deployment_logs")
      .select("at")
      .where("deployment_id", "=", deployment_id)
      .where("kind", "=", "deploy")
      .where("at", ">", since)
      .where("revision_id", "=", revision_id)
      .orderBy("at", "desc")
      .limit(1),
  );
  return row?.at;
}
