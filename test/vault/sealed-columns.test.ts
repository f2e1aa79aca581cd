import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { generateEncryptionKey } from "../../src/access/encryption/encryption-key.ts";
import { KeyRing } from "../../src/access/encryption/key-ring.ts";
import {
  listSealedByOtherKeys,
  replaceSealed,
  SEALED_COLUMNS,
  type SealedColumn,
  type SealedText,
} from "../../src/access/storage/encryption-keys.ts";
import { findToken } from "../../src/access/storage/tokens.ts";
import { createLog } from "../../src/platform/lib/log.ts";
import { databases } from "../support/databases.ts";
import { openTestStorage, type TestStorage } from "../support/storage.ts";
import { insertSealedRows } from "./sealed-rows.ts";

const TOKENS = SEALED_COLUMNS.find(({ table }) => table === "oauth_tokens") as SealedColumn;

describe.each(databases)("sealed texts on %s", (name) => {
  let storage: TestStorage;
  const ring = new KeyRing([generateEncryptionKey()], undefined, createLog("silent"));
  beforeEach(async () => {
    storage = await openTestStorage(name);
    await insertSealedRows(storage.database, ring, 5);
  });
  afterEach(() => storage.close());

  it("are listed in order, from a row on, without those of one key", async () => {
    const { read } = storage.database;
    const all = await listSealedByOtherKeys(read, TOKENS, { key_id: "", after: "", limit: 10 });
    const ids = all.map(({ row_id }) => row_id);
    expect(ids).toEqual([...ids].sort());
    const [, second] = ids as [string, string];
    const rest = await listSealedByOtherKeys(read, TOKENS, { key_id: "", after: second, limit: 2 });
    expect(rest).toEqual(all.slice(2, 4));
    expect(await listSealedByOtherKeys(read, TOKENS, { key_id: ring.first.key_id, after: "", limit: 10 })).toEqual([]);
  });

  it("are replaced only if they have not changed in the meantime", async () => {
    const { database } = storage;
    const read = await listSealedByOtherKeys(database.read, TOKENS, { key_id: "", after: "", limit: 2 });
    const [changed, same] = read as [SealedText, SealedText];
    const { row_id: token_id, tenant_id } = changed;
    await database.write((tx) =>
      tx.run(tx.k.updateTable("oauth_tokens").set({ secret: "newer" }).where("token_id", "=", token_id)),
    );
    expect(await database.write((tx) => replaceSealed(tx, TOKENS, changed, "older"))).toBe(0);
    expect(await database.write((tx) => replaceSealed(tx, TOKENS, same, "anew"))).toBe(1);
    expect(await findToken(database.read, tenant_id, token_id)).toMatchObject({ secret: "newer" });
    expect(await findToken(database.read, tenant_id, same.row_id)).toMatchObject({ secret: "anew" });
  });
});
