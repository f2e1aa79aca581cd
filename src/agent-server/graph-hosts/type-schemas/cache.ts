import { createHash, randomUUID } from "node:crypto";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { JsonSchema } from "../host.ts";

/** JSON schemas (draft 7) of a graph; null where its types allow anything, or say nothing. */
export interface TypeSchemas {
  input: JsonSchema | null;
  output: JsonSchema | null;
  state: JsonSchema | null;
  /** Of the context: JavaScript graphs declare one schema for config and context. */
  config: JsonSchema | null;
}

/** To be raised whenever the same sources give other schemas than before. */
const FORMAT = 1;

/** A result, and what it was made of. */
export interface CachedSchemas {
  /** SHA-256 by path; empty for a file that does not exist. */
  files: Record<string, string>;
  /** Null: there are none, and trying again would not change that. */
  schemas: TypeSchemas | null;
}

/** Of a text without its byte order mark. */
export const hashOf = (text: string | undefined): string =>
  text === undefined
    ? ""
    : createHash("sha256")
        .update(text.replace(/^\uFEFF/, ""))
        .digest("hex");

export const hashOfFile = async (path: string): Promise<string> =>
  hashOf(await readFile(path, "utf8").catch(() => undefined));

/** Results in memory, and in files where there is a folder for them: one a key, written as a whole. */
export class SchemaCache {
  readonly #dir: string | undefined;
  readonly #entries = new Map<string, CachedSchemas>();

  constructor(dir: string | undefined) {
    this.#dir = dir;
  }

  /** @returns undefined when there is no result, or one of the files is no longer what it was */
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

  /** @throws Error of the file system when the folder cannot be written */
  async keep(key: string, entry: CachedSchemas): Promise<void> {
    this.keepInMemory(key, entry);
    if (this.#dir === undefined) return;
    await mkdir(this.#dir, { recursive: true });
    const path = this.#pathOf(this.#dir, key);
    const unfinished = `${path}.${randomUUID()}.tmp`;
    await writeFile(unfinished, JSON.stringify({ format: FORMAT, ...entry }));
    await rename(unfinished, path);
  }

  async #read(key: string): Promise<CachedSchemas | undefined> {
    if (this.#dir === undefined) return undefined;
    try {
      const { format, files, schemas } = JSON.parse(await readFile(this.#pathOf(this.#dir, key), "utf8"));
      return format === FORMAT && typeof files === "object" && schemas !== undefined ? { files, schemas } : undefined;
    } catch {
      // Not there, or damaged: it is made anew.
      return undefined;
    }
  }

  #pathOf(dir: string, key: string): string {
    return join(dir, `${hashOf(key)}.json`);
  }
}
