import { setTimeout as sleep } from "node:timers/promises";
import { ApiError } from "../errors.ts";

/** The database is unavailable or has no free connection. Whether the query took effect is unknown. */
export class DatabaseUnavailableError extends Error {
  override name = "DatabaseUnavailableError";
}

/** Values of the database cannot be encrypted or decrypted at present. */
export class EncryptionUnavailableError extends DatabaseUnavailableError {}

/**
 * SQLSTATEs of Postgres: the connection failed (08; PgBouncer reports all of its errors as 08P01), too many connections (53300), the server is starting or closed the session (57P0x),
 * the transaction was idle for too long (25P03), the server has become a standby (25006).
 */
const CONNECTION_STATES = /^(08(000|001|003|004|006|007|P01)|53300|57P0[123]|25P03|25006)$/;
/** Out of memory or disk (53), statement or lock timeout (57014, 55P03), conflict after the last attempt (40001, 40P01). */
const BUSY_STATES = /^(53...|57014|55P03|40001|40P01)$/;
const SYSTEM_ERRORS = new Set([
  ...["ECONNREFUSED", "ECONNRESET", "EPIPE", "ETIMEDOUT", "EHOSTUNREACH", "ENETUNREACH", "ENOTFOUND", "EAI_AGAIN"],
]);
/** Messages of driver errors without a code. */
const MESSAGES =
  /connection terminated|timeout expired|timeout exceeded when trying to connect|query read timeout|not queryable/i;

/** The SQLite file was locked for too long (5, 6), or the disk fails (10) or is full (13). */
const SQLITE_BUSY = new Set([5, 6, 10, 13]);
const SQLITE_FULL = 13;

/** Returns the primary result code of an SQLite error; undefined for other errors. */
export function sqliteCodeOf(error: unknown): number | undefined {
  const errcode = (error as { errcode?: unknown })?.errcode;
  return typeof errcode === "number" ? errcode % 256 : undefined;
}

/** Whether another process or thread has locked an SQLite file. */
export const isFileBusy = (error: unknown): boolean => sqliteCodeOf(error) === 5;

export const isDiskFull = (error: unknown): boolean =>
  sqliteCodeOf(error) === SQLITE_FULL || ["53100", "ENOSPC", "EDQUOT"].includes(codeOf(error));

const codeOf = (error: unknown): string => String((error as { code?: unknown })?.code ?? "");

/** Whether the error is a connection failure, not a failed query. */
export function isDisconnected(error: unknown): boolean {
  // An error from a worker thread keeps its name, but not its class.
  if ((error as Error | undefined)?.name === "DatabaseUnavailableError") return true;
  const code = codeOf(error);
  // A missing socket file is ENOENT.
  if ((error as { syscall?: string })?.syscall === "connect") return true;
  return CONNECTION_STATES.test(code) || SYSTEM_ERRORS.has(code) || MESSAGES.test((error as Error)?.message ?? "");
}

/** Whether the same query may succeed later. */
export const isUnavailable = (error: unknown): boolean =>
  isDisconnected(error) ||
  isDiskFull(error) ||
  BUSY_STATES.test(codeOf(error)) ||
  SQLITE_BUSY.has(sqliteCodeOf(error) ?? 0);

const RETRY_MS = 250;

/** Repeats idempotent `work` while the database is unavailable, unless `isOver` returns true after a failure. */
export async function retryWhileUnavailable<T>(isOver: () => boolean, work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!isUnavailable(error) || isOver()) throw error;
      await sleep(RETRY_MS, undefined, { ref: false });
    }
  }
}

/** If the database is unavailable, replaces the error, so that callers do not see the message of the driver. */
export const hideDriverMessage = (error: unknown): unknown =>
  isUnavailable(error) ? new DatabaseUnavailableError("The database is unavailable. Try again.") : error;

/** Returns the error to send to a graph host. Graph hosts treat all errors other than DatabaseUnavailableError alike. */
export function toHostError(error: unknown): { name: string; message: string } {
  const { message } = error as Error;
  return { name: error instanceof DatabaseUnavailableError ? error.name : "Error", message };
}

/** Returns the error for a client. The cause of a 5xx is for the log only. */
export function asApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof EncryptionUnavailableError) return new ApiError("unavailable", { reason: error.message }, error);
  return isUnavailable(error)
    ? new ApiError("unavailable", { reason: "The database is unavailable. Try again." }, error)
    : new ApiError("internal", {}, error);
}
