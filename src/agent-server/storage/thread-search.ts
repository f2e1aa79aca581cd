import { sql } from "kysely";
import type { MetadataFilter } from "../../platform/contract/caller.ts";
import type { Tx } from "../../platform/database/database.ts";
import type { ThreadStatus } from "../contract/records.ts";
import type { ThreadRow } from "./schema.ts";
import { accessible, escapeLike, like, matching, type Paging, paged } from "./search.ts";
import { isReadable } from "./threads.ts";

export interface ThreadFilter {
  ids?: string[];
  metadata?: object;
  /** Leaves out threads whose metadata contains this. */
  exclude_metadata?: object;
  values?: object;
  status?: ThreadStatus;
  /** Substring of the stored values, keys included, or prefix of the id; case-insensitive (SQLite: A to Z only). */
  text?: string;
  /** See docs/custom-auth.md. */
  access?: MetadataFilter | undefined;
}

export const searchThreads = (tx: Tx, tenant_id: string, filter: ThreadFilter, paging: Paging): Promise<ThreadRow[]> =>
  tx.all(threadsMatching(tx, tenant_id, filter).selectAll().$call(paged(paging, "thread_id")));

export async function countThreads(tx: Tx, tenant_id: string, filter: ThreadFilter): Promise<number> {
  const row = await tx.first(threadsMatching(tx, tenant_id, filter).select((s) => s.fn.countAll<number>().as("count")));
  return Number(row?.count ?? 0);
}

function threadsMatching(
  tx: Tx,
  tenant_id: string,
  { ids, metadata, exclude_metadata, values, status, text, access }: ThreadFilter,
) {
  let query = tx.k
    .selectFrom("threads")
    .where("tenant_id", "=", tenant_id)
    .where("hidden", "=", 0)
    .where(isReadable)
    .$call(matching({ metadata, values }))
    .$call(accessible(access));
  if (exclude_metadata)
    query = query.where((e) => e.not(sql<boolean>`json_contains(metadata, ${JSON.stringify(exclude_metadata)})`));
  if (ids) query = query.where("thread_id", "in", ids.length > 0 ? ids : [""]);
  if (status) query = query.where("status", "=", status);
  if (text)
    query = query.where((e) =>
      // The stored text is JSON, so the pattern needs its escapes.
      e.or([
        like("values", `%${escapeLike(JSON.stringify(text).slice(1, -1))}%`),
        like("thread_id", `${escapeLike(text)}%`),
      ]),
    );
  return query;
}

export async function listThreadIds(tx: Tx, tenant_id: string, filter: ThreadFilter): Promise<string[]> {
  const rows = await tx.all(threadsMatching(tx, tenant_id, filter).select("thread_id"));
  return rows.map(({ thread_id }) => thread_id);
}
