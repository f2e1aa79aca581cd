import { chmodSync, closeSync, mkdirSync, openSync, readdirSync, type Stats, statSync } from "node:fs";
import { join } from "node:path";
import type { Log } from "../../lib/log.ts";

const FOLDER_MODE = 0o700;
const FILE_MODE = 0o600;
/** Deployments that run as other users must be able to traverse the data folder, but not to list it. */
const MAX_FOLDER_MODE = 0o711;

const OWN_FILE = /^(threadmill\.db|experiments\.db|lock\.db|owner\.pid|encryption\.keys)(-|\.|$)/;
const OWN_FOLDERS: ReadonlySet<string> = new Set(["control", "type-schemas", "home"]);

/**
 * Creates a data folder that only the current user can read. In an existing folder, corrects the modes that earlier versions gave to
 * Threadmill's files. Corrects the mode of the folder itself unless it is empty or contains other files (/tmp, a home directory).
 */
export function restrictDataFolder(folder: string, log: Log): void {
  mkdirSync(folder, { recursive: true, mode: FOLDER_MODE });
  if (process.platform === "win32") return;
  const entries = readdirSync(folder);
  const files = entries.filter((name) => OWN_FILE.test(name)).map((name) => join(folder, name));
  for (const file of files) restrict(file, FILE_MODE, FILE_MODE, log);
  const isDedicated = files.length > 0 && entries.every((name) => OWN_FILE.test(name) || OWN_FOLDERS.has(name));
  if (isDedicated) restrict(folder, FOLDER_MODE, MAX_FOLDER_MODE, log);
  else if (exceeds(statSync(folder), MAX_FOLDER_MODE) && entries.length > 0)
    log.warn(
      { folder },
      "data folder contains files that do not belong to Threadmill; the folder's mode was not changed, so other users can list it",
    );
}

/**
 * Creates a missing file with access for the current user only, before SQLite opens it. SQLite creates the other files of a database, such
 * as the write-ahead log, with the mode of this file.
 */
export function createPrivateFile(file: string): void {
  closeSync(openSync(file, "a", FILE_MODE));
}

/** Whether group or others have permissions that `max` does not include. */
const exceeds = ({ mode }: Stats, max: number): boolean => (mode & 0o077 & ~max) !== 0;

function restrict(path: string, mode: number, max: number, log: Log): void {
  try {
    if (!exceeds(statSync(path), max)) return;
    chmodSync(path, mode);
    log.warn({ path, mode: mode.toString(8) }, "file or folder was accessible to other users; mode changed");
  } catch (error) {
    // ENOENT: the file was deleted after the listing. EPERM: it belongs to another user.
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "ENOENT")
      log.warn({ path, code }, "changing the mode of a file or folder failed; other users may have access");
  }
}
