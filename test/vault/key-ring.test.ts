import { randomBytes } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  generateEncryptionKey,
  keyFromBytes,
  keyToBase64,
  parseEncryptionKey,
} from "../../src/access/encryption/encryption-key.ts";
import { KeyFile } from "../../src/access/encryption/key-file.ts";
import { KeyRing } from "../../src/access/encryption/key-ring.ts";
import { type AadContext, SealError } from "../../src/access/encryption/seal.ts";
import { createLog } from "../../src/platform/lib/log.ts";

const log = createLog("silent");
const AAD: AadContext = { tenant_id: "t1", table: "oauth_tokens", row_id: "r1", column: "secret" };
const SECRET = "gho_canary-7f3a9c";

const ringWith = (...keys: ReturnType<typeof generateEncryptionKey>[]) => new KeyRing(keys, undefined, log);

describe("a sealed text", () => {
  const ring = ringWith(generateEncryptionKey());

  it.each(["", "a", SECRET, "ünïcödé 🎈 \0", "x".repeat(100_000)])("opens to what was sealed (%#)", (text) => {
    expect(ring.open(ring.seal(text, AAD), AAD)).toBe(text);
  });

  it("contains the id of its key and no plain text", () => {
    const sealed = ring.seal(SECRET, AAD);
    expect(sealed).toMatch(new RegExp(`^v1\\.${ring.first.key_id}\\.[A-Za-z0-9_-]+$`));
    expect(Buffer.from(sealed.split(".")[2] as string, "base64url").toString("latin1")).not.toContain("gho");
    expect(sealed).not.toContain("gho");
  });

  it("differs each time, so that equal secrets cannot be recognized", () => {
    const sealed = new Set(Array.from({ length: 100 }, () => ring.seal(SECRET, AAD)));
    expect(sealed.size).toBe(100);
  });

  it("does not open when any letter of it was changed, dropped or added", () => {
    const sealed = ring.seal(SECRET, AAD);
    for (let at = 0; at < sealed.length; at++) {
      for (const letter of ["A", "B", "_", "0", ".", "="]) {
        if (sealed[at] === letter) continue;
        const changed = sealed.slice(0, at) + letter + sealed.slice(at + 1);
        expect(() => ring.open(changed, AAD), changed).toThrow(SealError);
      }
      const shorter = sealed.slice(0, at) + sealed.slice(at + 1);
      if (shorter !== sealed) expect(() => ring.open(shorter, AAD), shorter).toThrow(SealError);
    }
    for (const changed of [
      `${sealed}A`,
      `${sealed}=`,
      `${sealed} `,
      ` ${sealed}`,
      sealed.toUpperCase(),
      "",
      "v1..",
      SECRET,
    ])
      expect(() => ring.open(changed, AAD), changed).toThrow(SealError);
  });

  it("does not open when any bit of it was changed", () => {
    const [version, key_id, text] = ring.seal(SECRET, AAD).split(".") as [string, string, string];
    const bytes = Buffer.from(text, "base64url");
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const changed = Buffer.from(bytes);
      changed[bit >> 3] = (changed[bit >> 3] as number) ^ (1 << (bit & 7));
      expect(() => ring.open(`${version}.${key_id}.${changed.toString("base64url")}`, AAD)).toThrow(SealError);
    }
  });

  it.each<[string, Partial<AadContext>]>([
    ["workspace", { tenant_id: "t2" }],
    ["table", { table: "oauth_providers" }],
    ["row", { row_id: "r2" }],
    ["column", { column: "client_secret" }],
    ["place whose parts join to the same text", { table: "oauth_tokensr", row_id: "1" }],
    ["place whose parts are quoted to the same text", { tenant_id: 't1","oauth_tokens', table: "r1" }],
  ])("does not open in another %s", (_, other) => {
    const sealed = ring.seal(SECRET, AAD);
    expect(() => ring.open(sealed, { ...AAD, ...other })).toThrow(SealError);
  });

  it("does not open under the id of another key", () => {
    const other = generateEncryptionKey();
    const both = ringWith(ring.first, other);
    const moved = both.seal(SECRET, AAD).replace(ring.first.key_id, other.key_id);
    expect(() => both.open(moved, AAD)).toThrow(SealError);
  });

  it("is refused with its row and key, and without any of its text", () => {
    const sealed = ring.seal(SECRET, AAD);
    const refusal = (() => {
      try {
        ringWith(generateEncryptionKey()).open(sealed, AAD);
      } catch (error) {
        return error as SealError;
      }
    })() as SealError;
    expect(refusal).toMatchObject({ aad: AAD, key_id: ring.first.key_id });
    expect(refusal.message).toBe(
      `Cannot decrypt oauth_tokens.secret of row r1 in workspace t1: the encryption key ${ring.first.key_id} is not configured.`,
    );
    expect(JSON.stringify(refusal)).not.toContain(sealed.split(".")[2]);
  });
});

