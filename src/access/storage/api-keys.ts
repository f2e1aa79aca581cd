import { sql } from "kysely";
import { nowMs, type Tx } from "../../platform/database/database.ts";
import { prepared } from "../../platform/database/prepared.ts";
import { named } from "./named.ts";
import type { ApiKeyRow, WorkspaceRow } from "./schema.ts";

export type NewApiKey = Omit<ApiKeyRow, "created_at" | "last_used_at" | "revoked_at">;

export async function insertApiKey(tx: Tx, key: NewApiKey): Promise<ApiKeyRow> {
  const row = { ...key, created_at: nowMs, last_used_at: null, revoked_at: null };
  return (await tx.first(tx.k.insertInto("api_keys").values(row).returningAll())) as ApiKeyRow;
}

/** The key with this id in any workspace, revoked or not. */
export const findApiKey = (tx: Tx, key_id: string): Promise<ApiKeyRow | undefined> =>
  tx.first(findQuery(tx, { key_id }));

const findQuery = prepared<{ key_id: string }, ApiKeyRow>((k, p) =>
  k.selectFrom("api_keys").selectAll().where("key_id", "=", p("key_id")),
);

/** Those of these keys that are revoked, or are not there. One statement with one parameter, however many they are. */
export async function endedKeysAmong(tx: Tx, key_ids: readonly string[]): Promise<string[]> {
  const query = sql<{ key_id: string }>`select named.key as key_id from ${named(tx, key_ids)} as named
    left join api_keys on api_keys.key_id = named.key
    where api_keys.key_id is null or api_keys.revoked_at is not null`;
  return (await tx.all(query.compile(tx.k))).map(({ key_id }) => key_id);
}

/** Whether a key was ever made: a revoked one stays. */
export const hasApiKeys = async (tx: Tx): Promise<boolean> => (await tx.first(anyQuery(tx, {}))) !== undefined;

const anyQuery = prepared<object, { key_id: string }>((k) => k.selectFrom("api_keys").select("key_id").limit(1));

/** A key with the name of its workspace. */
export type ListedApiKey = ApiKeyRow & { workspace: WorkspaceRow["name"] | null };

/** Of a workspace, or of all; the newest first, also those that were revoked. */
export function listApiKeys(tx: Tx, tenant_id: string | undefined): Promise<ListedApiKey[]> {
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

/** In one list: the API has no pages for them. */
export const MAX_API_KEYS = 10_000;

/** Ends a key for good; when it has ended already, the time of that stays. Returns how many keys there are of that id. */
export function revokeApiKey(tx: Tx, key_id: string, tenant_id: string | undefined): Promise<number> {
  const query = tx.k
    .updateTable("api_keys")
    .set({ revoked_at: sql<number>`coalesce(revoked_at, now_ms())` })
    .where("key_id", "=", key_id);
  return tx.run(tenant_id === undefined ? query : query.where("tenant_id", "=", tenant_id));
}

/** Notes that a key was used, unless that was noted within the last `every_ms`. */
export const touchApiKey = (tx: Tx, key_id: string, every_ms: number): Promise<number> =>
  tx.run(
    tx.k
      .updateTable("api_keys")
      .set({ last_used_at: nowMs })
      .where("key_id", "=", key_id)
      .where((e) => e.or([e("last_used_at", "is", null), sql<boolean>`last_used_at <= now_ms() - ${every_ms}`])),
  );
