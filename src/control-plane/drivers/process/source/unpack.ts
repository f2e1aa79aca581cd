import { once } from "node:events";
import { createReadStream } from "node:fs";
import { isAbsolute } from "node:path";
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { setImmediate as nextTurn } from "node:timers/promises";
import { createGunzip } from "node:zlib";
import { type ReadEntry, Unpack } from "tar";
import { DeployError } from "../../driver.ts";

/** What a tarball may hold; the first is what an upload may have. */
export interface UnpackLimits {
  packed_bytes: number;
  unpacked_bytes: number;
  files: number;
}

export const UNPACK_LIMITS: UnpackLimits = { packed_bytes: 200 * 2 ** 20, unpacked_bytes: 2 ** 30, files: 50_000 };

/** Headers and padding of a file in a tarball; what all files together may have of them comes on top of what they hold. */
const BYTES_BESIDE_A_FILE = 4_096;

const FILES = new Set(["File", "OldFile", "ContiguousFile"]);

/** Rights of who did not pack it: what a tarball says of sticky bits, foreign owners and secrecy is no business of ours. */
const modeOf = ({ type, mode = 0 }: ReadEntry): number => (type === "Directory" || mode & 0o111 ? 0o755 : 0o644);

/**
 * Unpacks a gzipped tarball into a folder that nobody else writes to.
 *
 * @throws DeployError when it holds what it may not, is too large or is broken; the folder is then to be thrown away
 */
export async function unpack(file: string, folder: string, signal: AbortSignal, limits = UNPACK_LIMITS): Promise<void> {
  const most = limits.unpacked_bytes + limits.files * BYTES_BESIDE_A_FILE;
  try {
    await pipeline(
      createReadStream(file),
      atMost(limits.packed_bytes, "packed"),
      createGunzip(),
      atMost(most, "when unpacked"),
      (pieces: AsyncIterable<Buffer>) => writeEntries(pieces, folder, limits),
      { signal },
    );
  } catch (error) {
    signal.throwIfAborted();
    throw explain(error);
  }
}

async function writeEntries(pieces: AsyncIterable<Buffer>, folder: string, limits: UnpackLimits): Promise<void> {
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
  for await (const piece of pieces) {
    const isFull = !unpacking.write(piece);
    await Promise.race([failed.promise, isFull ? once(unpacking, "drain") : nextTurn()]);
  }
  const closed = once(unpacking, "close");
  unpacking.end();
  await Promise.race([failed.promise, closed]);
}

/** Says of each entry why it is refused, if it is. */
function entryCheck(limits: UnpackLimits) {
  let files = 0;
  let bytes = 0;
  return (path: string, entry: ReadEntry): DeployError | undefined => {
    const refusal = refusalOf(path, entry);
    if (refusal !== undefined) return new DeployError(`The source holds ${JSON.stringify(path)}, ${refusal}.`);
    files += 1;
    bytes += entry.size ?? 0;
    if (files > limits.files) return tooLarge(`more than ${limits.files} files`);
    if (bytes > limits.unpacked_bytes) return tooLarge(`more than ${megabytes(limits.unpacked_bytes)} when unpacked`);
    entry.mode = modeOf(entry);
    return undefined;
  };
}

function refusalOf(path: string, { type, linkpath }: ReadEntry): string | undefined {
  if (type === "SymbolicLink" || type === "Link" || linkpath) return "a link: pack what it leads to instead";
  if (type !== "Directory" && !FILES.has(type)) return "which is neither a file nor a folder";
  if (isAbsolute(path) || /^[A-Za-z]:[\\/]/.test(path) || path.startsWith("\\")) return "an absolute path";
  if (path.split(/[\\/]/).includes("..")) return "which leads out of its folder";
  if (path.includes("\0")) return "which is no path";
  return undefined;
}

/** A bomb is noticed while it goes off: sizes in headers can lie, and may never come. */
function atMost(limit: number, when: string): Transform {
  let bytes = 0;
  return new Transform({
    transform(piece: Buffer, _encoding, done) {
      bytes += piece.length;
      if (bytes > limit) done(tooLarge(`more than ${megabytes(limit)} ${when}`));
      else done(null, piece);
    },
  });
}

const megabytes = (bytes: number): string => `${Math.max(1, Math.floor(bytes / 2 ** 20))} MB`;

const tooLarge = (what: string): DeployError => new DeployError(`The source is too large: ${what}.`);

const DISK_FULL = "The disk of the service is full.";

/** For whoever sent the tarball. What the system says of our own files is no news of theirs. */
export function explain(error: unknown): unknown {
  if (error instanceof DeployError) return error;
  const { code = "", tarCode, message, cause } = error as NodeJS.ErrnoException & { tarCode?: string };
  if (code === "ENOSPC" || code === "EDQUOT") return new DeployError(DISK_FULL);
  if (cause instanceof DeployError) return cause;
  if (code === "ENOTDIR" || code === "EISDIR" || code === "EEXIST" || code === "ENAMETOOLONG")
    return new DeployError("The source names one path as a file and as a folder, or one that is too long.");
  if (code.startsWith("Z_") || tarCode !== undefined || code === "TAR_BAD_ARCHIVE" || /TAR_/.test(message))
    return new DeployError("The source is not a whole tarball, packed with gzip.");
  return error;
}
