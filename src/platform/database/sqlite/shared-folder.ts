import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as delay } from "node:timers/promises";
import { ConfigError } from "../../errors.ts";
import { makePrivateFile } from "./private-folder.ts";

/** A process that starts alone keeps the others waiting while it brings the schema up to date: far less than this. */
const PATIENCE_MS = 10_000;
const TRY_AGAIN_MS = 50;

/**
 * Takes a data folder together with other processes that share it, and returns how to give it back. The lock is the one of
 * folder-lock.ts: sharers read `lock.db` in a transaction that never ends, so that one who wants the folder alone is refused,
 * and the operating system drops the lock of a process that dies.
 *
 * @param whenAlone is called first, and nobody else gets in before it has ended, when no living process has the folder
 * @throws ConfigError when a process that does not share has the folder
 */
export async function shareFolder(folder: string, whenAlone: () => Promise<void>): Promise<() => void> {
  const file = join(folder, "lock.db");
  makePrivateFile(file);
  const lock = new DatabaseSync(file);
  try {
    lock.exec("pragma busy_timeout = 0");
    for (const deadline = performance.now() + PATIENCE_MS; ; await delay(TRY_AGAIN_MS)) {
      if (succeeds(() => lock.exec("begin exclusive"))) {
        await whenAlone();
        lock.exec("commit");
      }
      if (succeeds(() => lock.exec("begin; select count(*) from sqlite_schema"))) break;
      if (lock.isTransaction) lock.exec("rollback");
      if (performance.now() > deadline) throw inUse(folder);
    }
  } catch (error) {
    lock.close();
    throw error;
  }
  writeFileSync(join(folder, "owner.pid"), String(process.pid), { mode: 0o600 });
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

const inUse = (folder: string): ConfigError =>
  new ConfigError(
    `The data folder ${folder} is in use by a process that does not share it: stop that one, or start it with --share-data.`,
  );
