import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { generateEncryptionKey, keyToBase64 } from "../../src/access/encryption/encryption-key.ts";
import { KeyFile } from "../../src/access/encryption/key-file.ts";
import type { KeyRing } from "../../src/access/encryption/key-ring.ts";
import { openKeyRing } from "../../src/access/encryption/open-key-ring.ts";
import { createLog } from "../../src/platform/lib/log.ts";
import { databases } from "../support/databases.ts";
import { freePort, runCli, startCli, startProcess } from "../support/process.ts";
import { openTestStorage, type TestStorage } from "../support/storage.ts";
import { insertSealedRows, openAll } from "./sealed-rows.ts";

/** Two batches of each table, and a bit. */
const ROWS = 450;
const TEXTS = 3 * ROWS;
const FAILPOINTS = "test/crash/failpoints.ts";

describe.each(databases)("a rotation on %s", (name) => {
  let storage: TestStorage;
  let ring: KeyRing;
  let old: string;
  let file: KeyFile;
  beforeEach(async () => {
    storage = await openTestStorage(name);
    file = new KeyFile(join(storage.at.data_dir, "encryption.keys"));
    file.create();
    ring = await openKeyRing(
      storage.database,
      { kind: "file", path: file.path, is_managed: true },
      createLog("silent"),
    );
    old = ring.first.key_id;
    await insertSealedRows(storage.database, ring, ROWS);
  });
  afterEach(() => storage.close());

  const where = () => ["--data", storage.at.data_dir, ...(storage.at.url ? ["--database-url", storage.at.url] : [])];
  const keysFrom = (): Record<string, string> =>
    name === "sqlite" ? {} : { THREADMILL_ENCRYPTION_KEYS_FILE: file.path };
  const rotate = (flags: string[] = [], env: Record<string, string> = {}, preload?: string) =>
    runCli(["keys", "rotate-encryption", ...where(), ...flags], { ...keysFrom(), ...env }, preload);
  const idsInFile = () => file.read().map(({ key_id }) => key_id);
  const openedBy = async () => (await openAll(storage.database, ring)).key_ids;

  it("puts a new key in front of the file and seals everything with it", async () => {
    const { status, stdout, stderr } = await rotate();
    const [fresh] = idsInFile();
    expect({ status, stderr, ids: idsInFile() }).toEqual({ status: 0, stderr: "", ids: [fresh, old] });
    expect(stdout.trim().split("\n")).toEqual([
      `Added key ${fresh} at the top of ${file.path}.`,
      ...["oauth_providers", "oauth_tokens", "oauth_flows"].flatMap((table) =>
        [200, 400, 450].map((texts) => `${table}: ${texts} secrets encrypted`),
      ),
      `All secrets are encrypted with key ${fresh}.`,
      `Keys no longer in use: ${old}. Run the command again with --retire to retire all unused keys and remove them from ${file.path}.`,
    ]);
    // The ring of a process that runs meets a key that it has never seen, and reads the file once more.
    expect(await openAll(storage.database, ring)).toEqual({ texts: TEXTS, key_ids: [fresh] });
  });

  it("removes the old key from file and database on request", async () => {
    const { status, stdout } = await rotate(["--retire"]);
    const [fresh] = idsInFile();
    expect({ status, ids: idsInFile() }).toEqual({ status: 0, ids: [fresh] });
    expect(stdout).toContain(`Retired ${old}. Removed from ${file.path}.`);
    expect(readFileSync(file.path, "utf8")).toContain("# Keep a backup");
    expect(readdirSync(storage.at.data_dir).filter((entry) => entry.endsWith(".tmp"))).toEqual([]);
    expect(await openedBy()).toEqual([fresh]);
    const server = await startProcess({
      config: "examples/langgraph.json",
      data: storage.at.data_dir,
      databaseUrl: storage.at.url,
      port: await freePort(),
      env: { THREADMILL_ENCRYPTION_KEYS: "", ...keysFrom() },
    });
    server.child.kill("SIGKILL");
    await server.ended;
  });

  it.each([
    ["right after the new key came", "after-new-key", 1],
    ["before the first batch is stored", "in-reseal", 1],
    ["in the middle of a table", "in-reseal", 2],
    ["in the last table", "in-reseal", 8],
  ])("that is killed %s leaves everything readable, and continues where it was", async (_, point, after) => {
    const env = { FAILPOINT: point, FAIL_AFTER: String(after) };
    expect((await rotate([], env, FAILPOINTS)).status).toBe(null);
    const [fresh] = idsInFile();
    expect(idsInFile()).toEqual([fresh, old]);
    expect((await openAll(storage.database, ring)).texts).toBe(TEXTS);
    const { status, stdout } = await rotate();
    expect(status).toBe(0);
    // No text was lost to a key that never was used; a half-done rotation brings no second new key.
    expect(idsInFile()).toEqual([fresh, old]);
    expect(stdout).toContain(`Continuing the interrupted rotation to key ${fresh}`);
    expect(await openAll(storage.database, ring)).toEqual({ texts: TEXTS, key_ids: [fresh] });
  });

  it("that is killed before a retired key is removed from the file removes it the next time", async () => {
    const env = { FAILPOINT: "before-key-removal" };
    expect((await rotate(["--retire"], env, FAILPOINTS)).status).toBe(null);
    const [fresh] = idsInFile();
    expect(idsInFile()).toEqual([fresh, old]);
    expect((await rotate(["--retire"])).status).toBe(0);
    const [newest] = idsInFile();
    expect(idsInFile()).toEqual([newest]);
    expect(await openedBy()).toEqual([newest]);
  });

  it("loses nothing that services write in the meantime, whatever key they have", async () => {
    const server = await startProcess({
      config: "examples/langgraph.json",
      data: storage.at.data_dir,
      databaseUrl: storage.at.url,
      port: await freePort(),
      env: { THREADMILL_ENCRYPTION_KEYS: "", ...keysFrom() },
    });
    const rotation = startCli(["keys", "rotate-encryption", "--retire", ...where()], { env: keysFrom() });
    const ended = once(rotation, "close");
    let written = 0;
    while (rotation.exitCode === null && rotation.signalCode === null) {
      await insertSealedRows(storage.database, ring, 1);
      written++;
    }
    expect((await ended)[0]).toBe(0);
    expect(written).toBeGreaterThan(10);
    const [fresh] = idsInFile();
    expect(idsInFile()).toEqual([fresh]);
    expect(await openAll(storage.database, ring)).toEqual({ texts: TEXTS + 3 * written, key_ids: [fresh] });
    expect((await fetch(`${server.url}/ok`)).status).toBe(200);
    server.child.kill("SIGKILL");
    await server.ended;
  });

  it("lists texts that it cannot decrypt, leaves them unchanged, and keeps their keys", async () => {
    const { database } = storage;
    const one = await database.read.first(database.read.k.selectFrom("oauth_tokens").selectAll().limit(1));
    const { token_id, secret } = one as { token_id: string; secret: string };
    const damaged = `${secret.slice(0, -4)}AAAA`;
    await database.write((tx) =>
      tx.run(tx.k.updateTable("oauth_tokens").set({ secret: damaged }).where("token_id", "=", token_id)),
    );
    const { status, stderr, stdout } = await rotate(["--retire"]);
    expect(status).toBe(1);
    expect(stderr).toMatch(new RegExp(`^error: Cannot decrypt oauth_tokens\\.secret of row ${token_id} in workspace `));
    expect(stderr + stdout).not.toContain(damaged.slice(12));
    expect(idsInFile()).toContain(old);
    const after = await database.read.first(
      database.read.k.selectFrom("oauth_tokens").selectAll().where("token_id", "=", token_id),
    );
    expect(after).toMatchObject({ secret: damaged });
    const before = idsInFile();
    expect((await rotate([])).stdout).toContain("Added key ");
    expect(idsInFile()).toHaveLength(before.length + 1);
  });

  it("with keys from the environment seals with the first, and reports which are no longer used", async () => {
    const fresh = generateEncryptionKey();
    const keys = [fresh, ring.first];
    const env = { THREADMILL_ENCRYPTION_KEYS: keys.map(keyToBase64).join(","), THREADMILL_ENCRYPTION_KEYS_FILE: "" };
    const first = await rotate([], env);
    expect(first.stdout).toContain(
      `Keys no longer in use: ${old}. Run the command again with --retire to retire all unused keys.`,
    );
    const { status, stdout } = await rotate(["--retire"], env);
    expect({ status, stdout }).toEqual({
      status: 0,
      stdout: expect.stringContaining(`Retired ${old}. Remove all retired keys from THREADMILL_ENCRYPTION_KEYS.`),
    });
    const isolated = { kind: "environment" as const, keys: [keyToBase64(fresh)] };
    const later = await openKeyRing(storage.database, isolated, createLog("silent"));
    expect(await openAll(storage.database, later)).toEqual({ texts: TEXTS, key_ids: [fresh.key_id] });
    expect(idsInFile()).toEqual([old]);
  });

  it("is one at a time", async () => {
    const runs = await Promise.all([rotate(), rotate(), rotate()]);
    for (const { status, stderr } of runs) {
      if (status !== 0)
        expect({ status, stderr }).toEqual({
          status: 2,
          stderr: expect.stringContaining("is being changed by process"),
        });
    }
    expect(runs.some(({ status }) => status === 0)).toBe(true);
    expect((await openAll(storage.database, ring)).texts).toBe(TEXTS);
    expect(await openedBy()).toEqual([idsInFile()[0]]);
  });

  it("--retire retires a lost key that no longer seals any value", async () => {
    const { database } = storage;
    for (const table of ["oauth_providers", "oauth_tokens", "oauth_flows"] as const)
      await database.write((tx) => tx.run(tx.k.deleteFrom(table)));
    file.prepend(generateEncryptionKey());
    file.remove(new Set([old]));
    expect(await rotate()).toMatchObject({
      status: 2,
      stderr: expect.stringContaining(`refers to the encryption key ${old}`),
    });
    expect(await rotate(["--retire"])).toMatchObject({ status: 0 });
    expect(await rotate()).toMatchObject({ status: 0 });
  });
});
