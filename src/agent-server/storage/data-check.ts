import { existsSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { sql } from "kysely";
import { type Database, nowMs } from "../../platform/database/database.ts";
import { isDisconnected, isDiskFull, sqliteCodeOf } from "../../platform/database/database-errors.ts";
import { ConfigError } from "../../platform/errors.ts";
import { type BackgroundService, periodicService } from "../../platform/lib/background-service.ts";
import type { Log } from "../../platform/lib/log.ts";

/** The note is updated at this interval. The loss of runs that were accepted after the last update is not detected. */
const NOTE_INTERVAL_MS = 5_000;
/** Larger files are not checked after a crash: the check would take seconds. */
const MAX_CHECKED_BYTES = 512 * 2 ** 20;

/** A file next to an embedded database that describes the expected content. */
interface Note {
  /** `seq` of the last run. */
  runs: number;
  /** Whether the database was closed after the note was written. */
  closed: boolean;
}

const noteOf = (file: string): string => `${file}.note`;

/**
 * Compares an embedded database with its note, before its migration. SQLite itself accepts a truncated file, or a log with a damaged page.
 *
 * @throws ConfigError if runs are missing or pages are damaged
 */
export async function checkData({ read }: Database, file: string): Promise<void> {
  const note = readNote(file);
  if (!note) return;
  const runs = await lastRun(read);
  if (runs < note.runs)
    throw new ConfigError(
      `Runs are missing from the database ${file}: the highest run number is ${runs}, but at least ${note.runs} is expected. Restore the database file and its -wal file together. To accept the loss, for example after a power failure or when restoring an older backup, delete ${noteOf(file)}.`,
    );
  if (note.closed || statSync(file).size > MAX_CHECKED_BYTES) return;
  const row = (await read.first(sql<{ quick_check: string }>`pragma quick_check(1)`.compile(read.k))) as {
    quick_check: string;
  };
  if (row.quick_check !== "ok") throw damaged(file, row.quick_check);
}

/**
 * Returns a service that maintains the note. It must be stopped before the database is closed.
 *
 * @param isShared whether other processes may use the database after this process has closed it
 */
export function noteData(
  { read }: Database,
  file: string,
  { isShared, log }: { isShared: boolean; log: Log },
): BackgroundService {
  let noted = -1;
  const note = async (closed: boolean) => {
    const runs = await lastRun(read);
    if (runs === noted && !closed) return;
    noted = runs;
    const written = `${noteOf(file)}.${process.pid}`;
    writeFileSync(written, JSON.stringify({ runs, closed: closed && !isShared } satisfies Note), { mode: 0o600 });
    renameSync(written, noteOf(file));
  };
  const onError = (error: unknown) => log.warn({ error, file }, "writing the .note file of the database failed");
  const noting = periodicService(NOTE_INTERVAL_MS, () => note(false), onError);
  return {
    start() {
      // Marks the database as open.
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
 * Checks that a file is an SQLite database. A missing file passes.
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
    // A busy file is not damaged.
    if (explained instanceof ConfigError) throw explained;
  } finally {
    connection.close();
  }
}

/** SQLSTATE codes: invalid user or password, unknown database, missing privilege. */
const REFUSED = /^(28...|3D000|42501)$/;

/** Converts an error of the first connection to Postgres to a ConfigError; returns other errors unchanged. */
export function explainConnecting(error: unknown, description: string): unknown {
  const { code = "", message } = error as Error & { code?: string };
  if (!isDisconnected(error) && !REFUSED.test(code)) return error;
  // If a host has several addresses, the error is an AggregateError without a message.
  return new ConfigError(
    `Cannot connect to the database (${description}: ${message || code}). Check that the database is running and that --database-url (DATABASE_URL) is correct.`,
  );
}

/** Converts an error that occurred when the data was opened to a ConfigError; returns other errors unchanged. */
export function explainOpening(error: unknown, file: string): unknown {
  const { code = "", message } = error as Error & { code?: string };
  const kind = sqliteCodeOf(error);
  if (isDiskFull(error))
    return new ConfigError(
      `The disk with the data folder ${dirname(file)} is full: free up space, or choose another folder with --data.`,
    );
  if (kind === SQLITE.corrupt || kind === SQLITE.notADatabase) return damaged(file, message);
  if (kind === SQLITE.readOnly || kind === SQLITE.cannotOpen || ["EACCES", "EROFS", "EPERM"].includes(code))
    return new ConfigError(
      `The data folder ${dirname(file)} is not writable (${message}): change its owner or mode, or choose another folder with --data.`,
    );
  return error;
}

const SQLITE = { readOnly: 8, corrupt: 11, cannotOpen: 14, notADatabase: 26 };

const damaged = (file: string, reason: string): ConfigError =>
  new ConfigError(
    `A file in the data folder ${dirname(file)} is damaged (${reason}): restore the folder from a backup, or choose another folder with --data. If only lock.db is damaged, you need not restore the folder. Instead, stop all processes that use the folder and delete lock.db.`,
  );

function readNote(file: string): Note | undefined {
  try {
    return JSON.parse(readFileSync(noteOf(file), "utf8"));
  } catch {
    // Not written yet, or lost in a power cut.
    return undefined;
  }
}

async function lastRun(read: Database["read"]): Promise<number> {
  const sequences = sql<object>`select name from sqlite_schema where name = 'sqlite_sequence'`.compile(read.k);
  if (!(await read.first(sequences))) return 0;
  const query = sql<{ seq: number }>`select seq from sqlite_sequence where name = 'runs'`.compile(read.k);
  return ((await read.first(query)) as { seq: number } | undefined)?.seq ?? 0;
}

/**
 * Records that values are encrypted by the project's handlers, or checks that none were.
 *
 * @throws ConfigError if the database may contain encrypted values and the project has no handlers
 */
export async function checkEncryption({ read, write }: Database, isEncrypted: boolean): Promise<void> {
  const found = await read.first(read.k.selectFrom("project_encryption").select("id"));
  if (found && !isEncrypted)
    throw new ConfigError(
      "The database contains values that were encrypted by the handlers of an encryption module. Specify this module in encryption.path in langgraph.json, or use another database.",
    );
  if (found || !isEncrypted) return;
  const row = { id: 1, since: nowMs };
  await write((tx) =>
    tx.run(
      tx.k
        .insertInto("project_encryption")
        .values(row)
        .onConflict((conflict) => conflict.column("id").doNothing()),
    ),
  );
}
