import { setTimeout as sleep } from "node:timers/promises";
import { generateEncryptionKey } from "../../access/encryption/encryption-key.ts";
import { KeyFile } from "../../access/encryption/key-file.ts";
import type { KeyRing } from "../../access/encryption/key-ring.ts";
import { KEYS_VARIABLE, type KeySource, keySourceOf } from "../../access/encryption/key-source.ts";
import { checkKeys, openKeyRing } from "../../access/encryption/open-key-ring.ts";
import { countByKey, isRotationPending, resealAll, retireUnused } from "../../access/encryption/rotation.ts";
import { type Flags, readStorageConfig } from "../../config/config.ts";
import type { Database } from "../../platform/database/database.ts";
import { lockFile } from "../../platform/database/sqlite/folder-lock.ts";
import { withSharedDatabase } from "../shared-database.ts";

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
    `Keys no longer in use: ${unused.join(", ")}. Run the command again with --retire to retire these keys${where}.`,
  );
}

async function retireKeys(database: Database, ring: KeyRing, source: KeySource): Promise<void> {
  if (source.kind === "file") {
    await sleep(Math.max(0, new KeyFile(source.path).changedAt() + SETTLE_MS - Date.now()));
    await resealAll(database, ring, () => undefined);
  }
  const unused = new Set(await retireUnused(database, ring.first.key_id));
  const retired = ring.keys.map(({ key_id }) => key_id).filter((id) => unused.has(id));
  if (retired.length === 0) return console.log("There are no unused keys to remove.");
  if (source.kind === "file") new KeyFile(source.path).remove(unused);
  const where =
    source.kind === "file" ? `Removed from ${source.path}.` : `Remove all retired keys from ${KEYS_VARIABLE}.`;
  console.log(`Retired ${retired.join(", ")}. ${where}`);
}
