import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { VaultContext } from "../access/index.ts";
import { ApiError } from "../platform/errors.ts";
import { newId } from "../platform/lib/ids.ts";
import type { UploadUrl } from "./contract/deployments.ts";
import { type Asking, requireDeployment } from "./deployments.ts";
import type { SourceUploadRow } from "./storage/schema.ts";
import {
  completeUploadIfOpen,
  deleteUnneededUploads,
  deleteUploads,
  findOpenUpload,
  insertUpload,
  uploadsAmong,
} from "./storage/uploads.ts";
import { UploadFolder } from "./upload-folder.ts";

interface UploadsOptions extends Pick<VaultContext, "database"> {
  /** Where tarballs lie until they are built. Made when it is needed. */
  folder: string;
  limit_bytes: number;
  /** How long a URL is good for. */
  ttl_ms: number;
}

/** What is said of a tarball that has arrived. */
export type Received = Pick<SourceUploadRow, "object_path" | "size_bytes" | "sha256">;

/**
 * Source that is brought as a tarball: to a URL which has its permission in it, is good for one tarball, and soon for none. A tarball
 * counts once it has arrived whole.
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

  /**
   * @throws ApiError deployment_not_found, deployment_is_deleted, bad_source
   */
  async createUrl({ caller, base_url }: Asking, deployment_id: string): Promise<UploadUrl> {
    const { source, status, name } = await requireDeployment(this.#database.read, caller, deployment_id);
    if (status === "AWAITING_DELETE") throw new ApiError("deployment_is_deleted", { name });
    if (source === "external_docker")
      throw new ApiError("bad_source", {
        reason: "A deployment of external_docker runs an image: it takes no source.",
      });
    const token = randomBytes(32).toString("base64url");
    const object_path = `uploads/${newId()}.tar.gz`;
    const upload = { object_path, tenant_id: caller.tenant_id, deployment_id, token_digest: digestOf(token) };
    await this.#database.write((tx) => insertUpload(tx, upload, this.#options.ttl_ms));
    return { upload_url: `${base_url}/v2/${object_path}?token=${token}`, object_path };
  }

  /**
   * Takes a tarball as it comes. When it ends early, is too large or is the second, nothing of it stays.
   *
   * @param declared_bytes what the caller says it is long; undefined when they do not
   * @throws ApiError upload_refused, upload_incomplete, body_too_large, unavailable when the disk is full
   */
  async receive(
    { object_path, token, declared_bytes }: { object_path: string; token: string; declared_bytes: number | undefined },
    pieces: AsyncIterable<Uint8Array>,
  ): Promise<Received> {
    const { limit_bytes, ttl_ms } = this.#options;
    const open = await findOpenUpload(this.#database.read, object_path);
    if (!isOfDigest(token, open?.token_digest) || !open) throw new ApiError("upload_refused");
    if (declared_bytes !== undefined && declared_bytes > limit_bytes)
      throw new ApiError("body_too_large", { limit_bytes });
    const part = await this.#folder.writePart(pieces, limit_bytes);
    try {
      const { size_bytes, sha256 } = part;
      if (size_bytes === 0 || (declared_bytes !== undefined && declared_bytes !== size_bytes))
        throw new ApiError("upload_incomplete", { size_bytes, declared_bytes: declared_bytes ?? "some" });
      const received = { object_path, size_bytes, sha256 };
      // The file is in its place before the database says so: a crash in between leaves a file too many, never one too few.
      await this.#folder.keep(part, received);
      if (!(await this.#database.write((tx) => completeUploadIfOpen(tx, received, ttl_ms)))) {
        await this.#dropLate(received);
        throw new ApiError("upload_refused");
      }
      return received;
    } catch (error) {
      await this.#folder.drop(part);
      throw error;
    }
  }

  /** The file of a tarball that has arrived. */
  fileOf(upload: Pick<SourceUploadRow, "object_path" | "sha256">): string {
    return this.#folder.fileOf(upload);
  }

  /** With the deployment itself. */
  async removeOf(deployment_id: string): Promise<void> {
    const gone = await this.#database.write((tx) => deleteUploads(tx, deployment_id));
    for (const upload of gone) await this.#folder.remove(upload);
  }

  /** Removes what was not brought in time or is needed no more, and files that nothing knows of. */
  async tidy(): Promise<void> {
    const gone = await this.#database.write(deleteUnneededUploads);
    for (const upload of gone) await this.#folder.remove(upload);
    const old = await this.#folder.olderThan(this.#options.ttl_ms);
    const known = await uploadsAmong(
      this.#database.read,
      old.map(({ object_path }) => object_path),
    );
    for (const { file, object_path } of old) {
      const row = known.find((upload) => upload.object_path === object_path);
      if (!row || this.fileOf(row) !== file) await this.#folder.unlink(file);
    }
  }

  /** Two with the same URL at once: that of the later one goes, unless it is the very same tarball. */
  async #dropLate(received: Received): Promise<void> {
    const [kept] = await uploadsAmong(this.#database.read, [received.object_path]);
    if (kept?.sha256 !== received.sha256) await this.#folder.remove(received);
  }
}

const digestOf = (token: string): string => createHash("sha256").update(token).digest("hex");

const isOfDigest = (token: string, digest = "0".repeat(64)): boolean =>
  timingSafeEqual(Buffer.from(digestOf(token)), Buffer.from(digest));
