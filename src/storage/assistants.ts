import { sql } from "kysely";
import { nowMs, type Tx } from "./database.ts";
import type { AssistantRow, AssistantVersionRow } from "./schema.ts";
import { matching, type Paging, paged } from "./search.ts";

export type NewAssistant = Omit<AssistantRow, "version" | "created_at" | "updated_at">;

/** Stores a new assistant as its version 1. Undefined when the id is taken. */
export async function insertAssistant(tx: Tx, assistant: NewAssistant): Promise<AssistantRow | undefined> {
  const row = await tx.first(
    tx.k
      .insertInto("assistants")
      .values({ ...assistant, version: 1, created_at: nowMs, updated_at: nowMs })
      .onConflict((conflict) => conflict.column("assistant_id").doNothing())
      .returningAll(),
  );
  if (row) await insertVersion(tx, row);
  return row;
}

const insertVersion = (tx: Tx, { updated_at: _, ...version }: AssistantRow) =>
  tx.run(tx.k.insertInto("assistant_versions").values({ ...version, created_at: nowMs }));

export const findAssistant = (tx: Tx, tenant_id: string, assistant_id: string): Promise<AssistantRow | undefined> =>
  tx.first(
    tx.k
      .selectFrom("assistants")
      .selectAll()
      .where("assistant_id", "=", assistant_id)
      .where("tenant_id", "=", tenant_id),
  );

/** As {@link findAssistant}, and nobody else changes it until the transaction ends. */
export const lockAssistant = (tx: Tx, tenant_id: string, assistant_id: string): Promise<AssistantRow | undefined> =>
  tx.first(
    tx.dialect.forUpdate(
      tx.k
        .selectFrom("assistants")
        .selectAll()
        .where("assistant_id", "=", assistant_id)
        .where("tenant_id", "=", tenant_id),
    ),
  );

/** Stores the assistant's fields as its next version: one more than the highest there is, whichever is current. */
export async function insertNextVersion(tx: Tx, assistant: Omit<AssistantRow, "version">): Promise<AssistantRow> {
  const last = await tx.first(
    tx.k
      .selectFrom("assistant_versions")
      .select((s) => s.fn.max("version").as("version"))
      .where("assistant_id", "=", assistant.assistant_id),
  );
  const next = { ...assistant, version: (last?.version ?? 0) + 1 };
  await insertVersion(tx, next);
  return setAssistant(tx, next);
}

/** Makes these fields the assistant's current ones. */
export async function setAssistant(
  tx: Tx,
  assistant: Omit<AssistantRow, "created_at" | "updated_at">,
): Promise<AssistantRow> {
  const { assistant_id, tenant_id: _, ...fields } = assistant;
  const { created_at: __, ...changed } = fields as Partial<AssistantRow>;
  const row = await tx.first(
    tx.k
      .updateTable("assistants")
      .set({ ...changed, updated_at: nowMs })
      .where("assistant_id", "=", assistant_id)
      .returningAll(),
  );
  return row as AssistantRow;
}

export const findVersion = (tx: Tx, assistant_id: string, version: number): Promise<AssistantVersionRow | undefined> =>
  tx.first(
    tx.k
      .selectFrom("assistant_versions")
      .selectAll()
      .where("assistant_id", "=", assistant_id)
      .where("version", "=", version),
  );

/** Newest first. */
export const listVersions = (
  tx: Tx,
  assistant_id: string,
  filter: { metadata?: object; limit: number; offset: number },
): Promise<AssistantVersionRow[]> =>
  tx.all(
    tx.k
      .selectFrom("assistant_versions")
      .selectAll()
      .where("assistant_id", "=", assistant_id)
      .$call(matching({ metadata: filter.metadata }))
      .orderBy("version", "desc")
      .limit(filter.limit)
      .offset(filter.offset),
  );

export async function deleteAssistant(tx: Tx, assistant_id: string): Promise<void> {
  await tx.run(tx.k.deleteFrom("assistants").where("assistant_id", "=", assistant_id));
  await tx.run(tx.k.deleteFrom("assistant_versions").where("assistant_id", "=", assistant_id));
}

export interface AssistantFilter {
  metadata?: object;
  graph_id?: string;
  /** Part of the name, upper or lower case. */
  name?: string;
}

export const searchAssistants = (
  tx: Tx,
  tenant_id: string,
  filter: AssistantFilter,
  paging: Paging,
): Promise<AssistantRow[]> =>
  tx.all(assistantsMatching(tx, tenant_id, filter).selectAll().$call(paged(paging, "assistant_id")));

export async function countAssistants(tx: Tx, tenant_id: string, filter: AssistantFilter): Promise<number> {
  const row = await tx.first(
    assistantsMatching(tx, tenant_id, filter).select((s) => s.fn.countAll<number>().as("count")),
  );
  return Number(row?.count ?? 0);
}

function assistantsMatching(tx: Tx, tenant_id: string, { metadata, graph_id, name }: AssistantFilter) {
  let query = tx.k.selectFrom("assistants").where("tenant_id", "=", tenant_id).$call(matching({ metadata }));
  if (graph_id !== undefined) query = query.where("graph_id", "=", graph_id);
  if (name !== undefined) {
    const pattern = `%${name.toLowerCase().replaceAll(/[\\%_]/g, "\\$&")}%`;
    query = query.where(sql<boolean>`lower(name) like ${pattern} escape '\\'`);
  }
  return query;
}

/** The default assistants there are, whichever graphs exist now. */
export const listDefaultAssistants = (tx: Tx, tenant_id: string): Promise<AssistantRow[]> =>
  tx.all(assistantsMatching(tx, tenant_id, { metadata: { created_by: "system" } }).selectAll());
