import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { ConfigError } from "../../errors.ts";
import { isFileBusy } from "../../lib/unavailable.ts";
import { makePrivateFile } from "./private-folder.ts";

/**
 * Takes a data folder for this process and returns how to give it back.
 *
 * @throws ConfigError naming the process that has the folder
 */
export function lockFolder(folder: string): () => void {
  return lock(
    { file: join(folder, "lock.db"), owner: join(folder, "owner.pid") },
    (pid) =>
      `The data folder ${folder} is in use by process ${pid}: stop that one, or choose another folder with --data.`,
  );
}

/**
 * Takes a file for this process to change, and returns how to give it back. Those who read it need no lock.
 *
 * @throws ConfigError naming the process that changes the file
 */
export const lockFile = (path: string): (() => void) =>
  lock(
    { file: `${path}.lock`, owner: `${path}.pid` },
    (pid) => `The file ${path} is being changed by process ${pid}: wait until that one is done.`,
  );

/** SQLite's own file lock is used, which the operating system drops when the process dies: nothing is left behind by a crash. */
function lock({ file, owner }: { file: string; owner: string }, refusal: (pid: string) => string): () => void {
  makePrivateFile(file);
  const database = new DatabaseSync(file);
  try {
    database.exec("pragma locking_mode = exclusive; begin exclusive;");
  } catch (error) {
    database.close();
    if (!isFileBusy(error)) throw error;
    throw new ConfigError(refusal(readOwner(owner)));
  }
  writeFileSync(owner, String(process.pid), { mode: 0o600 });
  return () => database.close();
}

function readOwner(file: string): string {
  try {
    return readFileSync(file, "utf8").trim();
  } catch {
    return "(unknown)";
  }
}
