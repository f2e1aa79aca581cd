import type { Database } from "../../platform/database/database.ts";
import { listEncryptionKeys, retireEncryptionKey } from "../storage/encryption-keys.ts";
import {
  countSealed,
  listSealedByOthers,
  replaceSealed,
  SEALED_COLUMNS,
  type SealedColumn,
  type SealedText,
} from "../storage/sealed-columns.ts";
import type { KeyRing } from "./key-ring.ts";
import { SealError } from "./seal.ts";

/** Texts a transaction: 40 ms on Postgres, so that no request waits for long. */
const BATCH = 200;

/** How far a rotation is. */
export interface Progress {
  table: SealedColumn["table"];
  /** Of this table, so far. */
  texts: number;
}

/** Whether a text is left that another key than the first has sealed: a rotation has not come to its end. */
export async function isUnfinished(database: Database, ring: KeyRing): Promise<boolean> {
  const which = { key_id: ring.first.key_id, after: "", limit: 1 };
  for (const column of SEALED_COLUMNS) {
    if ((await listSealedByOthers(database.read, column, which)).length > 0) return true;
  }
  return false;
}

/**
 * Seals with the first key whatever another one has sealed. May run beside services, and again after it was ended at any point:
 * each text is replaced on the condition that nobody has changed it meanwhile.
 *
 * @returns the texts that could not be opened; they stay as they are
 */
export async function resealAll(
  database: Database,
  ring: KeyRing,
  onProgress: (progress: Progress) => void,
): Promise<SealError[]> {
  const texts: Record<string, number> = {};
  for (;;) {
    let changed = 0;
    const refused: SealError[] = [];
    for (const column of SEALED_COLUMNS) {
      for await (const batch of resealColumn(database, ring, column)) {
        changed += batch.changed;
        refused.push(...batch.refused);
        texts[column.table] = (texts[column.table] ?? 0) + batch.changed;
        onProgress({ table: column.table, texts: texts[column.table] as number });
      }
    }
    // What was sealed with the old key behind the back of this pass is found by the next one.
    if (changed === 0) return refused;
  }
}

async function* resealColumn(database: Database, ring: KeyRing, column: SealedColumn) {
  const { key_id } = ring.first;
  for (let after = ""; ; ) {
    const found = await listSealedByOthers(database.read, column, { key_id, after, limit: BATCH });
    const last = found.at(-1);
    if (!last) return;
    after = last.row_id;
    const refused: SealError[] = [];
    const anew = found.flatMap((text) => reseal(ring, column, text, refused) ?? []);
    const changed = await database.write(async (tx) => {
      let rows = 0;
      for (const [text, sealed_anew] of anew) rows += await replaceSealed(tx, column, text, sealed_anew);
      return rows;
    });
    yield { changed, refused };
  }
}

function reseal(
  ring: KeyRing,
  { table, column }: SealedColumn,
  text: SealedText,
  refused: SealError[],
): [SealedText, string][] | undefined {
  const place = { tenant_id: text.tenant_id, table, row_id: text.row_id, column };
  try {
    return [[text, ring.seal(ring.open(text.sealed, place), place)]];
  } catch (error) {
    if (!(error instanceof SealError)) throw error;
    refused.push(error);
    return undefined;
  }
}

/** How many texts each key has sealed. */
export async function countByKey(database: Pick<Database, "read">): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (const column of SEALED_COLUMNS) {
    for (const { key_id, texts } of await countSealed(database.read, column)) {
      counts.set(key_id, (counts.get(key_id) ?? 0) + texts);
    }
  }
  return counts;
}

/**
 * Marks keys as retired that have sealed nothing that is left. A start may do without them from now on.
 *
 * @param keep the one that encrypts, which has its use before it
 * @returns the ids of all keys, besides that one, that nothing is sealed with
 */
export function retireUnused(database: Database, keep?: string): Promise<string[]> {
  return database.write(async (tx) => {
    const used = await countByKey({ read: tx });
    const idle = (await listEncryptionKeys(tx)).filter(({ key_id }) => key_id !== keep && !used.has(key_id));
    for (const { key_id } of idle) await retireEncryptionKey(tx, key_id);
    return idle.map(({ key_id }) => key_id);
  });
}
