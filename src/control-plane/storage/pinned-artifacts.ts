import type { Tx } from "../../platform/database/database.ts";

/**
 * Notes what the image of a revision is called for good, unless somebody was faster.
 *
 * @returns what the revision is made of now
 */
export async function pinArtifact(
  tx: Tx,
  { revision_id, image, artifact }: { revision_id: string; image: string; artifact: string },
): Promise<string> {
  const of = tx.k.updateTable("revisions").set({ artifact });
  await tx.run(of.where("revision_id", "=", revision_id).where("artifact", "=", image));
  const [row] = await tx.all(tx.k.selectFrom("revisions").select("artifact").where("revision_id", "=", revision_id));
  return row?.artifact ?? artifact;
}
