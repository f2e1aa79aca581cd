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
import { type EncryptionKey, parseEncryptionKey, ringOf } from "./encryption-key.ts";
import { KeyFile } from "./key-file.ts";
import { KeyRing, openWith, sealWith } from "./key-ring.ts";
import { KEYS_VARIABLE, type KeySource } from "./key-source.ts";
import type { Place } from "./seal.ts";

/**
 * Opens the encryption keys and checks them against the database, which must be migrated. Whatever does not fit ends the start:
 * with another key nothing that is sealed could be read, and what is sealed anew would be lost with that key.
 *
 * @param source.own the file is made when there is none and the database has met no key
 * @throws ConfigError in one sentence that holds no key
 */
export async function openKeyRing(database: Database, source: KeySource, log: Log): Promise<KeyRing> {
  if (source.kind === "environment") {
    const keys = source.keys.map((text, index) => parseEncryptionKey(text, `${KEYS_VARIABLE}: key ${index + 1}`));
    await checkKeys(database, ringOf(keys, KEYS_VARIABLE), KEYS_VARIABLE);
    return new KeyRing(keys, undefined, log);
  }
  const file = new KeyFile(source.path);
  if (source.own && !file.exists()) await makeFile(database, file);
  const keys = file.read();
  if (file.isOpenToOthers()) complain(source, log);
  await checkKeys(database, keys, source.path);
  return new KeyRing(keys, file, log);
}

async function makeFile(database: Database, file: KeyFile): Promise<void> {
  const known = (await listEncryptionKeys(database.read)).filter((row) => row.retired_at === null);
  // Another start may have made it by now. It did so before it told the database, so this look comes second.
  if (file.exists()) return;
  if (known.length > 0) {
    throw new ConfigError(
      `The file ${file.path} is gone, but ${database.description} has met ${idsOf(known)} of it, and secrets in it may be sealed with that: put the file back.`,
    );
  }
  file.create();
}

/** A file of one's own is put right with a word; what mounts a configured one may not know other rights. */
function complain({ path, own }: Extract<KeySource, { kind: "file" }>, log: Log): void {
  const sentence = `Others than the owner may read the encryption keys in ${path}: run "chmod 600 ${path}".`;
  if (own) throw new ConfigError(sentence);
  log.warn(sentence);
}

/** What each key has sealed for the database to know it by. */
const CHECK_TEXT = "threadmill";

const checkPlaceOf = (key_id: string): Place => ({
  tenant_id: "",
  table: "encryption_keys",
  row_id: key_id,
  column: "check_value",
});

/**
 * Compares keys with those that the database has met, and makes them known to it.
 *
 * @param where for the sentences of errors
 */
export async function checkKeys(database: Database, keys: readonly EncryptionKey[], where: string): Promise<void> {
  await database.write(async (tx) => {
    await lockEncryptionKeys(tx);
    const rows = new Map((await listEncryptionKeys(tx)).map((row) => [row.key_id, row]));
    const ids = new Set(keys.map(({ key_id }) => key_id));
    const missing = [...rows.values()].filter((row) => row.retired_at === null && !ids.has(row.key_id));
    if (missing.length > 0) {
      throw new ConfigError(
        `${database.description} has met ${idsOf(missing)}, which ${where} does not have: put the key back, after the one that is to encrypt, or let it go with "threadmill keys rotate-encryption --retire" if nothing is sealed with it any more.`,
      );
    }
    for (const key of keys) await checkKey(tx, key, rows.get(key.key_id));
    const [first] = keys;
    if (first && rows.get(first.key_id)?.retired_at != null) await unretireEncryptionKey(tx, first.key_id);
  });
}

async function checkKey(tx: Tx, key: EncryptionKey, row: EncryptionKeyRow | undefined): Promise<void> {
  const place = checkPlaceOf(key.key_id);
  if (!row) {
    await insertEncryptionKey(tx, { key_id: key.key_id, check_value: sealWith(key, CHECK_TEXT, place) });
    return;
  }
  if (!opensTo(CHECK_TEXT, key, row.check_value, place)) {
    throw new ConfigError(
      `The check value of the encryption key ${key.key_id} was changed in the database (table encryption_keys): put back the database that belongs to this key.`,
    );
  }
}

function opensTo(text: string, key: EncryptionKey, sealed: string, place: Place): boolean {
  try {
    return openWith(key, sealed, place) === text;
  } catch {
    return false;
  }
}

const idsOf = (rows: readonly { key_id: string }[]): string =>
  `the encryption key${rows.length > 1 ? "s" : ""} ${rows.map(({ key_id }) => key_id).join(", ")}`;
