import { sql } from "kysely";
import type { MetadataFilter } from "../../platform/contract/caller.ts";
import { nowMs, type Tx } from "../../platform/database/database.ts";
import type { AssistantFilter, VersionSearch } from "../contract/assistants.ts";
import type { AssistantRow, AssistantVersionRow } from "./schema.ts";
import { accessible, escapeLike, like, matching, type Paging, paged } from "./search.ts";

export type NewAssistant = Omit<AssistantRow, "version" | "created_at" | "updated_at">;

/** Stores a new assistant as version 1. Returns undefined if the id is taken in the workspace. */
export async function insertAssistant(tx: Tx, assistant: NewAssistant): Promise<AssistantRow | undefined> {
  const row = await tx.first(
    tx.k
      .insertInto("assistants")
      .values({ ...assistant, version: 1, created_at: nowMs, updated_at: nowMs })
      .onConflict((conflict) => conflict.columns(["tenant_id", "assistant_id"]).doNothing())
      .returningAll(),
  );
  if (row) await insertVersion(tx, row);
  return row;
}

const insertVersion = (tx: Tx, { updated_at: _, ...version }: AssistantRow) =>
  tx.run(tx.k.insertInto("assistant_versions").values({ ...version, created_at: nowMs }));

const assistantQuery = (tx: Tx, tenant_id: string, assistant_id: string, filter: MetadataFilter | undefined) =>
  tx.k
    .selectFrom("assistants")
    .selectAll()
    .where("assistant_id", "=", assistant_id)
    .where("tenant_id", "=", tenant_id)
    .$call(accessible(filter));

/** Returns an assistant of the tenant if it meets the filter. */
export const findAssistant = (
  tx: Tx,
  tenant_id: string,
  assistant_id: string,
  filter?: MetadataFilter,
): Promise<AssistantRow | undefined> => tx.first(assistantQuery(tx, tenant_id, assistant_id, filter).compile());

/** Like {@link findAssistant}, but also locks the row until the transaction ends. */
export const lockAssistant = (
  tx: Tx,
  tenant_id: string,
  assistant_id: string,
  filter?: MetadataFilter,
): Promise<AssistantRow | undefined> =>
  tx.first(tx.dialect.forUpdate(assistantQuery(tx, tenant_id, assistant_id, filter)));

/** Stores the assistant's fields as its next version: the highest number plus one, whichever version is current. */
export async function insertNextVersion(tx: Tx, assistant: Omit<AssistantRow, "version">): Promise<AssistantRow> {
  const last = await tx.first(versionsOf(tx, assistant).select((s) => s.fn.max("version").as("version")));
  const next = { ...assistant, version: (last?.version ?? 0) + 1 };
  await insertVersion(tx, next);
  return setAssistant(tx, next);
}

export async function setAssistant(
  tx: Tx,
  assistant: Pick<AssistantRow, "assistant_id" | "tenant_id"> & Partial<AssistantRow>,
): Promise<AssistantRow> {
  const { assistant_id, tenant_id, ...fields } = assistant;
  const { created_at: _, ...changed } = fields;
  const row = await tx.first(
    tx.k
      .updateTable("assistants")
      .set({ ...changed, updated_at: nowMs })
      .where("tenant_id", "=", tenant_id)
      .where("assistant_id", "=", assistant_id)
      .returningAll(),
  );
  return row as AssistantRow;
}

/** Ids are unique within a workspace. */
type AssistantKey = Pick<AssistantRow, "tenant_id" | "assistant_id">;

const versionsOf = (tx: Tx, { tenant_id, assistant_id }: AssistantKey) =>
  tx.k.selectFrom("assistant_versions").where("tenant_id", "=", tenant_id).where("assistant_id", "=", assistant_id);

export const findVersion = (tx: Tx, key: AssistantKey, version: number): Promise<AssistantVersionRow | undefined> =>
  tx.first(versionsOf(tx, key).selectAll().where("version", "=", version));

/** Returns the versions of an assistant, newest first. */
export const listVersions = (
  tx: Tx,
  key: AssistantKey,
  { metadata, limit, offset }: VersionSearch,
): Promise<AssistantVersionRow[]> => {
  const query = versionsOf(tx, key).selectAll().$call(matching({ metadata }));
  return tx.all(query.orderBy("version", "desc").limit(limit).offset(offset));
};

/** Deletes an assistant with its versions and its crons. */
export async function deleteAssistant(tx: Tx, { tenant_id, assistant_id }: AssistantKey): Promise<void> {
  for (const table of ["assistants", "assistant_versions", "crons"] as const)
    await tx.run(tx.k.deleteFrom(table).where("tenant_id", "=", tenant_id).where("assistant_id", "=", assistant_id));
}

export const searchAssistants = (
  tx: Tx,
  tenant_id: string,
  filter: AccessibleAssistants,
  paging: Paging,
): Promise<AssistantRow[]> =>
  tx.all(assistantsMatching(tx, tenant_id, filter).selectAll().$call(paged(paging, "assistant_id")));

/** Returns the first 100 characters of the names of all matching assistants, oldest first. */
export const listAssistantNames = (
  tx: Tx,
  tenant_id: string,
  filter: AccessibleAssistants,
  limit: number,
): Promise<Pick<AssistantRow, "assistant_id" | "graph_id" | "name">[]> =>
  tx.all(
    assistantsMatching(tx, tenant_id, filter)
      .select(["assistant_id", "graph_id", sql<string>`substr(name, 1, 100)`.as("name")])
      .orderBy("created_at")
      .orderBy("assistant_id")
      .limit(limit),
  );

export async function countAssistants(tx: Tx, tenant_id: string, filter: AccessibleAssistants): Promise<number> {
  const row = await tx.first(
    assistantsMatching(tx, tenant_id, filter).select((s) => s.fn.countAll<number>().as("count")),
  );
  return Number(row?.count ?? 0);
}

type AccessibleAssistants = AssistantFilter & { access?: MetadataFilter | undefined };

function assistantsMatching(tx: Tx, tenant_id: string, { metadata, graph_id, name, access }: AccessibleAssistants) {
  let query = tx.k
    .selectFrom("assistants")
    .where("tenant_id", "=", tenant_id)
    .$call(matching({ metadata }))
    .$call(accessible(access));
  if (graph_id !== undefined) query = query.where("graph_id", "=", graph_id);
  if (name !== undefined) query = query.where(like("name", `%${escapeLike(name)}%`));
  return query;
}

/** Returns the default assistants of a workspace, including those of removed graphs. */
export const listDefaultAssistants = (tx: Tx, tenant_id: string): Promise<AssistantRow[]> =>
  tx.all(assistantsMatching(tx, tenant_id, { metadata: MADE_BY_SYSTEM }).selectAll());

/** Returns the default assistants of all workspaces, except those of the given graphs. */
export function listDefaultAssistantsExcept(tx: Tx, graph_ids: readonly string[]): Promise<AssistantRow[]> {
  const query = tx.k
    .selectFrom("assistants")
    .selectAll()
    .$call(matching({ metadata: MADE_BY_SYSTEM }));
  return tx.all(graph_ids.length > 0 ? query.where("graph_id", "not in", graph_ids) : query);
}

const MADE_BY_SYSTEM = { created_by: "system" };
