import { sql } from "kysely";
import { nowMs, type Tx } from "../../platform/database/database.ts";
import { IN_PROGRESS } from "./revisions.ts";
import type { SourceUploadRow } from "./schema.ts";

type NewUpload = Pick<SourceUploadRow, "object_path" | "tenant_id" | "deployment_id" | "token_digest">;

/** @param ttl_ms validity of the URL, measured by the database clock */
export const insertUpload = (tx: Tx, upload: NewUpload, ttl_ms: number): Promise<number> =>
  tx.run(
    tx.k.insertInto("source_uploads").values({
      ...upload,
      size_bytes: null,
      sha256: null,
      expires_at: sql<number>`${nowMs} + ${ttl_ms}`,
      created_at: nowMs,
    }),
  );

/** Finds an upload that is neither complete nor expired. */
export const findOpenUpload = (tx: Tx, object_path: string): Promise<SourceUploadRow | undefined> =>
  tx.first(
    tx.k
      .selectFrom("source_uploads")
      .selectAll()
      .where("object_path", "=", object_path)
      .where("size_bytes", "is", null)
      .where("expires_at", ">", nowMs),
  );

/** Completes an upload and keeps it for `ttl_ms`. Returns undefined if the upload was already completed or has expired. */
export const completeUploadIfOpen = (
  tx: Tx,
  { object_path, size_bytes, sha256 }: Pick<SourceUploadRow, "object_path" | "size_bytes" | "sha256">,
  ttl_ms: number,
): Promise<SourceUploadRow | undefined> =>
  tx.first(
    tx.k
      .updateTable("source_uploads")
      .set({ size_bytes, sha256, expires_at: sql<number>`${nowMs} + ${ttl_ms}` })
      .where("object_path", "=", object_path)
      .where("size_bytes", "is", null)
      .where("expires_at", ">", nowMs)
      .returningAll(),
  );

/** Finds a completed upload. */
export const findUpload = (
  tx: Tx,
  { deployment_id, object_path }: Pick<SourceUploadRow, "deployment_id" | "object_path">,
): Promise<SourceUploadRow | undefined> =>
  tx.first(
    tx.k
      .selectFrom("source_uploads")
      .selectAll()
      .where((e) => e.and({ deployment_id, object_path }))
      .where("size_bytes", "is not", null),
  );

/** Keeps a completed upload for `ttl_ms` from now, so that a revision can refer to the upload. */
export const extendUpload = (
  tx: Tx,
  { deployment_id, object_path }: Pick<SourceUploadRow, "deployment_id" | "object_path">,
  ttl_ms: number,
): Promise<number> =>
  tx.run(
    tx.k
      .updateTable("source_uploads")
      .set({ expires_at: sql<number>`${nowMs} + ${ttl_ms}` })
      .where((e) => e.and({ deployment_id, object_path }))
      .where("size_bytes", "is not", null),
  );

/**
 * Deletes expired uploads. Keeps the uploads of revisions in progress, of the active revision, and of the latest revision, on which the
 * next revision may be based. Returns the deleted rows; the caller must remove their files.
 */
export const deleteExpiredUploads = (tx: Tx): Promise<SourceUploadRow[]> =>
  tx.all(
    tx.k
      .deleteFrom("source_uploads")
      .where("expires_at", "<=", nowMs)
      .where((e) =>
        e.not(
          e.exists(
            e
              .selectFrom("revisions as r")
              .innerJoin("deployments as d", "d.deployment_id", "r.deployment_id")
              .select("r.revision_id")
              .whereRef("r.deployment_id", "=", "source_uploads.deployment_id")
              .where(
                tx.dialect.jsonText(sql.ref<string>("r.source_revision_config"), "source_tarball_path"),
                "=",
                sql.ref<string>("source_uploads.object_path"),
              )
              .where((e) =>
                e.or([
                  e("r.status", "in", IN_PROGRESS),
                  e("r.revision_id", "=", e.ref("d.active_revision_id")),
                  e("r.revision_id", "=", e.ref("d.latest_revision_id")),
                ]),
              ),
          ),
        ),
      )
      .returningAll(),
  );

/** Deletes the uploads of a deployment. Returns the deleted rows; the caller must remove their files. */
export const deleteUploads = (tx: Tx, deployment_id: string): Promise<SourceUploadRow[]> =>
  tx.all(tx.k.deleteFrom("source_uploads").where("deployment_id", "=", deployment_id).returningAll());

export async function findUploads(tx: Tx, object_paths: readonly string[]): Promise<SourceUploadRow[]> {
  if (object_paths.length === 0) return [];
  return tx.all(tx.k.selectFrom("source_uploads").selectAll().where("object_path", "in", object_paths));
}
