import { setTimeout as sleep } from "node:timers/promises";
import { generateEncryptionKey } from "../access/encryption/encryption-key.ts";
import { KeyFile } from "../access/encryption/key-file.ts";
import type { KeyRing } from "../access/encryption/key-ring.ts";
import { KEYS_VARIABLE, type KeySource, keySourceOf } from "../access/encryption/key-source.ts";
import { checkKeys, openKeyRing } from "../access/encryption/open-key-ring.ts";
import { countByKey, isRotationPending, resealAll, retireUnused } from "../access/encryption/rotation.ts";
import { parseKeyId } from "../access/keys/api-key-format.ts";
import { apiKeyOf, createApiKey } from "../access/keys/api-keys.ts";
import { listApiKeys, revokeApiKey } from "../access/storage/api-keys.ts";
import { ensureWorkspace } from "../access/workspaces.ts";
import { MIGRATIONS } from "../app/compose/migrations.ts";
import { openDatabase } from "../app/compose/open-data.ts";
import { type Flags, readStorageConfig } from "../config/config.ts";
import type { Scope } from "../platform/contract/caller.ts";
import type { Database } from "../platform/database/database.ts";
import { migrate } from "../platform/database/migrate.ts";
import { lockFile } from "../platform/database/sqlite/folder-lock.ts";
import { ConfigError } from "../platform/errors.ts";
import { createLog, type Log } from "../platform/lib/log.ts";
import { formatTable } from "./command.ts";

/** Opens or creates the database. A service may use it at the same time: the data folder is not locked. */
export async function withSharedDatabase<T>(
  flags: Flags,
  work: (database: Database, log: Log) => Promise<T>,
): Promise<T> {
  const config = readStorageConfig(flags, process.env);
  const log = createLog(config.log_level);
  const database = await openDatabase(config, "full", log);
  try {
    await migrate(database, MIGRATIONS.agents);
    return await work(database, log);
  } finally {
    await database.close();
  }
}

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

Copy the key now: it is not stored and cannot be shown again. Send it in the header X-Api-Key, or as Authorization: Bearer <key>.`);
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
      `There is no API key with the ID "${key_id}". Run "threadmill keys list" to list the IDs; the ID is the part of a key between "tmk_" and the next "_".`,
    );
  }
  console.log(`Revoked API key ${key_id}.`);
}

export interface RotateFlags extends Flags {
  retire?: boolean;
}

/** Time after a key is added during which other processes may still store secrets that they encrypted with the previous key. */
const SETTLE_MS = 5_000;

/**
 * Adds a key at the top of the key file, if there is one, and re-encrypts all secrets with the first key of the key ring. Continues an
 * interrupted rotation without adding another key.
 */
export async function rotateEncryption({ retire = false, ...flags }: RotateFlags): Promise<void> {
  const source = keySourceOf(readStorageConfig(flags, process.env));
  await withSharedDatabase(flags, async (database, log) => {
    let unlock: (() => void) | undefined;
    try {
      if (source.kind === "file" && new KeyFile(source.path).isReplaceable()) unlock = lockFile(source.path);
      // Runs first, because the key ring cannot be opened if a registered key is missing from its source, even an unused one.
      if (retire) await retireUnused(database);
      const ring = await openKeyRing(database, source, log);
      if (source.kind === "file") await addKey(database, ring, new KeyFile(source.path));
      const failures = await encryptAll(database, ring);
      if (retire) await retireKeys(database, ring, source);
      else await printUnusedKeys(database, ring, source);
      if (failures > 0) process.exitCode = 1;
    } finally {
      unlock?.();
    }
  });
}

/** Adds a new key, unless an interrupted rotation has added it already. */
async function addKey(database: Database, ring: KeyRing, file: KeyFile): Promise<void> {
  if (await isRotationPending(database, ring)) {
    console.log(`Continuing the interrupted rotation to key ${ring.first.key_id}.`);
    return;
  }
  // The file is written first, because services cannot start while the database refers to a key that is not in the file.
  file.prepend(generateEncryptionKey());
  ring.reloadIfChanged();
  await checkKeys(database, ring.keys, file.path);
  console.log(`Added key ${ring.first.key_id} at the top of ${file.path}.`);
}

/** @returns the number of secrets that could not be re-encrypted */
async function encryptAll(database: Database, ring: KeyRing): Promise<number> {
  const failures = await resealAll(database, ring, ({ table, texts }) =>
    console.log(`${table}: ${texts} ${texts === 1 ? "secret" : "secrets"} encrypted`),
  );
  for (const { message } of failures) console.error(`error: ${message}`);
  if (failures.length === 0) console.log(`All secrets are encrypted with key ${ring.first.key_id}.`);
  return failures.length;
}

async function printUnusedKeys(database: Database, ring: KeyRing, source: KeySource): Promise<void> {
  const used = await countByKey(database);
  const unused = ring.keys.map(({ key_id }) => key_id).filter((id) => id !== ring.first.key_id && !used.has(id));
  if (unused.length === 0) return;
  const where = source.kind === "file" ? ` and remove them from ${source.path}` : "";
  console.log(
    `Keys no longer in use: ${unused.join(", ")}. Run the command again with --retire to retire all unused keys${where}.`,
  );
}

async function retireKeys(database: Database, ring: KeyRing, source: KeySource): Promise<void> {
  if (source.kind === "file") {
    await sleep(Math.max(0, new KeyFile(source.path).changedAt() + SETTLE_MS - Date.now()));
    await resealAll(database, ring, () => undefined);
  }
  const unused = new Set(await retireUnused(database, ring.first.key_id));
  const retired = ring.keys.map(({ key_id }) => key_id).filter((id) => unused.has(id));
  if (retired.length === 0) return console.log("There are no unused keys to retire.");
  if (source.kind === "file") new KeyFile(source.path).remove(unused);
  const where =
    source.kind === "file" ? `Removed from ${source.path}.` : `Remove all retired keys from ${KEYS_VARIABLE}.`;
  console.log(`Retired ${retired.join(", ")}. ${where}`);
}
