import { type Caller, DEFAULT_SCOPES, type Scope } from "../../platform/contract/caller.ts";
import type { Tx } from "../../platform/database/database.ts";
import { ApiError } from "../../platform/errors.ts";
import { isoOfMilliseconds } from "../../platform/lib/times.ts";
import type { VaultContext } from "../context.ts";
import type { ApiKey, ApiKeyCreate, NewApiKey } from "../contract/admin.ts";
import { insertApiKey, listApiKeys, revokeApiKey } from "../storage/api-keys.ts";
import type { ApiKeyRow } from "../storage/schema.ts";
import { isOperator, requireWorkspace } from "../workspaces.ts";
import { digestOf, generateApiKey } from "./api-key-format.ts";

export class ApiKeys {
  readonly #database: VaultContext["database"];

  constructor({ database }: Pick<VaultContext, "database">) {
    this.#database = database;
  }

  async list(caller: Caller, tenant_id = caller.tenant_id): Promise<ApiKey[]> {
    const { read } = this.#database;
    await requireWorkspace(read, caller, tenant_id);
    return (await listApiKeys(read, tenant_id)).map(apiKeyOf);
  }

  /** Creates a key. Only this response contains the full key. */
  async create(caller: Caller, body: ApiKeyCreate): Promise<NewApiKey> {
    const { tenant_id = caller.tenant_id, user_id = caller.user_id, name, scopes } = body;
    return this.#database.write(async (tx) => {
      await requireWorkspace(tx, caller, tenant_id);
      return createApiKey(tx, { tenant_id, user_id, name, scopes });
    });
  }

  /** @throws ApiError api_key_not_found, also for a key of another workspace unless the caller administers all workspaces */
  async revoke(caller: Caller, key_id: string): Promise<void> {
    const tenant_id = isOperator(caller) ? undefined : caller.tenant_id;
    const count = await this.#database.write((tx) => revokeApiKey(tx, key_id, tenant_id));
    if (count === 0) throw new ApiError("api_key_not_found");
    this.#database.hints.emit({ kind: "access" });
  }
}

/** Only the id and the digest of the key are stored. */
export async function createApiKey(
  tx: Tx,
  { scopes, ...owner }: Pick<ApiKeyRow, "tenant_id" | "user_id" | "name"> & { scopes: readonly Scope[] | undefined },
): Promise<NewApiKey> {
  const { key_id, key } = generateApiKey();
  const granted = JSON.stringify([...new Set(scopes ?? DEFAULT_SCOPES)]);
  const row = await insertApiKey(tx, { key_id, ...owner, digest: digestOf(key), scopes: granted });
  return { ...apiKeyOf(row), key };
}

export function apiKeyOf(row: ApiKeyRow): ApiKey {
  const { key_id, tenant_id, user_id, name, created_at, last_used_at, revoked_at } = row;
  return {
    id: key_id,
    tenant_id,
    user_id,
    name,
    scopes: JSON.parse(row.scopes) as Scope[],
    created_at: isoOfMilliseconds(created_at),
    last_used_at: last_used_at === null ? null : isoOfMilliseconds(last_used_at),
    revoked_at: revoked_at === null ? null : isoOfMilliseconds(revoked_at),
  };
}
