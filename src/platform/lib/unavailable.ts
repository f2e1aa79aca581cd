import { setTimeout as sleep } from "node:timers/promises";

/** The database does not answer, or has no connection to give. Nothing is known of what was asked of it. */
export class DatabaseUnavailableError extends Error {
  override name = "DatabaseUnavailableError";
}

/**
 * Postgres: connections fail (08) or there are too many (53300), the server or a session is ended, starts, is frozen (25P03), or has
 * become a standby (25006).
 */
const CONNECTION_STATES = /^(08(000|001|003|004|006|007)|53300|57P0[123]|25P03|25006)$/;
/**
 * ... no memory or disk (53), a statement or lock that took too long (57014, 55P03), and what was repeated a few times without success
 * (40001, 40P01).
 */
const BUSY_STATES = /^(53...|57014|55P03|40001|40P01)$/;
const SYSTEM_ERRORS = new Set([
  ...["ECONNREFUSED", "ECONNRESET", "EPIPE", "ETIMEDOUT", "EHOSTUNREACH", "ENETUNREACH", "ENOTFOUND", "EAI_AGAIN"],
]);
/** Of the driver, which has no codes for them. */
const MESSAGES =
  /connection terminated|timeout expired|timeout exceeded when trying to connect|query read timeout|not queryable/i;

/** SQLite: another process writes or holds the file for too long (5, 6), the disk fails (10) or is full (13). */
const SQLITE_BUSY = new Set([5, 6, 10, 13]);
const SQLITE_FULL = 13;

/** The kind of an error of SQLite, without its variant; undefined for others. */
export function sqliteKindOf(error: unknown): number | undefined {
  const errcode = (error as { errcode?: unknown })?.errcode;
  return typeof errcode === "number" ? errcode % 256 : undefined;
}

/** Whether another process or thread has an SQLite file. */
export const isFileBusy = (error: unknown): boolean => sqliteKindOf(error) === 5;

/** Whether there is no room for what was to be written. */
export const isDiskFull = (error: unknown): boolean =>
  sqliteKindOf(error) === SQLITE_FULL || ["53100", "ENOSPC", "EDQUOT"].includes(codeOf(error));

const codeOf = (error: unknown): string => String((error as { code?: unknown })?.code ?? "");

/** Whether the connection to a database failed: what was asked has nothing to do with it. */
export function isDisconnected(error: unknown): boolean {
  if (error instanceof DatabaseUnavailableError) return true;
  const code = codeOf(error);
  // Of a socket file: ENOENT.
  if ((error as { syscall?: string })?.syscall === "connect") return true;
  return CONNECTION_STATES.test(code) || SYSTEM_ERRORS.has(code) || MESSAGES.test((error as Error)?.message ?? "");
}

/** Whether a database failed in a way that passes: the same may succeed in a moment. */
export const isUnavailable = (error: unknown): boolean =>
  isDisconnected(error) ||
  isDiskFull(error) ||
  BUSY_STATES.test(codeOf(error)) ||
  SQLITE_BUSY.has(sqliteKindOf(error) ?? 0);

/** While the database is away it is tried again after this. */
const RETRY_MS = 250;

/**
 * Does something that may be done twice, again and again while the database is away.
 *
 * @param isOver asked after each failure
 * @throws the last error once it is over
 */
export async function whenAvailable<T>(isOver: () => boolean, work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!isUnavailable(error) || isOver()) throw error;
      await sleep(RETRY_MS, undefined, { ref: false });
    }
  }
}

/** The error for callers: what the driver says of a database that is away is for the log. */
export const withoutDriverText = (error: unknown): unknown =>
  isUnavailable(error) ? new DatabaseUnavailableError("The database does not answer right now. Try again.") : error;

/** An error as a graph host gets it, which knows the class of this one alone. */
export function forHost(error: unknown): { name: string; message: string } {
  const { message } = error as Error;
  return { name: error instanceof DatabaseUnavailableError ? error.name : "Error", message };
}
