import { createHash, randomBytes, randomUUID, timingSafeEqual } from "node:crypto";
import { type FileHandle, mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import type { VaultContext } from "../access/index.ts";
import { ApiError } from "../platform/errors.ts";
import { newId } from "../platform/lib/ids.ts";
import type { UploadUrl } from "./contract/deployments.ts";
import { type RequestContext, requireDeployment } from "./deployments/deployments.ts";
import type { SourceUploadRow } from "./storage/schema.ts";
import {
  completeUploadIfOpen,
  deleteExpiredUploads,
  deleteUploads,
  findOpenUpload,
  findUploads,
  insertUpload,
} from "./storage/uploads.ts";

interface UploadsOptions extends Pick<VaultContext, "database"> {
  /** Folder of the tarballs. Created with the first upload. */
  folder: string;
  limit_bytes: number;
  /** Validity of an upload URL. */
  ttl_ms: number;
}

type Upload = Pick<SourceUploadRow, "object_path" | "sha256">;

type CompletedUpload = Pick<SourceUploadRow, "object_path" | "size_bytes" | "sha256">;

/**
 * Uploads of source tarballs. An upload URL contains a token, accepts only one tarball, and expires. Only complete tarballs are
 * stored.
 */
export class Uploads {
  readonly #database: VaultContext["database"];
  readonly #folder: UploadFolder;
  readonly #options: UploadsOptions;

  constructor(options: UploadsOptions) {
    this.#database = options.database;
    this.#folder = new UploadFolder(options.folder);
    this.#options = options;
  }

  /** @throws ApiError deployment_not_found, deployment_is_deleted, bad_source */
  async createUrl({ caller, base_url }: RequestContext, deployment_id: string): Promise<UploadUrl> {
    const { source, status, name } = await requireDeployment(this.#database.read, caller, deployment_id);
    if (status === "AWAITING_DELETE") throw new ApiError("deployment_is_deleted", { name });
    if (source === "external_docker")
      throw new ApiError("bad_source", {
        reason: 'Deployments with source "external_docker" run images and do not accept source uploads.',
      });
    const token = randomBytes(32).toString("base64url");
    const object_path = `uploads/${newId()}.tar.gz`;
    const upload = { object_path, tenant_id: caller.tenant_id, deployment_id, token_digest: digestOf(token) };
    await this.#database.write((tx) => insertUpload(tx, upload, this.#options.ttl_ms));
    return { upload_url: `${base_url}/v2/${object_path}?token=${token}`, object_path };
  }

  /**
   * Stores an uploaded tarball. Deletes it if it is incomplete or too large, or if another upload to the URL was completed first.
   *
   * @param declared_bytes value of the header Content-Length, if present
   * @throws ApiError upload_refused, upload_incomplete, body_too_large, unavailable when the disk is full
   */
  async receive(
    { object_path, token, declared_bytes }: { object_path: string; token: string; declared_bytes: number | undefined },
    body: AsyncIterable<Uint8Array>,
  ): Promise<CompletedUpload> {
    const { limit_bytes, ttl_ms } = this.#options;
    const open = await findOpenUpload(this.#database.read, object_path);
    if (!isOfDigest(token, open?.token_digest) || !open) throw new ApiError("upload_refused");
    if (declared_bytes !== undefined && declared_bytes > limit_bytes)
      throw new ApiError("body_too_large", { limit_bytes });
    const part = await this.#folder.writePart(body, limit_bytes);
    try {
      const { size_bytes, sha256 } = part;
      if (size_bytes === 0 || (declared_bytes !== undefined && declared_bytes !== size_bytes))
        throw new ApiError("upload_incomplete", {
          size_bytes,
          declared_bytes: declared_bytes ?? "an unknown number of",
        });
      const received = { object_path, size_bytes, sha256 };
      // The file is moved before the row is written, so a crash in between leaves an unused file, never a row without a file.
      await this.#folder.commit(part, received);
      if (!(await this.#database.write((tx) => completeUploadIfOpen(tx, received, ttl_ms)))) {
        await this.#removeUnlessStored(received);
        throw new ApiError("upload_refused");
      }
      return received;
    } catch (error) {
      await this.#folder.unlink(part.file);
      throw error;
    }
  }

  fileOf(upload: Upload): string {
    return this.#folder.fileOf(upload);
  }

  async removeOf(deployment_id: string): Promise<void> {
    const deleted = await this.#database.write((tx) => deleteUploads(tx, deployment_id));
    for (const upload of deleted) await this.#folder.remove(upload);
  }

  /** Deletes expired uploads that no revision needs, and old files without a row. */
  async deleteExpired(): Promise<void> {
    const deleted = await this.#database.write(deleteExpiredUploads);
    for (const upload of deleted) await this.#folder.remove(upload);
    const old = await this.#folder.olderThan(this.#options.ttl_ms);
    const known = await findUploads(
      this.#database.read,
      old.map(({ object_path }) => object_path),
    );
    for (const { file, object_path } of old) {
      const row = known.find((upload) => upload.object_path === object_path);
      if (!row || this.fileOf(row) !== file) await this.#folder.unlink(file);
    }
  }

  /** Removes the file of a second upload to the same URL, unless both have the same content: they then share one file. */
  async #removeUnlessStored(received: CompletedUpload): Promise<void> {
    const [stored] = await findUploads(this.#database.read, [received.object_path]);
    if (stored?.sha256 !== received.sha256) await this.#folder.remove(received);
  }
}

const digestOf = (token: string): string => createHash("sha256").update(token).digest("hex");

const isOfDigest = (token: string, digest = "0".repeat(64)): boolean =>
  timingSafeEqual(Buffer.from(digestOf(token)), Buffer.from(digest));

/** An uploaded file before {@link UploadFolder.commit}. */
interface Part {
  file: string;
  size_bytes: number;
  sha256: string;
}

const PART_SUFFIX = ".part";
const SUFFIX = ".tar.gz";

/** The folder of the tarballs. File names contain path and content hash, so two uploads to the same URL never overwrite each other. */
class UploadFolder {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  fileOf({ object_path, sha256 }: Upload): string {
    return join(this.#folder, `${basename(object_path, SUFFIX)}_${sha256}${SUFFIX}`);
  }

  /**
   * Writes a body to a new file and syncs the file. Removes the file if writing fails.
   *
   * @throws ApiError body_too_large, unavailable when the disk is full; errors of the body
   */
  async writePart(body: AsyncIterable<Uint8Array>, limit_bytes: number): Promise<Part> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const file = join(this.#folder, `${randomUUID()}${PART_SUFFIX}`);
    const handle = await open(file, "wx", 0o600);
    try {
      const written = await writeAll(handle, body, limit_bytes);
      await handle.sync();
      return { file, ...written };
    } catch (error) {
      await this.unlink(file);
      if ((error as NodeJS.ErrnoException).code === "ENOSPC")
        throw new ApiError(
          "unavailable",
          { reason: "The disk of the Threadmill service is full: free up disk space, then try again." },
          error,
        );
      throw error;
    } finally {
      await handle.close();
    }
  }

  /** Moves a part to the path of its upload and syncs the folder. */
  async commit(part: Part, upload: Upload): Promise<void> {
    await rename(part.file, this.fileOf(upload));
    const folder = await open(this.#folder, "r");
    // Some file systems do not support syncing a folder.
    await folder.sync().catch(() => undefined);
    await folder.close();
  }

  remove = (upload: Upload): Promise<void> => (upload.sha256 ? this.unlink(this.fileOf(upload)) : Promise.resolve());

  unlink = (file: string): Promise<void> => rm(file, { force: true });

  /** Lists files whose last write is older than `age_ms`, with the object_path of each file. */
  async olderThan(age_ms: number): Promise<{ file: string; object_path: string }[]> {
    const names = await readdir(this.#folder).catch(() => []);
    const found: { file: string; object_path: string }[] = [];
    for (const name of names) {
      const file = join(this.#folder, name);
      const about = await stat(file).catch(() => undefined);
      if (about && Date.now() - about.mtimeMs > age_ms)
        found.push({ file, object_path: `uploads/${name.split("_")[0]}${SUFFIX}` });
    }
    return found;
  }
}

async function writeAll(handle: FileHandle, body: AsyncIterable<Uint8Array>, limit_bytes: number) {
  const hash = createHash("sha256");
  let size_bytes = 0;
  for await (const chunk of body) {
    size_bytes += chunk.byteLength;
    if (size_bytes > limit_bytes) throw new ApiError("body_too_large", { limit_bytes });
    hash.update(chunk);
    await handle.writeFile(chunk);
  }
  return { size_bytes, sha256: hash.digest("hex") };
}