describe("a ring", () => {
  it("seals with its first key and opens with all", () => {
    const [a, b] = [generateEncryptionKey(), generateEncryptionKey()];
    const old = ringWith(a).seal(SECRET, AAD);
    const ring = ringWith(b, a);
    expect(ring.open(old, AAD)).toBe(SECRET);
    expect(ring.seal(SECRET, AAD)).toContain(`.${b.key_id}.`);
  });

  it("gives a key the same id everywhere, and different keys different ids", () => {
    const bytes = randomBytes(32);
    expect(keyFromBytes(bytes).key_id).toBe(parseEncryptionKey(bytes.toString("base64"), "x").key_id);
    expect(keyFromBytes(Buffer.alloc(32, 1)).key_id).toMatch(/^[0-9a-f]{8}$/);
    expect(keyFromBytes(Buffer.alloc(32, 1)).key_id).not.toBe(keyFromBytes(Buffer.alloc(32, 2)).key_id);
  });

  it.each([
    ["too short", Buffer.alloc(31, 1).toString("base64")],
    ["too long", Buffer.alloc(33, 1).toString("base64")],
    ["hex", Buffer.alloc(32, 1).toString("hex")],
    ["with a typing error", `!${Buffer.alloc(32, 1).toString("base64").slice(1)}`],
    ["a password", "correct horse battery staple"],
  ])("refuses a key that is %s, and does not repeat it", (_, text) => {
    expect(() => parseEncryptionKey(text, "KEYS: key 1")).toThrow(
      'KEYS: key 1 is not a 32-byte key in base64. Generate a key with "openssl rand -base64 32".',
    );
  });
});

describe("a file of keys", () => {
  let folder: string;
  let file: KeyFile;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "threadmill-keys-"));
    file = new KeyFile(join(folder, "encryption.keys"));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it("is made with a key that only its owner can read, and with nothing left beside it", () => {
    file.create();
    expect(file.read()).toHaveLength(1);
    expect(statSync(file.path).mode & 0o777).toBe(0o600);
    expect(readdirSync(folder)).toEqual(["encryption.keys"]);
  });

  it("that another process created at the same moment is used", () => {
    file.create();
    const [first] = file.read();
    new KeyFile(file.path).create();
    expect(file.read().map(({ key_id }) => key_id)).toEqual([first?.key_id]);
    expect(readdirSync(folder)).toEqual(["encryption.keys"]);
  });

  it("may have comments and blank lines, which stay when keys are added and removed", () => {
    const [a, b] = [generateEncryptionKey(), generateEncryptionKey()];
    writeFileSync(file.path, `# mine\n\n  ${keyToBase64(a)}  \n# end`, { mode: 0o640 });
    file.prepend(b);
    expect(file.read().map(({ key_id }) => key_id)).toEqual([b.key_id, a.key_id]);
    file.remove(new Set([a.key_id]));
    expect(readFileSync(file.path, "utf8")).toBe(`# mine\n\n${keyToBase64(b)}\n# end`);
    expect(statSync(file.path).mode & 0o777).toBe(0o640);
    expect(readdirSync(folder)).toEqual(["encryption.keys"]);
  });

  it.each([
    ["nothing", "# no key\n", /encryption\.keys contains no encryption key/],
    ["something else", "# one\nnot a key\n", /encryption\.keys: line 2 is not a 32-byte key/],
  ])("with %s is refused", (_, text, sentence) => {
    writeFileSync(file.path, text);
    expect(() => file.read()).toThrow(sentence);
  });

  it("that is not there is refused", () => {
    expect(() => file.read()).toThrow(/Cannot read the encryption key file .*encryption\.keys \(ENOENT\)/);
  });

  it("is followed by the rings that use it: they seal with its new key and open what it has sealed", () => {
    file.create();
    const [one, two] = [0, 1].map(() => {
      const own = new KeyFile(file.path);
      return new KeyRing(own.read(), own, log);
    }) as [KeyRing, KeyRing];
    const fresh = generateEncryptionKey();
    file.prepend(fresh);
    const sealed = one.seal(SECRET, AAD);
    expect(sealed).toContain(`.${fresh.key_id}.`);
    expect(two.open(sealed, AAD)).toBe(SECRET);
  });

  it.each([
    ["gone", () => rmSync(file.path)],
    ["broken", () => writeFileSync(file.path, "broken")],
  ])("that is %s while a ring uses it does not change the keys of the ring", (_, damage) => {
    file.create();
    const ring = new KeyRing(file.read(), file, log);
    const sealed = ring.seal(SECRET, AAD);
    damage();
    expect(ring.open(ring.seal(SECRET, AAD), AAD)).toBe(SECRET);
    expect(ring.open(sealed, AAD)).toBe(SECRET);
  });
});
