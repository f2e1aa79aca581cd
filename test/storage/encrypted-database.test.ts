import { createCipheriv, createDecipheriv, randomBytes, randomUUID } from "node:crypto";
import { sql } from "kysely";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { ENCRYPTED_TABLES } from "../../src/agent-server/encryption.ts";
import { insertThread, lockThread, patchThread } from "../../src/agent-server/storage/threads.ts";
import type { Database } from "../../src/platform/database/database.ts";
import {
  encryptDatabase,
  inEncryptionContext,
  type ValueEncryption,
} from "../../src/platform/database/encrypted-database.ts";
import { ApiError } from "../../src/platform/errors.ts";
import { databases } from "../support/databases.ts";
import { openTestStorage, type TestStorage } from "../support/storage.ts";

const TENANT = randomUUID();
const KEY = randomBytes(32);

/** Encrypts whole values with AES-GCM; the context is part of the authenticated data. */
class Aes implements ValueEncryption {
  readonly tables = ENCRYPTED_TABLES;
  /** The values of each call. */
  readonly calls: string[][] = [];
  isBroken = false;

  async encrypt(values: Parameters<ValueEncryption["encrypt"]>[0], context: string): Promise<string[]> {
    this.calls.push(values.map(({ model, field, text }) => `${model}.${field} ${text}`));
    if (this.isBroken) throw new ApiError("encryption_failed", { reason: "There is no key." });
    return values.map(({ text }) => {
      const nonce = randomBytes(12);
      const cipher = createCipheriv("aes-256-gcm", KEY, nonce).setAAD(Buffer.from(context));
      const body = Buffer.concat([cipher.update(text), cipher.final(), cipher.getAuthTag()]);
      return `\u0001${Buffer.from(context).toString("hex")}.${Buffer.concat([nonce, body]).toString("hex")}`;
    });
  }

  async decrypt(values: Parameters<ValueEncryption["decrypt"]>[0]) {
    return values.map(({ field, text: stored }) => {
      const [context, data] = stored
        .slice(1)
        .split(".")
        .map((part) => Buffer.from(part, "hex")) as [Buffer, Buffer];
      try {
        const decipher = createDecipheriv("aes-256-gcm", KEY, data.subarray(0, 12)).setAAD(context);
        decipher.setAuthTag(data.subarray(-16));
        const text = Buffer.concat([decipher.update(data.subarray(12, -16)), decipher.final()]).toString();
        return { text, context: context.toString() };
      } catch {
        return { error: new ApiError("encryption_failed", { reason: `${field} cannot be decrypted.` }) };
      }
    });
  }
}

