import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as delay } from "node:timers/promises";
import { ConfigError } from "../../errors.ts";
import { isFileBusy } from "../database-errors.ts";
import { createPrivateFile } from "./file-permissions.ts";

// The locks are SQLite's file locks, which the operating system releases when the process dies.

/** Maximum wait for the lock. A schema migration under an exclusive lock takes far less time. */
const SHARE_TIMEOUT_MS = 10_000;
const RETRY_MS = 50;

interface LockFiles {
  lock: string;
  /** Contains the pid of the holder. */
  pid: string;
}

const filesOf = (folder: string): LockFiles => ({ lock: join(folder, "lock.db"), pid: join(folder, "owner.pid") });

/** Locks a data folder and returns a function that releases the lock. Throws a ConfigError if another process holds the lock. */
export const lockFolder = (folder: string): (() => void) =>
  lockExclusively(
    filesOf(folder),
    (pid) =>
      `The data folder ${folder} is in use. It was last opened by process ${pid}. Stop all processes that use the folder, or choose another folder with --data.`,
  );

/** Like {@link lockFolder}, for the writers of a file. Readers need no lock. */
export const lockFile = (path: string): (() => void) =>
  lockExclusively(
    { lock: `${path}.lock`, pid: `${path}.pid` },
    (pid) => `The file ${path} is being changed by process ${pid}: try again when that process has finished.`,
  );

function lockExclusively(files: LockFiles, message: (pid: string) => string): () => void {
  createPrivateFile(files.lock);
  const lock = new DatabaseSync(files.lock);
  try {
    lock.exec("pragma locking_mode = exclusive; begin exclusive;");
  } catch (error) {
    lock.close();
    if (!isFileBusy(error)) throw error;
    throw new ConfigError(message(readPid(files.pid)));
  }
  writePid(files.pid);
  return () => lock.close();
}

/**
 * Like {@link lockFolder}, for processes that share the folder. Each of them keeps a read transaction open on `lock.db`, which prevents an
 * exclusive lock.
 *
 * @param onExclusive called first, under an exclusive lock, if no other process holds the folder
 */
export async function shareFolder(folder: string, onExclusive: () => Promise<void>): Promise<() => void> {
  const files = filesOf(folder);
  createPrivateFile(files.lock);
  const lock = new DatabaseSync(files.lock);
  try {
    lock.exec("pragma busy_timeout = 0");
    for (const deadline = performance.now() + SHARE_TIMEOUT_MS; ; await delay(RETRY_MS)) {
      if (succeeds(() => lock.exec("begin exclusive"))) {
        await onExclusive();
        lock.exec("commit");
      }
      if (succeeds(() => lock.exec("begin; select count(*) from sqlite_schema"))) break;
      if (lock.isTransaction) lock.exec("rollback");
      if (performance.now() > deadline)
        throw new ConfigError(
          `The data folder ${folder} is in use by a process that was started without --share-data: stop that process, or restart it with --share-data.`,
        );
    }
  } catch (error) {
    lock.close();
    throw error;
  }
  writePid(files.pid);
  return () => lock.close();
}

function succeeds(work: () => void): boolean {
  try {
    work();
    return true;
  } catch {
    return false;
  }
}

const writePid = (file: string): void => writeFileSync(file, String(process.pid), { mode: 0o600 });

function readPid(file: string): string {
  try {
    return readFileSync(file, "utf8").trim();
  } catch {
    return "(unknown)";
  }
}
