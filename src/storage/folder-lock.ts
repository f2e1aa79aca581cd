import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { ConfigError } from "../errors.ts";

/**
 * Takes a data folder for this process and returns how to give it back. SQLite's own file lock is used, which the
 * operating system drops when the process dies: nothing is left behind by a crash.
 *
 * @throws ConfigError naming the process that has the folder
 */
export function lockFolder(folder: string): () => void {
  mkdirSync(folder, { recursive: true });
  const owner = join(folder, "owner.pid");
  const lock = new DatabaseSync(join(folder, "lock.db"));
  try {
    lock.exec("pragma locking_mode = exclusive; begin exclusive;");
  } catch {
    lock.close();
    throw new ConfigError(
      `The data folder ${folder} is in use by process ${readOwner(owner)}: stop that one, or choose another folder with --data.`,
    );
  }
  writeFileSync(owner, String(process.pid));
  return () => lock.close();
}

function readOwner(file: string): string {
  try {
    return readFileSync(file, "utf8").trim();
  } catch {
    return "(unknown)";
  }
}
