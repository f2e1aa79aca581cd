import { randomUUID } from "node:crypto";
import {
  accessSync,
  chmodSync,
  chownSync,
  closeSync,
  constants,
  existsSync,
  fstatSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";
import { ConfigError } from "../../platform/errors.ts";
import { type EncryptionKey, newEncryptionKey, parseEncryptionKey, ringOf, textOfKey } from "./encryption-key.ts";

const HEADING = `# The encryption keys of Threadmill: 32 bytes in base64, one a line. The first one encrypts, all of them decrypt.
# Keep a copy: without this file nobody can read what the database has sealed, and Threadmill does not start.
`;

/** A file of encryption keys, one a line; lines that begin with # are comments. It changes as a whole or not at all. */
export class KeyFile {
  readonly path: string;
  /** Of what was read last. */
  #version = "";

  constructor(path: string) {
    this.path = path;
  }

  exists(): boolean {
    return existsSync(this.path);
  }

  /** @throws ConfigError when it cannot be read or has something else than keys */
  read(): readonly EncryptionKey[] {
    const { text, version } = this.#load();
    const keys = linesOf(text).flatMap((line, index) => this.#keyOf(line, index) ?? []);
    this.#version = version;
    return ringOf(keys, this.path);
  }

  /** Whether it is another than was read last. A look takes 3 µs. */
  hasChanged(): boolean {
    const stats = statSync(this.path, { throwIfNoEntry: false });
    return stats !== undefined && versionOf(stats) !== this.#version;
  }

  /** A mounted one often is not: then people change it where it comes from. */
  isReplaceable(): boolean {
    try {
      accessSync(dirname(this.path), constants.W_OK);
      return true;
    } catch {
      return false;
    }
  }

  /** When it became what it is, in milliseconds since the epoch. */
  changedAt(): number {
    return statSync(this.path).mtimeMs;
  }

  /** Whether others than its owner may read it. Windows has no such bits. */
  isOpenToOthers(): boolean {
    return process.platform !== "win32" && (statSync(this.path).mode & 0o077) !== 0;
  }

  /** Makes it with a new key, unless somebody else does at this moment: then theirs counts. */
  create(): void {
    const fresh = this.#writeBeside(`${HEADING}${textOfKey(newEncryptionKey())}\n`);
    try {
      // Unlike a rename this leaves a file alone that is there already.
      linkSync(fresh, this.path);
      syncFolder(this.path);
    } catch (error) {
      if ((error as { code?: string }).code !== "EEXIST") throw error;
    } finally {
      rmSync(fresh);
    }
  }

  /** Puts a key in front of the others: from now on it is the one that encrypts. */
  prepend(key: EncryptionKey): void {
    const lines = linesOf(this.#load().text);
    const first = lines.findIndex((line, index) => this.#keyOf(line, index) !== undefined);
    this.#replace(lines.toSpliced(Math.max(first, 0), 0, textOfKey(key)));
  }

  remove(key_ids: ReadonlySet<string>): void {
    const lines = linesOf(this.#load().text);
    const kept = lines.filter((line, index) => !key_ids.has(this.#keyOf(line, index)?.key_id ?? ""));
    if (kept.length < lines.length) this.#replace(kept);
  }

  #keyOf(line: string, index: number): EncryptionKey | undefined {
    const text = line.trim();
    if (text === "" || text.startsWith("#")) return undefined;
    return parseEncryptionKey(text, `${this.path}: line ${index + 1}`);
  }

  #load(): { text: string; version: string } {
    let file: number | undefined;
    try {
      file = openSync(this.path, "r");
      // Both from one open file: a rotation may put another in its place meanwhile.
      return { version: versionOf(fstatSync(file)), text: readFileSync(file, "utf8") };
    } catch (error) {
      throw new ConfigError(
        `The encryption keys cannot be read from ${this.path} (${(error as { code?: string }).code}): put the file there, or make it readable.`,
      );
    } finally {
      if (file !== undefined) closeSync(file);
    }
  }

  /** Whoever could read the old file can read the new one, and nobody else. */
  #replace(lines: string[]): void {
    let fresh: string | undefined;
    try {
      fresh = this.#writeBeside(lines.join("\n"));
      const { uid, gid, mode } = statSync(this.path);
      chmodSync(fresh, mode & 0o777);
      if (uid !== statSync(fresh).uid || gid !== statSync(fresh).gid) chownSync(fresh, uid, gid);
      renameSync(fresh, this.path);
      syncFolder(this.path);
    } catch (error) {
      if (fresh !== undefined) rmSync(fresh, { force: true });
      throw new ConfigError(
        `The file ${this.path} cannot be replaced (${(error as { code?: string }).code}): change its keys by hand, and run this again.`,
      );
    }
  }

  #writeBeside(text: string): string {
    const path = `${this.path}.${randomUUID()}.tmp`;
    const file = openSync(path, "wx", 0o600);
    writeSync(file, text);
    fsyncSync(file);
    closeSync(file);
    return path;
  }
}

const linesOf = (text: string): string[] => text.split("\n");

const versionOf = ({ ino, size, mtimeMs }: Stats): string => `${ino}:${size}:${mtimeMs}`;

/** The name of a file is in its folder, which has to reach the disk as well. */
function syncFolder(path: string): void {
  if (process.platform === "win32") return;
  const folder = openSync(dirname(path), "r");
  fsyncSync(folder);
  closeSync(folder);
}
