import { createHash, randomUUID } from "node:crypto";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { replaceFile } from "../../../platform/lib/replace-file.ts";
import type { GraphSchemas, JsonSchema } from "../host.ts";

/** JSON schemas (draft 7) of a graph; null for a type that is missing or permits any value. */
export type TypeSchemas = Record<keyof GraphSchemas, JsonSchema | null>;

/** Increment when the same sources yield other schemas. */
const FORMAT = 1;

export interface CachedSchemas {
  /** SHA-256 of the sources by path; empty for a missing file. */
  files: Record<string, string>;
  /** Null if the extraction failed. */
  schemas: TypeSchemas | null;
}

/** Returns the SHA-256 of a text without its byte order mark, or an empty string for undefined. */
export const hashOf = (text: string | undefined): string =>
  text === undefined
    ? ""
    : createHash("sha256")
        .update(text.replace(/^\uFEFF/, ""))
        .digest("hex");

export const hashOfFile = async (path: string): Promise<string> =>
  hashOf(await readFile(path, "utf8").catch(() => undefined));

/** Caches results in memory and, with a folder, in one file per key. */
export class SchemaCache {
  readonly #dir: string | undefined;
  readonly #entries = new Map<string, CachedSchemas>();

  constructor(dir: string | undefined) {
    this.#dir = dir;
  }

  /** Returns undefined if no result is cached or a source file has changed. */
  async find(key: string): Promise<CachedSchemas | undefined> {
    const entry = this.#entries.get(key) ?? (await this.#read(key));
    if (!entry) return undefined;
    for (const [path, hash] of Object.entries(entry.files)) if ((await hashOfFile(path)) !== hash) return undefined;
    this.#entries.set(key, entry);
    return entry;
  }

  keepInMemory(key: string, entry: CachedSchemas): void {
    this.#entries.set(key, entry);
  }

  /** @throws a file system error when the folder cannot be written */
  async keep(key: string, entry: CachedSchemas): Promise<void> {
    this.keepInMemory(key, entry);
    if (this.#dir === undefined) return;
    await mkdir(this.#dir, { recursive: true });
    const path = this.#pathOf(this.#dir, key);
    const text = JSON.stringify({ format: FORMAT, ...entry });
    await replaceFile(path, text, { mode: 0o666, temporary_file: `${path}.${randomUUID()}.tmp` });
  }

  async #read(key: string): Promise<CachedSchemas | undefined> {
    if (this.#dir === undefined) return undefined;
    try {
      const { format, files, schemas } = JSON.parse(await readFile(this.#pathOf(this.#dir, key), "utf8"));
      return format === FORMAT && typeof files === "object" && schemas !== undefined ? { files, schemas } : undefined;
    } catch {
      // The cache file is missing or damaged.
      return undefined;
    }
  }

  #pathOf(dir: string, key: string): string {
    return join(dir, `${hashOf(key)}.json`);
  }
}
