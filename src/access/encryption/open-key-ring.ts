import type { Database, Tx } from "../../platform/database/database.ts";
import { ConfigError } from "../../platform/errors.ts";
import type { Log } from "../../platform/lib/log.ts";
import {
  insertEncryptionKey,
  listEncryptionKeys,
  lockEncryptionKeys,
  unretireEncryptionKey,
} from "../storage/encryption-keys.ts";
import type { EncryptionKeyRow } from "../storage/schema.ts";
import { type EncryptionKey, parseEncryptionKey, requireKeys } from "./encryption-key.ts";
import { KeyFile } from "./key-file.ts";
import { KeyRing, openWith, sealWith } from "./key-ring.ts";
import { KEYS_VARIABLE, type KeySource } from "./key-source.ts";
import type { AadContext } from "./seal.ts";

/**
 * Loads the encryption keys and verifies them against the migrated database. A managed key file is created if neither the file nor a
 * registered key that is not retired exists.
 *
 * @throws ConfigError for invalid keys, for keys that do not match the database and for a managed file that others can read
 */
export async function openKeyRing(database: Database, source: KeySource, log: Log): Promise<KeyRing> {
  if (source.kind === "environment") {
    const keys = source.keys.map((text, index) => parseEncryptionKey(text, `${KEYS_VARIABLE}: key ${index + 1}`));
    await checkKeys(database, requireKeys(keys, KEYS_VARIABLE), KEYS_VARIABLE);
    return new KeyRing(keys, undefined, log);
  }
  const file = new KeyFile(source.path);
  if (source.is_managed && !file.exists()) await createKeyFile(database, file);
  const keys = file.read();
  if (file.isReadableByOthers()) reportPermissions(source, log);
  await checkKeys(database, keys, source.path);
  return new KeyRing(keys, file, log);
}

async function createKeyFile(database: Database, file: KeyFile): Promise<void> {
  const registered = (await listEncryptionKeys(database.read)).filter((row) => row.retired_at === null);
  // Checked after the query, because another process creates the file before it registers the key.
  if (file.exists()) return;
  if (registered.length > 0)
    throw new ConfigError(
      `The encryption key file ${file.path} does not exist, but the database (${database.description}) uses ${idsOf(registered)}: restore the file from a backup.`,
    );
  file.create();
}

/** Throws for a managed file. Logs a warning for a configured file, because the permissions of a mounted file cannot always be changed. */
function reportPermissions({ path, is_managed }: Extract<KeySource, { kind: "file" }>, log: Log): void {
  if (is_managed)
    throw new ConfigError(`The encryption key file ${path} is readable by other users: run "chmod 600 ${path}".`);
  log.warn({ path }, "encryption key file is readable by other users");
}

/** Registers new keys. Throws a ConfigError if a registered key is missing and not retired, or if a check value does not match. */
export async function checkKeys(database: Database, keys: readonly EncryptionKey[], where: string): Promise<void> {
  await database.write(async (tx) => {
    await lockEncryptionKeys(tx);
    const rows = new Map((await listEncryptionKeys(tx)).map((row) => [row.key_id, row]));
    const ids = new Set(keys.map(({ key_id }) => key_id));
    const missing = [...rows.values()].filter((row) => row.retired_at === null && !ids.has(row.key_id));
    if (missing.length > 0) {
      throw new ConfigError(
        `The database (${database.description}) refers to ${idsOf(missing)}, which ${where} does not contain. Add each missing key there, after the first key. To retire missing keys that no longer encrypt any secret, run "threadmill keys rotate-encryption --retire".`,
      );
    }
    for (const key of keys) await checkKey(tx, key, rows.get(key.key_id));
    const [first] = keys;
    if (first && rows.get(first.key_id)?.retired_at != null) await unretireEncryptionKey(tx, first.key_id);
  });
}

const CHECK_TEXT = "threadmill";

async function checkKey(tx: Tx, key: EncryptionKey, row: EncryptionKeyRow | undefined): Promise<void> {
  const { key_id } = key;
  const aad: AadContext = { tenant_id: "", table: "encryption_keys", row_id: key_id, column: "check_value" };
  if (!row) return void (await insertEncryptionKey(tx, { key_id, check_value: sealWith(key, CHECK_TEXT, aad) }));
  try {
    if (openWith(key, row.check_value, aad) === CHECK_TEXT) return;
  } catch {}
  throw new ConfigError(
    `The encryption key ${key_id} does not match its check value in the table encryption_keys: restore this table from a backup.`,
  );
}

const idsOf = (rows: readonly { key_id: string }[]): string =>
  `the encryption key${rows.length > 1 ? "s" : ""} ${rows.map(({ key_id }) => key_id).join(", ")}`;
