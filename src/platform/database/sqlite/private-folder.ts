import { chmodSync, closeSync, mkdirSync, openSync, readdirSync, type Stats, statSync } from "node:fs";
import { join } from "node:path";
import type { Log } from "../../lib/log.ts";

const FOLDER_MODE = 0o700;
const FILE_MODE = 0o600;
/** Deployments that run as other users go through the data folder to folders of their own; they cannot list it. */
const MAX_OF_FOLDER = 0o711;

/** What a data folder has in it, besides the folders of other parts. */
const OWN_FILE = /^(threadmill\.db|experiments\.db|lock\.db|owner\.pid|encryption\.keys)(-|\.|$)/;

/**
 * Makes a data folder that nobody but this user can read. One that is there, and its databases, are made so: earlier versions left
 * them readable to everybody. A folder that others use, too (/tmp, a home) keeps its mode, its databases do not.
 */
export function makePrivate(folder: string, log: Log): void {
  mkdirSync(folder, { recursive: true, mode: FOLDER_MODE });
  if (process.platform === "win32") return;
  const entries = readdirSync(folder);
  const found = entries.filter((name) => OWN_FILE.test(name)).map((name) => join(folder, name));
  for (const file of found) restrict(file, FILE_MODE, FILE_MODE, log);
  const isOurs = found.length > 0 && entries.every((name) => OWN_FILE.test(name) || OWN_FOLDERS.has(name));
  if (isOurs) restrict(folder, FOLDER_MODE, MAX_OF_FOLDER, log);
  else if (isOpen(statSync(folder), MAX_OF_FOLDER) && entries.length > 0)
    log.warn(
      { folder },
      "the data folder has other files in it, so its mode is left: whoever may list it sees what there is",
    );
}

/** SQLite gives the files beside a database its mode, so the database is there before SQLite opens it. */
export function makePrivateFile(file: string): void {
  closeSync(openSync(file, "a", FILE_MODE));
}

const OWN_FOLDERS: ReadonlySet<string> = new Set(["control", "type-schemas", "home"]);

const isOpen = ({ mode }: Stats, most: number): boolean => (mode & 0o077 & ~most) !== 0;

/** Sets the mode of what is open to others beyond `most`. */
function restrict(path: string, mode: number, most: number, log: Log): void {
  try {
    if (!isOpen(statSync(path), most)) return;
    chmodSync(path, mode);
    log.warn({ path, mode: mode.toString(8) }, "others could read this: its mode was changed");
  } catch (error) {
    // Gone since it was listed, or another user's: it is read and written all the same.
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "ENOENT") log.warn({ path, code }, "others can read this, and its mode cannot be changed");
  }
}
