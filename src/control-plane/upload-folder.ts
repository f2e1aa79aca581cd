import { createHash, randomUUID } from "node:crypto";
import { type FileHandle, mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { ApiError } from "../platform/errors.ts";
import type { SourceUploadRow } from "./storage/schema.ts";

type Upload = Pick<SourceUploadRow, "object_path" | "sha256">;

/** What has been written, and is in nobody's way yet. */
export interface Part {
  file: string;
  size_bytes: number;
  sha256: string;
}

const PART = ".part";
const END = ".tar.gz";

/** The folder of tarballs. Each is called by its path and its content, so that two with one URL never overwrite each other. */
export class UploadFolder {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  fileOf({ object_path, sha256 }: Upload): string {
    return join(this.#folder, `${basename(object_path, END)}_${sha256}${END}`);
  }

  /**
   * Writes what comes into a file of its own, and to the disk. Leaves nothing when it fails.
   *
   * @throws ApiError body_too_large, unavailable when the disk is full; whatever the pieces throw
   */
  async writePart(pieces: AsyncIterable<Uint8Array>, limit_bytes: number): Promise<Part> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const file = join(this.#folder, `${randomUUID()}${PART}`);
    const handle = await open(file, "wx", 0o600);
    try {
      const written = await writeAll(handle, pieces, limit_bytes);
      await handle.sync();
      return { file, ...written };
    } catch (error) {
      await this.unlink(file);
      if ((error as NodeJS.ErrnoException).code === "ENOSPC")
        throw new ApiError("unavailable", { reason: "The disk of the service is full." }, error);
      throw error;
    } finally {
      await handle.close();
    }
  }

  /** Puts a part where its tarball belongs, for good. */
  async keep(part: Part, upload: Upload): Promise<void> {
    await rename(part.file, this.fileOf(upload));
    const folder = await open(this.#folder, "r");
    // Not every file system lets a folder be synced; those that do not have no use for it.
    await folder.sync().catch(() => undefined);
    await folder.close();
  }

  drop = (part: Part): Promise<void> => this.unlink(part.file);

  remove = (upload: Upload): Promise<void> => (upload.sha256 ? this.unlink(this.fileOf(upload)) : Promise.resolve());

  unlink = (file: string): Promise<void> => rm(file, { force: true });

  /** Files that nobody has written to for so long, each with the path that it would have. */
  async olderThan(age_ms: number): Promise<{ file: string; object_path: string }[]> {
    const names = await readdir(this.#folder).catch(() => []);
    const found: { file: string; object_path: string }[] = [];
    for (const name of names) {
      const file = join(this.#folder, name);
      const about = await stat(file).catch(() => undefined);
      if (about && Date.now() - about.mtimeMs > age_ms)
        found.push({ file, object_path: `uploads/${name.split("_")[0]}${END}` });
    }
    return found;
  }
}

async function writeAll(handle: FileHandle, pieces: AsyncIterable<Uint8Array>, limit_bytes: number) {
  const hash = createHash("sha256");
  let size_bytes = 0;
  for await (const piece of pieces) {
    size_bytes += piece.byteLength;
    if (size_bytes > limit_bytes) throw new ApiError("body_too_large", { limit_bytes });
    hash.update(piece);
    await handle.writeFile(piece);
  }
  return { size_bytes, sha256: hash.digest("hex") };
}
