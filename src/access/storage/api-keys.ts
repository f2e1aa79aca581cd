import { sql } from "kysely";
import { nowMs, type Tx } from "../../platform/database/database.ts";
import { prepared } from "../../platform/database/prepared.ts";
import type { ApiKeyRow } from "./schema.ts";
import { stringTable } from "./workspaces.ts";

export type NewApiKey = Omit<ApiKeyRow, "created_at" | "last_used_at" | "revoked_at">;

export async function insertApiKey(tx: Tx, key: NewApiKey): Promise<ApiKeyRow> {
  const row = { ...key, created_at: nowMs, last_used_at: null, revoked_at: null };
  return (await tx.first(tx.k.insertInto("api_keys").values(row).returningAll())) as ApiKeyRow;
}

/** Finds a key in any workspace, including revoked keys. */
export const findApiKey = (tx: Tx, key_id: string): Promise<ApiKeyRow | undefined> =>
  tx.first(findQuery(tx, { key_id }));

const findQuery = prepared<{ key_id: string }, ApiKeyRow>((k, p) =>
  k.selectFrom("api_keys").selectAll().where("key_id", "=", p("key_id")),
);

/** Returns the keys of the list that are revoked or do not exist. One statement with one bind parameter for any number of keys. */
export async function listEndedKeys(tx: Tx, key_ids: readonly string[]): Promise<string[]> {
  const query = sql<{ key_id: string }>`select given.key as key_id from ${stringTable(tx, key_ids)} as given
    left join api_keys on api_keys.key_id = given.key
    where api_keys.key_id is null or api_keys.revoked_at is not null`;
  return (await tx.all(query.compile(tx.k))).map(({ key_id }) => key_id);
}

/** Whether a key has ever been created. Revoked keys stay in the table. */
export const hasApiKeys = async (tx: Tx): Promise<boolean> => (await tx.first(anyQuery(tx, {}))) !== undefined;

const anyQuery = prepared<object, { key_id: string }>((k) => k.selectFrom("api_keys").select("key_id").limit(1));

/** Keys of one workspace or of all workspaces, newest first, including revoked keys. */
export function listApiKeys(
  tx: Tx,
  tenant_id: string | undefined,
): Promise<(ApiKeyRow & { workspace: string | null })[]> {
  const query = tx.k
    .selectFrom("api_keys")
    .leftJoin("workspaces", "workspaces.tenant_id", "api_keys.tenant_id")
    .selectAll("api_keys")
    .select("workspaces.name as workspace");
  return tx.all(
    (tenant_id === undefined ? query : query.where("api_keys.tenant_id", "=", tenant_id))
      .orderBy("api_keys.created_at", "desc")
      .orderBy("key_id")
      .limit(MAX_API_KEYS),
  );
}

/** Maximum number of keys in a list. The API has no pagination for keys. */
export const MAX_API_KEYS = 10_000;

/** Revokes a key. The time of an earlier revocation is kept. Returns 0 if the key does not exist or is in another workspace. */
export function revokeApiKey(tx: Tx, key_id: string, tenant_id: string | undefined): Promise<number> {
  const query = tx.k
    .updateTable("api_keys")
    .set({ revoked_at: sql<number>`coalesce(revoked_at, now_ms())` })
    .where("key_id", "=", key_id);
  return tx.run(tenant_id === undefined ? query : query.where("tenant_id", "=", tenant_id));
}

export const touchApiKey = (tx: Tx, key_id: string, interval_ms: number): Promise<number> =>
  tx.run(
    tx.k
      .updateTable("api_keys")
      .set({ last_used_at: nowMs })
      .where("key_id", "=", key_id)
      .where((e) => e.or([e("last_used_at", "is", null), sql<boolean>`last_used_at <= now_ms() - ${interval_ms}`])),
  );
