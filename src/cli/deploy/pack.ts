import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create } from "tar";
import { CommandError } from "../experiments/command-error.ts";

export interface Packed {
  file: string;
  bytes: number;
  drop(): Promise<void>;
}

/** What the service takes of an upload. */
const MAX_BYTES = 200 * 2 ** 20;

/**
 * Packs files of a folder into a tarball in the folder for temporary files.
 *
 * @throws CommandError when it is larger than the service takes
 */
export async function pack(folder: string, paths: readonly string[]): Promise<Packed> {
  const place = await mkdtemp(join(tmpdir(), "threadmill-source-"));
  const drop = () => rm(place, { recursive: true, force: true });
  const file = join(place, "source.tar.gz");
  try {
    // A name that begins with @ would be taken for a tarball whose content is meant.
    const names = paths.map((path) => `./${path}`);
    await create({ gzip: true, portable: true, noDirRecurse: true, cwd: folder, file }, names);
    const { size: bytes } = await stat(file);
    if (bytes > MAX_BYTES)
      throw new CommandError(
        "The source is larger than 200 MB when packed: leave out what is not needed with a .dockerignore.",
      );
    return { file, bytes, drop };
  } catch (error) {
    await drop();
    throw error;
  }
}
