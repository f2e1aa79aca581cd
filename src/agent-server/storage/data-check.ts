import { existsSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { sql } from "kysely";
import type { Database } from "../../platform/database/database.ts";
import { ConfigError } from "../../platform/errors.ts";
import type { Log } from "../../platform/lib/log.ts";
import { repeating, type Service } from "../../platform/lib/service.ts";
import { isDisconnected, isDiskFull, sqliteKindOf } from "../../platform/lib/unavailable.ts";

/** So many seconds of runs may be missing unnoticed. */
const NOTE_MS = 5_000;
/** A larger file is not read through after a crash: the start would take seconds. */
const CHECKED_BYTES = 512 * 2 ** 20;

/** What lies beside an embedded database and says what must be in it. */
interface Note {
  /** The number of the last run. */
  runs: number;
  /** The process that wrote it has closed the database. */
  closed: boolean;
}

const noteOf = (file: string): string => `${file}.note`;

/**
 * Compares an embedded database with the note that lies beside it: SQLite itself takes a file that was emptied, or a log with a damaged
 * page, for all that there ever was.
 *
 * @param database not yet brought to this version's schema
 * @throws ConfigError when runs are missing, or pages are damaged
 */
export async function checkData({ read }: Database, file: string): Promise<void> {
  const note = readNote(file);
  if (!note) return;
  const runs = await lastRun(read);
  if (runs < note.runs)
    throw new ConfigError(
      `Runs are missing in the database ${file}: the last one has the number ${runs}, and ${note.runs} was there before. Restore the files with this name (also -wal) together. After a power cut, or with a backup, what is left may be all there is: delete ${noteOf(file)} to go on with it.`,
    );
  if (note.closed || statSync(file).size > CHECKED_BYTES) return;
  const row = (await read.first(sql<{ quick_check: string }>`pragma quick_check(1)`.compile(read.k))) as {
    quick_check: string;
  };
  if (row.quick_check !== "ok") throw damaged(file, row.quick_check);
}

/**
 * Keeps the note up to date. Stop it before the database is closed.
 *
 * @param isShared others may go on when this process has closed the database
 */
export function noteData(
  { read }: Database,
  file: string,
  { isShared, log }: { isShared: boolean; log: Log },
): Service {
  let noted = -1;
  const note = async (closed: boolean) => {
    const runs = await lastRun(read);
    if (runs === noted && !closed) return;
    noted = runs;
    const written = `${noteOf(file)}.${process.pid}`;
    writeFileSync(written, JSON.stringify({ runs, closed: closed && !isShared } satisfies Note), { mode: 0o600 });
    renameSync(written, noteOf(file));
  };
  const onError = (error: unknown) =>
    log.warn({ error, file }, "the number of the last run could not be noted beside the database");
  const noting = repeating(NOTE_MS, () => note(false), onError);
  return {
    start() {
      // From now on it is not closed.
      void note(false).catch(onError);
      noting.start();
    },
    async stop() {
      await noting.stop();
      await note(true).catch(() => undefined);
    },
  };
}

/**
 * Whether a file, if there is one, is an SQLite database.
 *
 * @throws ConfigError
 */
export function checkHeader(file: string): void {
  if (!existsSync(file)) return;
  const connection = new DatabaseSync(file, { readOnly: true });
  try {
    connection.exec("select count(*) from sqlite_schema");
  } catch (error) {
    const explained = explainOpening(error, file);
    // Busy is not damaged.
    if (explained instanceof ConfigError) throw explained;
  } finally {
    connection.close();
  }
}

/** The server knows no such user, password or database, or the user may do too little. */
const REFUSED = /^(28...|3D000|42501)$/;

/** An error of the first connection to Postgres, as a sentence that says what to do; others as they are. */
export function explainConnecting(error: unknown, description: string): unknown {
  const { code = "", message } = error as Error & { code?: string };
  if (!isDisconnected(error) && !REFUSED.test(code)) return error;
  // An error of several addresses has no message of its own.
  return new ConfigError(
    `The database cannot be used (${description}: ${message || code}): start it, or correct --database-url (DATABASE_URL).`,
  );
}

/** An error of opening the data, as a sentence that says what to do; others as they are. */
export function explainOpening(error: unknown, file: string): unknown {
  const { code = "", message } = error as Error & { code?: string };
  const kind = sqliteKindOf(error);
  if (isDiskFull(error))
    return new ConfigError(
      `The disk with the data folder ${dirname(file)} is full: free some space, or choose another folder with --data.`,
    );
  if (kind === SQLITE.corrupt || kind === SQLITE.notADatabase) return damaged(file, message);
  if (kind === SQLITE.readOnly || kind === SQLITE.cannotOpen || ["EACCES", "EROFS", "EPERM"].includes(code))
    return new ConfigError(
      `The data folder ${dirname(file)} cannot be written (${message}): change its owner or mode, or choose another folder with --data.`,
    );
  return error;
}

const SQLITE = { readOnly: 8, corrupt: 11, cannotOpen: 14, notADatabase: 26 };

const damaged = (file: string, reason: string): ConfigError =>
  new ConfigError(
    `A file of the data folder ${dirname(file)} is damaged (${reason}): restore its files from a backup, or choose another folder with --data. A damaged lock.db can be deleted while no process uses the folder.`,
  );

function readNote(file: string): Note | undefined {
  try {
    return JSON.parse(readFileSync(noteOf(file), "utf8"));
  } catch {
    // None was written yet, or a power cut took it.
    return undefined;
  }
}

async function lastRun(read: Database["read"]): Promise<number> {
  const isNew = sql<object>`select name from sqlite_schema where name = 'sqlite_sequence'`.compile(read.k);
  if (!(await read.first(isNew))) return 0;
  const query = sql<{ seq: number }>`select seq from sqlite_sequence where name = 'runs'`.compile(read.k);
  return ((await read.first(query)) as { seq: number } | undefined)?.seq ?? 0;
}