describe.each(databases)("an encrypted database on %s", (name) => {
  let storage: TestStorage;
  let aes: Aes;
  let database: Database;
  beforeAll(async () => {
    storage = await openTestStorage(name);
    aes = new Aes();
    database = encryptDatabase(storage.database, aes);
  });
  afterAll(() => storage.close());
  afterEach(() => {
    aes.isBroken = false;
    aes.calls.length = 0;
  });

  const newThread = async (metadata: object): Promise<string> => {
    const thread_id = randomUUID();
    const row = { thread_id, tenant_id: TENANT, metadata: JSON.stringify(metadata), hidden: 0 };
    expect((await database.write((tx) => insertThread(tx, row)))?.metadata).toBe(row.metadata);
    return thread_id;
  };
  const stored = async (thread_id: string): Promise<string> => {
    const { read } = storage.database;
    const row = await read.first(read.k.selectFrom("threads").select("metadata").where("thread_id", "=", thread_id));
    return row?.metadata as string;
  };
  const metadataOf = async (thread_id: string) => {
    const row = await database.read.first(
      database.read.k.selectFrom("threads").select("metadata").where("thread_id", "=", thread_id),
    );
    return row && JSON.parse(row.metadata);
  };

  it("encrypts inserted and updated values, and returns them as they were", async () => {
    const thread_id = await newThread({ note: "heron" });
    expect(await stored(thread_id)).not.toMatch(/heron|egret/);
    expect(await metadataOf(thread_id)).toEqual({ note: "heron" });
    const patched = await database.write((tx) => patchThread(tx, thread_id, { metadata: '{"note":"egret"}' }));
    expect(patched.metadata).toBe('{"note":"egret"}');
    expect(await stored(thread_id)).not.toMatch(/heron|egret/);
    expect(await metadataOf(thread_id)).toEqual({ note: "egret" });
  });

  it("encrypts all values of a transaction with one call, and gives its repetition the same ids", async () => {
    const ids: string[] = [];
    await database.write(async (tx) => {
      ids.push(tx.newId(), tx.newId());
      for (const thread_id of ids.slice(-2))
        await insertThread(tx, { thread_id, tenant_id: TENANT, metadata: `{"id":"${thread_id}"}`, hidden: 0 });
    });
    const [first, second] = ids as [string, string];
    expect(first).not.toBe(second);
    expect(ids).toEqual([first, second, first, second]);
    expect(aes.calls).toEqual([[first, second].map((id) => `thread.metadata {"id":"${id}"}`)]);
    expect(await metadataOf(second)).toEqual({ id: second });
  });

  it("commits a transaction whose values differ in each repetition once", async () => {
    const thread_id = randomUUID();
    let passes = 0;
    const inserted = await database.write(async (tx) => {
      const metadata = JSON.stringify({ pass: ++passes });
      return insertThread(tx, { thread_id, tenant_id: TENANT, metadata, hidden: 0 });
    });
    expect(inserted?.metadata).toBe(`{"pass":${passes}}`);
    expect(await metadataOf(thread_id)).toEqual({ pass: passes });
  });

  it("stores nothing of a transaction whose values cannot be encrypted", async () => {
    const thread_id = await newThread({ note: "heron" });
    const before = await stored(thread_id);
    aes.isBroken = true;
    const other_id = randomUUID();
    const failed = database.write(async (tx) => {
      await tx.run(tx.k.updateTable("threads").set({ hidden: 1 }).where("thread_id", "=", thread_id));
      return insertThread(tx, { thread_id: other_id, tenant_id: TENANT, metadata: '{"note":"egret"}', hidden: 0 });
    });
    await expect(failed).rejects.toThrow("There is no key.");
    const { read } = storage.database;
    const rows = await read.all(
      read.k
        .selectFrom("threads")
        .select(["thread_id", "hidden", "metadata"])
        .where("thread_id", "in", [thread_id, other_id]),
    );
    expect(rows).toEqual([{ thread_id, hidden: 0, metadata: before }]);
  });

  it("keeps the encryption context of a row that is changed without one", async () => {
    const context = JSON.stringify({ tenant: "acme" });
    const thread_id = await inEncryptionContext(context, () => newThread({ note: "heron" }));
    await database.write(async (tx) => {
      const thread = await lockThread(tx, TENANT, thread_id);
      await patchThread(tx, thread_id, {
        metadata: JSON.stringify({ ...JSON.parse(thread?.metadata as string), b: 1 }),
      });
    });
    expect(Buffer.from((await stored(thread_id)).slice(1).split(".")[0] as string, "hex").toString()).toBe(context);
    expect(await metadataOf(thread_id)).toEqual({ note: "heron", b: 1 });
  });

  it("throws when a value that cannot be decrypted is used, not when its row is locked", async () => {
    const thread_id = await newThread({ note: "heron" });
    const changed = `${(await stored(thread_id)).slice(0, -1)}x`;
    await storage.database.write((tx) =>
      tx.run(tx.k.updateTable("threads").set({ metadata: changed }).where("thread_id", "=", thread_id)),
    );
    await expect(metadataOf(thread_id)).rejects.toThrow("cannot be decrypted");
    const lock = (use: (metadata: () => string) => unknown) =>
      database.write(async (tx) => {
        const thread = await lockThread(tx, TENANT, thread_id);
        return use(() => thread?.metadata as string);
      });
    expect(await lock(() => "locked")).toBe("locked");
    await expect(lock((metadata) => metadata())).rejects.toThrow("cannot be decrypted");
  });

  it("refuses to set an encrypted column to an expression, whose value it cannot encrypt", async () => {
    const thread_id = await newThread({ note: "heron" });
    const setTo = (metadata: never) =>
      database.write((tx) => tx.run(tx.k.updateTable("threads").set({ metadata }).where("thread_id", "=", thread_id)));
    await expect(setTo(sql`metadata || 'x'` as never)).rejects.toThrow("thread.metadata is encrypted");
    await expect(setTo(sql.lit("{}") as never)).rejects.toThrow("thread.metadata is encrypted");
    expect(await metadataOf(thread_id)).toEqual({ note: "heron" });
  });
});
