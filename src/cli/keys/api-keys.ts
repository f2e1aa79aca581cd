import { parseKeyId } from "../../access/keys/api-key-format.ts";
import { apiKeyOf, createApiKey } from "../../access/keys/api-keys.ts";
import { listApiKeys, revokeApiKey } from "../../access/storage/api-keys.ts";
import { ensureWorkspace } from "../../access/workspaces.ts";
import type { Flags } from "../../config/config.ts";
import type { Scope } from "../../platform/contract/caller.ts";
import { ConfigError } from "../../platform/errors.ts";
import { formatTable } from "../command.ts";
import { withSharedDatabase } from "../shared-database.ts";

export interface CreateFlags extends Flags {
  name: string;
  user: string;
  workspace: string;
  scope?: Scope[];
  json?: boolean;
}

/** Creates a key, and its workspace if it does not exist, in one transaction. */
export async function createKey(flags: CreateFlags): Promise<void> {
  const { name, user, scope } = flags;
  const created = await withSharedDatabase(flags, (database) =>
    database.write(async (tx) => {
      const workspace = await ensureWorkspace(tx, flags.workspace);
      const { tenant_id } = workspace;
      const { id, key, scopes } = await createApiKey(tx, { tenant_id, user_id: user, name, scopes: scope });
      return { id, key, tenant_id, workspace: workspace.name, user, name, scopes };
    }),
  );
  if (flags.json) return console.log(JSON.stringify(created));
  const { id, key, workspace, scopes } = created;
  console.log(`Created API key ${id} for ${user} in workspace "${workspace}" (scopes: ${scopes.join(", ")}):

  ${key}

Copy the key now: it is not stored and cannot be shown again. Send it as X-Api-Key, or as Authorization: Bearer.`);
}

export async function listKeys(flags: Flags & { json?: boolean }): Promise<void> {
  const rows = await withSharedDatabase(flags, (database) => listApiKeys(database.read, undefined));
  const keys = rows.map((row) => {
    const { id, tenant_id, user_id, name, ...more } = apiKeyOf(row);
    return { id, tenant_id, workspace: row.workspace, user: user_id, name, ...more };
  });
  if (flags.json) return console.log(JSON.stringify(keys));
  if (keys.length === 0) return console.log("There are no API keys.");
  const lines = keys.map((key) => [
    key.id,
    key.revoked_at === null ? "active" : "revoked",
    key.user,
    key.workspace ?? key.tenant_id,
    key.last_used_at?.slice(0, 16) ?? "never",
    key.scopes.join(","),
    key.name,
  ]);
  console.log(formatTable([["ID", "STATUS", "USER", "WORKSPACE", "LAST USED (UTC)", "SCOPES", "NAME"], ...lines]));
}

/** @param text a key ID, or the complete key */
export async function revokeKey(text: string, flags: Flags): Promise<void> {
  const key_id = parseKeyId(text) ?? text;
  const count = await withSharedDatabase(flags, (database) =>
    database.write((tx) => revokeApiKey(tx, key_id, undefined)),
  );
  if (count === 0) {
    throw new ConfigError(
      `There is no API key with the ID "${key_id}". Run "threadmill keys list" to list the IDs; the ID is the part of a key between tmk_ and the next _.`,
    );
  }
  console.log(`Revoked API key ${key_id}.`);
}
