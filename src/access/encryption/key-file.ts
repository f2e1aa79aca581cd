import { randomUUID } from "node:crypto";
import fs from "node:fs";
import { dirname } from "node:path";
import { ConfigError } from "../../platform/errors.ts";
import {
  type EncryptionKey,
  generateEncryptionKey,
  keyToBase64,
  parseEncryptionKey,
  requireKeys,
} from "./encryption-key.ts";

const HEADING = `# Encryption keys of Threadmill: 32 bytes in base64, one key per line. The first key encrypts; all keys decrypt.
# Keep a backup: without this file, the secrets in the database cannot be decrypted and Threadmill does not start.
`;

/** A file of encryption keys, one per line, with # for comments. Changes replace the file atomically. */
export class KeyFile {
  readonly path: string;
  /** Inode, size and modification time of the file when it was last read. */
  #version = "";

  constructor(path: string) {
    this.path = path;
  }

  exists(): boolean {
    return fs.existsSync(this.path);
  }

  /** @throws ConfigError if the file is unreadable, has no key or has a malformed line */
  read(): readonly EncryptionKey[] {
    const { text, version } = this.#load();
    const keys = linesOf(text).flatMap((line, index) => this.#keyOf(line, index) ?? []);
    this.#version = version;
    return requireKeys(keys, this.path);
  }

  /** Whether the file has changed since the last read. The check takes 3 µs. */
  hasChanged(): boolean {
    const stats = fs.statSync(this.path, { throwIfNoEntry: false });
    return stats !== undefined && versionOf(stats) !== this.#version;
  }

  /** Whether the folder is writable. The folder of a mounted file is often read-only. */
  isReplaceable(): boolean {
    try {
      fs.accessSync(dirname(this.path), fs.constants.W_OK);
      return true;
    } catch {
      return false;
    }
  }

  /** Time of the last modification, in milliseconds since the epoch. */
  changedAt(): number {
    return fs.statSync(this.path).mtimeMs;
  }

  /** Always false on Windows, which has no permission bits. */
  isReadableByOthers(): boolean {
    return process.platform !== "win32" && (fs.statSync(this.path).mode & 0o077) !== 0;
  }

  /** Creates the file with a new key, unless another process creates it at the same time. */
  create(): void {
    const temporary = this.#writeTemporary(`${HEADING}${keyToBase64(generateEncryptionKey())}\n`);
    try {
      // Unlike a rename, a link does not replace an existing file.
      fs.linkSync(temporary, this.path);
      syncFolder(this.path);
    } catch (error) {
      if ((error as { code?: string }).code !== "EEXIST") throw error;
    } finally {
      fs.rmSync(temporary);
    }
  }

  /** Inserts a key before the other keys, so that it encrypts new values. */
  prepend(key: EncryptionKey): void {
    const lines = linesOf(this.#load().text);
    const first = lines.findIndex((line, index) => this.#keyOf(line, index) !== undefined);
    this.#replace(
      lines.toSpliced(Math.max(first, 0), 0, keyToBase64(key)),
      'generate a new key with "openssl rand -base64 32", insert it manually before the other keys in the file, then run the command again',
    );
  }

  remove(key_ids: ReadonlySet<string>): void {
    const lines = linesOf(this.#load().text);
    const remaining = lines.filter((line, index) => !key_ids.has(this.#keyOf(line, index)?.key_id ?? ""));
    const unused = lines.flatMap((line, index) => (remaining.includes(line) ? [] : [index + 1]));
    if (unused.length > 0) this.#replace(remaining, `remove the unused keys manually (line ${unused.join(", line ")})`);
  }

  #keyOf(line: string, index: number): EncryptionKey | undefined {
    const text = line.trim();
    if (text === "" || text.startsWith("#")) return undefined;
    return parseEncryptionKey(text, `${this.path}: line ${index + 1}`);
  }

  #load(): { text: string; version: string } {
    let file: number | undefined;
    try {
      file = fs.openSync(this.path, "r");
      // Version and text are read from one open file, because a rotation can replace the file at any time.
      return { version: versionOf(fs.fstatSync(file)), text: fs.readFileSync(file, "utf8") };
    } catch (error) {
      throw new ConfigError(
        `Cannot read the encryption key file ${this.path} (${(error as { code?: string }).code}): create or restore the file, or make it readable.`,
      );
    } finally {
      if (file !== undefined) fs.closeSync(file);
    }
  }

  /**
   * The new file keeps the owner and the permissions of the old one.
   *
   * @param remedy what to do if the file cannot be replaced
   */
  #replace(lines: string[], remedy: string): void {
    let temporary: string | undefined;
    try {
      temporary = this.#writeTemporary(lines.join("\n"));
      const { uid, gid, mode } = fs.statSync(this.path);
      fs.chmodSync(temporary, mode & 0o777);
      const written = fs.statSync(temporary);
      if (uid !== written.uid || gid !== written.gid) fs.chownSync(temporary, uid, gid);
      fs.renameSync(temporary, this.path);
      syncFolder(this.path);
    } catch (error) {
      if (temporary !== undefined) fs.rmSync(temporary, { force: true });
      throw new ConfigError(
        `Cannot replace the encryption key file ${this.path} (${(error as { code?: string }).code}): ${remedy}.`,
      );
    }
  }

  #writeTemporary(text: string): string {
    const path = `${this.path}.${randomUUID()}.tmp`;
    const file = fs.openSync(path, "wx", 0o600);
    fs.writeSync(file, text);
    fs.fsyncSync(file);
    fs.closeSync(file);
    return path;
  }
}

const linesOf = (text: string): string[] => text.split("\n");

const versionOf = ({ ino, size, mtimeMs }: fs.Stats): string => `${ino}:${size}:${mtimeMs}`;

/** Syncs the folder, because a rename is durable only after the sync. */
function syncFolder(path: string): void {
  if (process.platform === "win32") return;
  const folder = fs.openSync(dirname(path), "r");
  fs.fsyncSync(folder);
  fs.closeSync(folder);
}
