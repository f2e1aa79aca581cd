import { setTimeout as wait } from "node:timers/promises";
import { newEncryptionKey } from "../../access/encryption/encryption-key.ts";
import { KeyFile } from "../../access/encryption/key-file.ts";
import type { KeyRing } from "../../access/encryption/key-ring.ts";
import { KEYS_VARIABLE, type KeySource, keySourceOf } from "../../access/encryption/key-source.ts";
import { checkKeys, openKeyRing } from "../../access/encryption/open-key-ring.ts";
import { countByKey, isUnfinished, resealAll, retireUnused } from "../../access/encryption/rotation.ts";
import { MIGRATIONS } from "../../app/compose/migrations.ts";
import { openDatabase } from "../../app/compose/open-data.ts";
import { type Flags, readStorageConfig } from "../../config/config.ts";
import type { Database } from "../../platform/database/database.ts";
import { migrate } from "../../platform/database/migrate.ts";
import { lockFile } from "../../platform/database/sqlite/folder-lock.ts";
import { createLog } from "../../platform/lib/log.ts";

export interface RotateFlags extends Flags {
  retire?: boolean;
}

/** A process that sealed a text just before the new key came has stored it within this time, or never will. */
const SETTLED_MS = 5_000;

/** Works beside services, and continues where another was ended. */
export async function rotateEncryption({ retire = false, ...flags }: RotateFlags): Promise<void> {
  const config = readStorageConfig(flags, process.env);
  const source = keySourceOf(config);
  const log = createLog(config.log_level);
  const database = openDatabase(config, "full", log);
  let unlock: (() => void) | undefined;
  try {
    await migrate(database, MIGRATIONS.agents);
    if (source.kind === "file" && new KeyFile(source.path).isReplaceable()) unlock = lockFile(source.path);
    // A key that was lost and has sealed nothing that is left keeps nobody from starting.
    if (retire) await retireUnused(database);
    const ring = await openKeyRing(database, source, log);
    if (source.kind === "file") await addKey(database, ring, new KeyFile(source.path));
    const left = await reseal(database, ring);
    if (retire) await retireKeys(database, ring, source);
    else await tellIdle(database, ring, source);
    if (left > 0) process.exitCode = 1;
  } finally {
    unlock?.();
    await database.close();
  }
}

/** Unless a rotation before this one put a new key in front and was ended before it was done. */
async function addKey(database: Database, ring: KeyRing, file: KeyFile): Promise<void> {
  if (await isUnfinished(database, ring)) {
    console.log(`Going on with ${ring.first.key_id}, which has not sealed everything yet.`);
    return;
  }
  // The file comes first: what the database knows and no file has would keep everybody from starting.
  file.prepend(newEncryptionKey());
  ring.followFile();
  await checkKeys(database, ring.keys, file.path);
  console.log(`Added the key ${ring.first.key_id} in front of ${file.path}.`);
}

async function reseal(database: Database, ring: KeyRing): Promise<number> {
  const refused = await resealAll(database, ring, ({ table, texts }) => console.log(`${table}: ${texts} sealed anew.`));
  for (const { message } of refused) console.error(message);
  if (refused.length === 0) console.log(`Everything is sealed with ${ring.first.key_id}.`);
  return refused.length;
}

async function tellIdle(database: Database, ring: KeyRing, source: KeySource): Promise<void> {
  const used = await countByKey(database);
  const idle = ring.keys.map(({ key_id }) => key_id).filter((id) => id !== ring.first.key_id && !used.has(id));
  if (idle.length === 0) return;
  const where = source.kind === "file" ? source.path : KEYS_VARIABLE;
  console.log(`Nothing is sealed with ${idle.join(", ")} any more: --retire lets them go from ${where}.`);
}

async function retireKeys(database: Database, ring: KeyRing, source: KeySource): Promise<void> {
  if (source.kind === "file") {
    await wait(Math.max(0, new KeyFile(source.path).changedAt() + SETTLED_MS - Date.now()));
    await resealAll(database, ring, () => undefined);
  }
  const unused = new Set(await retireUnused(database, ring.first.key_id));
  const retired = ring.keys.map(({ key_id }) => key_id).filter((id) => unused.has(id));
  if (retired.length === 0) return console.log("There is no key to retire.");
  if (source.kind === "file") new KeyFile(source.path).remove(unused);
  const where = source.kind === "file" ? `they are gone from ${source.path}` : `remove them from ${KEYS_VARIABLE}`;
  console.log(`Retired ${retired.join(", ")}: ${where}.`);
}
