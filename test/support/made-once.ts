import { createHash } from "node:crypto";
import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";

/** Kept between runs of the tests. */
const CACHE = join(import.meta.dirname, "../../node_modules/.cache/threadmill-tests");

/** A client that `npm ci` does not bring. */
interface Made {
  /** As sentences begin with it: "The Python client". */
  client: string;
  folder_prefix: string;
  /** Names and versions: other ones get a folder of their own. */
  made_of: string;
  /** @throws Error whose message says what is lacking */
  make(folder: string): Promise<void>;
}

/**
 * Makes a folder once for all runs of the tests, and keeps it in the temporary folder.
 *
 * @returns undefined when it cannot be made, which is said; with CI set nothing may be missing
 */
export async function madeOnce({ client, folder_prefix, made_of, make }: Made): Promise<string | undefined> {
  const hash = createHash("sha256").update(made_of).digest("hex").slice(0, 16);
  const folder = join(CACHE, `${folder_prefix}-${hash}`);
  if (existsSync(folder)) return folder;
  // Made beside its place and moved there when it is whole: another run of the tests may do the same right now.
  const draft = `${folder}.${process.pid}`;
  try {
    mkdirSync(draft, { recursive: true });
    await make(draft);
    if (!existsSync(folder)) renameSync(draft, folder);
    return folder;
  } catch (error) {
    const { message } = error as Error;
    if (process.env.CI) throw new Error(`CI runs everything, but ${message}`);
    console.warn(`\n${client} is not tested: ${message}\n`);
    return undefined;
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}
