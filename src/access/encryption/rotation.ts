import type { Database } from "../../platform/database/database.ts";
import {
  countSealed,
  listEncryptionKeys,
  listSealedByOtherKeys,
  replaceSealed,
  retireEncryptionKey,
  SEALED_COLUMNS,
  type SealedColumn,
  type SealedText,
} from "../storage/encryption-keys.ts";
import type { KeyRing } from "./key-ring.ts";
import { SealError } from "./seal.ts";

/** Texts per transaction. A batch takes 40 ms on Postgres, so other writes wait only briefly. */
const BATCH_SIZE = 200;

export interface RotationProgress {
  table: SealedColumn["table"];
  /** Number of the table's values that were re-encrypted. */
  texts: number;
}

/**
 * Whether a value is still sealed with a key other than the first, for example after an interrupted rotation. Values that cannot be opened
 * do not count, because no rotation can change them.
 */
export async function isRotationPending(database: Database, ring: KeyRing): Promise<boolean> {
  for (const column of SEALED_COLUMNS)
    for await (const texts of sealedByOtherKeys(database, ring, column))
      if (texts.some((text) => reseal(ring, column, text, []).length > 0)) return true;
  return false;
}

/**
 * Reseals the texts of all other keys with the first key. Safe to run while services run and to repeat after an interruption:
 * a text is replaced only if it has not changed since it was read.
 *
 * @returns an error for each text that could not be opened and stays unchanged
 */
export async function resealAll(
  database: Database,
  ring: KeyRing,
  onProgress: (progress: RotationProgress) => void,
): Promise<SealError[]> {
  const texts: Record<string, number> = {};
  for (;;) {
    let changed = 0;
    const errors: SealError[] = [];
    for (const column of SEALED_COLUMNS) {
      for await (const batch of resealColumn(database, ring, column)) {
        changed += batch.changed;
        errors.push(...batch.errors);
        texts[column.table] = (texts[column.table] ?? 0) + batch.changed;
        onProgress({ table: column.table, texts: texts[column.table] as number });
      }
    }
    // Another process may have sealed texts with an old key during this pass.
    if (changed === 0) return errors;
  }
}

async function* sealedByOtherKeys(database: Database, ring: KeyRing, column: SealedColumn) {
  const { key_id } = ring.first;
  for (let after = ""; ; ) {
    const found = await listSealedByOtherKeys(database.read, column, { key_id, after, limit: BATCH_SIZE });
    const last = found.at(-1);
    if (!last) return;
    after = last.row_id;
    yield found;
  }
}

async function* resealColumn(database: Database, ring: KeyRing, column: SealedColumn) {
  for await (const found of sealedByOtherKeys(database, ring, column)) {
    const errors: SealError[] = [];
    const resealed = found.flatMap((text) => reseal(ring, column, text, errors));
    const changed = await database.write(async (tx) => {
      let rows = 0;
      for (const [text, new_sealed] of resealed) rows += await replaceSealed(tx, column, text, new_sealed);
      return rows;
    });
    yield { changed, errors };
  }
}

function reseal(
  ring: KeyRing,
  { table, column }: SealedColumn,
  text: SealedText,
  errors: SealError[],
): [SealedText, string][] {
  const aad = { tenant_id: text.tenant_id, table, row_id: text.row_id, column };
  try {
    return [[text, ring.seal(ring.open(text.sealed, aad), aad)]];
  } catch (error) {
    if (!(error instanceof SealError)) throw error;
    errors.push(error);
    return [];
  }
}

/** Returns the number of sealed texts by key ID. */
export async function countByKey(database: Pick<Database, "read">): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (const column of SEALED_COLUMNS) {
    for (const { key_id, texts } of await countSealed(database.read, column)) {
      counts.set(key_id, (counts.get(key_id) ?? 0) + texts);
    }
  }
  return counts;
}

/** Retires the keys without sealed texts, except the key `except`, and returns their ids. A service can start without a retired key. */
export function retireUnused(database: Database, except?: string): Promise<string[]> {
  return database.write(async (tx) => {
    const used = await countByKey({ read: tx });
    const unused = (await listEncryptionKeys(tx)).filter(({ key_id }) => key_id !== except && !used.has(key_id));
    for (const { key_id } of unused) await retireEncryptionKey(tx, key_id);
    return unused.map(({ key_id }) => key_id);
  });
}
