import { DatabaseSync, type SQLInputValue, type StatementSync } from "node:sqlite";
import { containing } from "../../lib/json/containment.ts";
import { isObject } from "../../lib/json/json.ts";

export interface ConnectionOptions {
  file: string;
  busy_timeout_ms: number;
  synchronous: "full" | "normal";
  cache_mb: number;
  now: () => number;
}

/** Opens a file with the functions that queries use on both databases. */
export function connect({ file, busy_timeout_ms, synchronous, cache_mb, now }: ConnectionOptions): DatabaseSync {
  const connection = new DatabaseSync(file);
  // Readers never wait for writers, but for a log to be recovered that a killed process has left.
  connection.exec(`pragma busy_timeout = ${busy_timeout_ms}`);
  connection.exec("pragma journal_mode = wal");
  connection.exec(`pragma synchronous = ${synchronous}`);
  connection.exec(`pragma cache_size = -${cache_mb * 1000}`); // KiB
  // Only finishes, every 32 MB, what the checkpointer's thread has begun (wal-checkpointer.ts).
  connection.exec("pragma wal_autocheckpoint = 8000");
  connection.function("now_ms", now);
  connection.function("json_contains", { deterministic: true }, jsonContains());
  // SQLite's own lower() knows the letters of ASCII alone.
  connection.function("text_contains", { deterministic: true }, (text, part) =>
    text === null ? null : Number(String(text).toLowerCase().includes(String(part))),
  );
  connection.function("json_text", { deterministic: true }, (json, field) => fieldText(json, String(field)));
  return connection;
}

/** Somewhere to run statements: a connection, or the thread that has one. */
export interface Runner {
  all(sql: string, parameters: SQLInputValue[]): Promise<unknown[]>;
  first(sql: string, parameters: SQLInputValue[]): Promise<unknown>;
  run(sql: string, parameters: SQLInputValue[]): Promise<number>;
}

/** A query may look for several. */
const KEPT_PARTS = 20;

/** Reads each part once for all rows that it is looked for in. */
function jsonContains(): (whole: SQLInputValue, part: SQLInputValue) => number {
  const known = new Map<SQLInputValue, (whole: unknown) => boolean>();
  return (whole, part) => {
    let isIn = known.get(part);
    if (!isIn) {
      if (known.size >= KEPT_PARTS) known.clear();
      isIn = containing(JSON.parse(String(part)));
      known.set(part, isIn);
    }
    return isIn(JSON.parse(String(whole ?? "null"))) ? 1 : 0;
  };
}

/** What Postgres' `->>` answers. */
function fieldText(json: unknown, field: string): string | null {
  if (typeof json !== "string") return null;
  const object: unknown = JSON.parse(json);
  const value = isObject(object) && Object.hasOwn(object, field) ? object[field] : null;
  return value === null ? null : typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** Statements are compiled once and kept; past this many the oldest goes (rows-per-insert make variants). */
const KEPT_STATEMENTS = 400;

/** Prepares statements of a connection, each once. */
export function statementsOf(connection: DatabaseSync): (sql: string) => StatementSync {
  const statements = new Map<string, StatementSync>();
  return (sql) => {
    let statement = statements.get(sql);
    if (!statement) {
      statement = connection.prepare(sql);
      statements.set(sql, statement);
      if (statements.size > KEPT_STATEMENTS) statements.delete(statements.keys().next().value as string);
    }
    return statement;
  };
}
