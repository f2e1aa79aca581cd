import { once } from "node:events";
import { createReadStream } from "node:fs";
import { isAbsolute } from "node:path";
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { setImmediate as nextTurn } from "node:timers/promises";
import { createGunzip } from "node:zlib";
import { type ReadEntry, Unpack } from "tar";
import { DeployError } from "../../driver.ts";

/** Limits of a tarball. */
export interface UnpackLimits {
  packed_bytes: number;
  unpacked_bytes: number;
  files: number;
}

const UNPACK_LIMITS: UnpackLimits = { packed_bytes: 200 * 2 ** 20, unpacked_bytes: 2 ** 30, files: 50_000 };

/** The limits for a service that accepts uploads of up to `upload_bytes`: a larger upload may also unpack to more. */
export function unpackLimits(upload_bytes: number): UnpackLimits {
  const factor = Math.max(1, upload_bytes / UNPACK_LIMITS.packed_bytes);
  const { packed_bytes, unpacked_bytes, files } = UNPACK_LIMITS;
  return { packed_bytes: packed_bytes * factor, unpacked_bytes: unpacked_bytes * factor, files };
}

/** Bytes of headers and padding for each file in a tarball. */
const OVERHEAD_BYTES = 4_096;

const FILES = new Set(["File", "OldFile", "ContiguousFile"]);

/** Returns default permissions. Of the mode in the tarball, only the executable bits of a file have an effect. */
const modeOf = ({ type, mode = 0 }: ReadEntry): number => (type === "Directory" || mode & 0o111 ? 0o755 : 0o644);

/**
 * Unpacks a gzipped tarball into a folder that no other process writes to.
 *
 * @throws DeployError when the tarball is invalid or too large, or the disk is full; the caller then removes the folder
 */
export async function unpack(file: string, folder: string, signal: AbortSignal, limits = UNPACK_LIMITS): Promise<void> {
  const max_bytes = limits.unpacked_bytes + limits.files * OVERHEAD_BYTES;
  try {
    await pipeline(
      createReadStream(file),
      limitBytes(limits.packed_bytes, "when compressed"),
      createGunzip(),
      limitBytes(max_bytes, "when unpacked"),
      (chunks: AsyncIterable<Buffer>) => writeEntries(chunks, folder, limits),
      { signal },
    );
  } catch (error) {
    signal.throwIfAborted();
    throw toDeployError(error);
  }
}

async function writeEntries(chunks: AsyncIterable<Buffer>, folder: string, limits: UnpackLimits): Promise<void> {
  const failed = Promise.withResolvers<never>();
  failed.promise.catch(() => undefined);
  const refuse = entryCheck(limits);
  let isRefused = false;
  const unpacking = new Unpack({
    cwd: folder,
    strict: true,
    preserveOwner: false,
    noMtime: true,
    filter(path, entry) {
      const refusal = isRefused ? undefined : refuse(path, entry as ReadEntry);
      if (refusal) failed.reject(refusal);
      isRefused ||= refusal !== undefined;
      return !isRefused;
    },
  });
  unpacking.on("error", failed.reject);
  for await (const chunk of chunks) {
    const isFull = !unpacking.write(chunk);
    await Promise.race([failed.promise, isFull ? once(unpacking, "drain") : nextTurn()]);
  }
  const closed = once(unpacking, "close");
  unpacking.end();
  await Promise.race([failed.promise, closed]);
}

/** Returns a function that sets the mode of an entry, or returns an error if the entry is forbidden or exceeds a limit. */
function entryCheck(limits: UnpackLimits) {
  let files = 0;
  let bytes = 0;
  return (path: string, entry: ReadEntry): DeployError | undefined => {
    const refusal = refusalOf(path, entry);
    if (refusal !== undefined) return new DeployError(`The source contains ${JSON.stringify(path)}, ${refusal}.`);
    files += 1;
    bytes += entry.size ?? 0;
    if (files > limits.files) return tooLarge(`more than ${limits.files} files`);
    if (bytes > limits.unpacked_bytes) return tooLarge(`more than ${megabytes(limits.unpacked_bytes)} when unpacked`);
    entry.mode = modeOf(entry);
    return undefined;
  };
}

function refusalOf(path: string, { type, linkpath }: ReadEntry): string | undefined {
  if (type === "SymbolicLink" || type === "Link" || linkpath) return "a link: pack its target instead";
  if (type !== "Directory" && !FILES.has(type)) return "an entry that is neither a file nor a folder";
  if (isAbsolute(path) || /^[A-Za-z]:[\\/]/.test(path) || path.startsWith("\\"))
    return "an absolute path: use relative paths";
  if (path.split(/[\\/]/).includes("..")) return "a path outside of the source folder";
  if (path.includes("\0")) return "an invalid path";
  return undefined;
}

/** Fails after `limit` bytes. Counts actual bytes, because sizes in headers are not reliable (decompression bombs). */
function limitBytes(limit: number, when: string): Transform {
  let bytes = 0;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length;
      if (bytes > limit) done(tooLarge(`more than ${megabytes(limit)} ${when}`));
      else done(null, chunk);
    },
  });
}

const megabytes = (bytes: number): string => `${Math.max(1, Math.floor(bytes / 2 ** 20))} MB`;

const tooLarge = (reason: string): DeployError => new DeployError(`The source is too large: ${reason}.`);

const DISK_FULL = "The disk of the Threadmill service is full: free up disk space, then try again.";

/** Converts errors caused by the source or a full disk to a DeployError. Other errors stay unchanged and are not shown to users. */
export function toDeployError(error: unknown): unknown {
  if (error instanceof DeployError) return error;
  const { code = "", tarCode, message, cause } = error as NodeJS.ErrnoException & { tarCode?: string };
  if (code === "ENOSPC" || code === "EDQUOT") return new DeployError(DISK_FULL);
  if (cause instanceof DeployError) return cause;
  if (code === "ENOTDIR" || code === "EISDIR" || code === "EEXIST" || code === "ENAMETOOLONG")
    return new DeployError("The source has a path that is both a file and a folder, or a path that is too long.");
  if (code.startsWith("Z_") || tarCode !== undefined || code === "TAR_BAD_ARCHIVE" || /TAR_/.test(message))
    return new DeployError(
      "The source is not a complete gzip-compressed tarball: create the tarball again and repeat the upload.",
    );
  return error;
}
