import { chmodSync, existsSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { sql } from "kysely";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { generateEncryptionKey, keyToBase64 } from "../../src/access/encryption/encryption-key.ts";
import { type KeySource, keySourceOf } from "../../src/access/encryption/key-source.ts";
import { openKeyRing } from "../../src/access/encryption/open-key-ring.ts";
import { createLog, type Log } from "../../src/platform/lib/log.ts";
import { placesOfSecrets } from "../support/canary.ts";
import { databases } from "../support/databases.ts";
import { freePort, runCli, startProcess } from "../support/process.ts";
import { openTestStorage, type TestStorage } from "../support/storage.ts";
import { insertSealedRows, openAll } from "./sealed-rows.ts";

const log = createLog("silent");
const fromEnvironment = (...keys: string[]): KeySource => ({ kind: "environment", keys });
const [A, B] = [keyToBase64(generateEncryptionKey()), keyToBase64(generateEncryptionKey())];

describe.each(databases)("encryption keys on %s", (name) => {
  let storage: TestStorage;
  let own: Extract<KeySource, { kind: "file" }>;
  beforeEach(async () => {
    storage = await openTestStorage(name);
    own = { kind: "file", path: join(storage.at.data_dir, "encryption.keys"), is_managed: true };
  });
  afterEach(() => storage.close());

  const open = (source: KeySource, to: Log = log) => openKeyRing(storage.database, source, to);
  const rows = () =>
    storage.database.read.all(storage.database.read.k.selectFrom("encryption_keys").selectAll().orderBy("key_id"));

  it("are registered in the database at the first start, and found again at the next", async () => {
    const { first } = await open(fromEnvironment(A));
    const known = await rows();
    expect(known).toMatchObject([{ key_id: first.key_id, retired_at: null }]);
    await open(fromEnvironment(A));
    expect(await rows()).toEqual(known);
  });

  it("that differ from those before are refused, and leave no trace", async () => {
    const { first } = await open(fromEnvironment(A));
    await expect(open(fromEnvironment(B))).rejects.toThrow(
      `refers to the encryption key ${first.key_id}, which THREADMILL_ENCRYPTION_KEYS does not contain`,
    );
    expect(await rows()).toHaveLength(1);
    await open(fromEnvironment(B, A));
    expect(await rows()).toHaveLength(2);
    // Now the new one must not be forgotten either.
    await expect(open(fromEnvironment(A))).rejects.toThrow("refers to the encryption key");
  });

  it("that differ between two first starts at once are refused to one of them", async () => {
    const starts = await Promise.allSettled([open(fromEnvironment(A)), open(fromEnvironment(B))]);
    expect(starts.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    expect(await rows()).toHaveLength(1);
  });

  it("whose check value was changed in the database are refused", async () => {
    const { first } = await open(fromEnvironment(A));
    const other = await open(fromEnvironment(A, B));
    const values = new Map((await rows()).map((row) => [row.key_id, row.check_value]));
    const b = other.keys[1]?.key_id as string;
    const { database } = storage;
    for (const check_value of ["nonsense", `${values.get(first.key_id)}A`, values.get(b) as string]) {
      await database.write((tx) =>
        tx.run(tx.k.updateTable("encryption_keys").set({ check_value }).where("key_id", "=", first.key_id)),
      );
      await expect(open(fromEnvironment(A, B))).rejects.toThrow(
        `The encryption key ${first.key_id} does not match its check value in the table encryption_keys`,
      );
    }
  });

  it("that were retired may be missing, and encrypt again when they are put in front", async () => {
    const [key_id] = (await open(fromEnvironment(A))).keys.map((key) => key.key_id);
    await storage.database.write((tx) => tx.run(sql`update encryption_keys set retired_at = 1`.compile(tx.k)));
    await open(fromEnvironment(B));
    await open(fromEnvironment(A, B));
    expect((await rows()).find((row) => row.key_id === key_id)).toMatchObject({ retired_at: null });
  });

  it("of the data folder are made by the first start and used by the next", async () => {
    const ring = await open(own);
    expect(statSync(own.path).mode & 0o777).toBe(0o600);
    await insertSealedRows(storage.database, ring, 3);
    expect(await openAll(storage.database, await open(own))).toEqual({ texts: 9, key_ids: [ring.first.key_id] });
  });

  it("of the data folder are the same when two first starts create them at once", async () => {
    const rings = await Promise.all([open(own), open(own), open(own)]);
    expect(new Set(rings.map(({ first }) => first.key_id)).size).toBe(1);
    expect(await rows()).toHaveLength(1);
  });

  it("of the data folder are not replaced after they were deleted", async () => {
    const { first } = await open(own);
    renameSync(own.path, `${own.path}.elsewhere`);
    await expect(open(own)).rejects.toThrow(
      new RegExp(
        `^The encryption key file ${own.path} does not exist, but .* uses the encryption key ${first.key_id}: restore the file .*\\.$`,
      ),
    );
    expect(existsSync(own.path)).toBe(false);
    renameSync(`${own.path}.elsewhere`, own.path);
    expect((await open(own)).first.key_id).toBe(first.key_id);
  });

  it("of the data folder that others may read are refused; of a configured file there is a warning", async () => {
    await open(own);
    chmodSync(own.path, 0o644);
    await expect(open(own)).rejects.toThrow(`run "chmod 600 ${own.path}"`);
    const warnings: string[] = [];
    await open({ ...own, is_managed: false }, {
      ...log,
      warn: (_fields: object, message: string) => warnings.push(message),
    } as unknown as Log);
    expect(warnings).toEqual(["encryption key file is readable by other users"]);
  });

  it("appear nowhere in the database in plain text, neither keys nor secrets", async () => {
    const ring = await open(fromEnvironment(A));
    await insertSealedRows(storage.database, ring, 2);
    expect(await placesOfSecrets(storage.at, ["canary-", A, Buffer.from(A, "base64").toString("hex")])).toEqual([]);
    // The look itself works: what is in the clear is found.
    expect(await placesOfSecrets(storage.at, ["https://example.com/t"])).toEqual([
      ...(name === "sqlite" ? [expect.stringMatching(/threadmill\.db/)] : ["oauth_providers"]),
    ]);
  });
});

describe("the source of the keys", () => {
  const settings = { encryption_keys: [], encryption_keys_file: undefined, data_dir: "/data", database_url: undefined };

  it.each<[string, object, object]>([
    ["the environment", { encryption_keys: [A, B] }, { kind: "environment", keys: [A, B] }],
    ["a file", { encryption_keys_file: "/keys" }, { kind: "file", path: "/keys", is_managed: false }],
    [
      "a file, on Postgres",
      { encryption_keys_file: "/keys", database_url: "postgres://h/d" },
      { path: "/keys", is_managed: false },
    ],
    ["the data folder", {}, { kind: "file", path: join("/data", "encryption.keys"), is_managed: true }],
  ])("is %s", (_, given, source) => {
    expect(keySourceOf({ ...settings, ...given })).toMatchObject(source);
  });

  it("is only one of these", () => {
    expect(() => keySourceOf({ ...settings, encryption_keys: [A], encryption_keys_file: "/keys" })).toThrow(
      "set only one of them",
    );
  });
});

describe("a start", () => {
  const config = ["--config", "examples/langgraph.json", "--port", "0"];

  it.each(databases)("on %s refuses invalid keys, in one sentence and with status 2", async (name) => {
    const { at, close } = await openTestStorage(name);
    const where = ["--data", at.data_dir, ...(at.url ? ["--database-url", at.url] : [])];
    for (const command of ["serve", "dev"]) {
      const env = { THREADMILL_ENCRYPTION_KEYS: `${A},${A.slice(4)}` };
      const { status, stderr } = await runCli([command, ...config, ...where], env);
      expect({ status, stderr }).toEqual({
        status: 2,
        stderr:
          'error: THREADMILL_ENCRYPTION_KEYS: key 2 is not a 32-byte key in base64. Generate a key with "openssl rand -base64 32".\n',
      });
    }
    await close();
  });

  it.runIf(databases.includes("postgres"))("on Postgres needs a key, and states how to create one", async () => {
    const { at, close } = await openTestStorage("postgres");
    const { status, stderr } = await runCli(["serve", ...config, "--database-url", at.url as string]);
    expect(status).toBe(2);
    expect(stderr.trim().split("\n")).toEqual([
      expect.stringMatching(/THREADMILL_ENCRYPTION_KEYS .*openssl rand -base64 32/),
    ]);
    expect((await runCli(["migrate", "--database-url", at.url as string])).status).toBe(0);
    await close();
  });

  it("on SQLite creates a key, and needs it from then on", async () => {
    const { at, close } = await openTestStorage("sqlite");
    const keys = join(at.data_dir, "encryption.keys");
    const server = await startProcess({ config: "examples/langgraph.json", data: at.data_dir, port: await freePort() });
    expect(readFileSync(keys, "utf8")).toMatch(/^[\w+/]{43}=$/m);
    server.child.kill("SIGTERM");
    await server.ended;
    rmSync(keys);
    const missing = await runCli(["serve", ...config, "--data", at.data_dir]);
    expect({ status: missing.status, stderr: missing.stderr }).toEqual({
      status: 2,
      stderr: expect.stringMatching(
        /^error: The encryption key file .*encryption\.keys does not exist, but .* restore the file from a backup\.\n$/,
      ),
    });
    writeFileSync(keys, keyToBase64(generateEncryptionKey()), { mode: 0o600 });
    const other = await runCli(["serve", ...config, "--data", at.data_dir]);
    expect([other.status, other.stderr]).toEqual([2, expect.stringContaining("refers to the encryption key")]);
    await close();
  });
});
