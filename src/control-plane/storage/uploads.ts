import { sql } from "kysely";
import { nowMs, type Tx } from "../../platform/database/database.ts";
import { UNDER_WAY } from "./revisions.ts";
import type { SourceUploadRow } from "./schema.ts";

export type NewUpload = Pick<SourceUploadRow, "object_path" | "tenant_id" | "deployment_id" | "token_digest">;

/** @param ttl_ms how long it may be brought, by the clock of the database */
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

/** One that may still be brought. */
export const findOpenUpload = (tx: Tx, object_path: string): Promise<SourceUploadRow | undefined> =>
  tx.first(
    tx.k
      .selectFrom("source_uploads")
      .selectAll()
      .where("object_path", "=", object_path)
      .where("size_bytes", "is", null)
      .where("expires_at", ">", nowMs),
  );

/** Notes that it has arrived. Undefined when it has arrived before, or too late. It is kept for `ttl_ms` from now. */
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

/** What a revision is built of; undefined when it has not arrived. */
export const findUpload = (
  tx: Tx,
  { deployment_id, object_path }: Pick<SourceUploadRow, "deployment_id" | "object_path">,
): Promise<SourceUploadRow | undefined> =>
  tx.first(
    tx.k
      .selectFrom("source_uploads")
      .selectAll()
      .where("deployment_id", "=", deployment_id)
      .where("object_path", "=", object_path)
      .where("size_bytes", "is not", null),
  );

/** Of one that has arrived: it stays for `ttl_ms` from now, in which a revision can come to name it. */
export const keepUpload = (
  tx: Tx,
  { deployment_id, object_path }: Pick<SourceUploadRow, "deployment_id" | "object_path">,
  ttl_ms: number,
): Promise<number> =>
  tx.run(
    tx.k
      .updateTable("source_uploads")
      .set({ expires_at: sql<number>`${nowMs} + ${ttl_ms}` })
      .where("deployment_id", "=", deployment_id)
      .where("object_path", "=", object_path)
      .where("size_bytes", "is not", null),
  );

/**
 * What has expired and no revision needs: one needs it that is under way, that serves, or that is the latest, of which the next
 * may be made. Answers what was deleted, so that the files can follow.
 */
export const deleteUnneededUploads = (tx: Tx): Promise<SourceUploadRow[]> =>
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
                  e("r.status", "in", UNDER_WAY),
                  e("r.revision_id", "=", e.ref("d.active_revision_id")),
                  e("r.revision_id", "=", e.ref("d.latest_revision_id")),
                ]),
              ),
          ),
        ),
      )
      .returningAll(),
  );

/** With the deployment itself. Answers what was deleted, so that the files can follow. */
export const deleteUploads = (tx: Tx, deployment_id: string): Promise<SourceUploadRow[]> =>
  tx.all(tx.k.deleteFrom("source_uploads").where("deployment_id", "=", deployment_id).returningAll());

/** Those of the named ones that there are. */
export async function uploadsAmong(tx: Tx, object_paths: readonly string[]): Promise<SourceUploadRow[]> {
  if (object_paths.length === 0) return [];
  return tx.all(tx.k.selectFrom("source_uploads").selectAll().where("object_path", "in", object_paths));
}
