import { type CompiledQuery, type Expression, type Kysely, type RawBuilder, sql } from "kysely";
import { DatabaseUnavailableError } from "./database-errors.ts";
import type { Hint, Hints } from "./hints.ts";

/**
 * The tables by name, with their rows as both databases store them. Each product adds its tables (`storage/schema.ts`). Times are
 * milliseconds since the epoch; JSON is text, so that it is read back byte for byte; flags are 0 or 1.
 */
// biome-ignore lint/suspicious/noEmptyInterface: products add their tables to it
export interface Schema {}

/** A Kysely builder, or a compiled query (see prepared.ts). */
export type Query<R> = { compile(): CompiledQuery<R> } | CompiledQuery<R>;

/** Compiled statements by their build function (prepared.ts), and SQL of inserts by table, columns and row count (insert-many.ts). */
export class StatementCache {
  readonly compiled = new Map<object, CompiledQuery>();
  readonly inserts = new Map<string, string>();
}

/** Runs queries, in a transaction or on the last committed state. */
export interface Tx {
  /** Builds queries, but does not execute them. */
  readonly k: Kysely<Schema>;
  readonly statements: StatementCache;
  readonly dialect: Dialect;
  all<R>(query: Query<R>): Promise<R[]>;
  first<R>(query: Query<R>): Promise<R | undefined>;
  /** Runs a change and returns the number of rows it affected. */
  run(query: Query<unknown>): Promise<number>;
  /**
   * Runs a change whose number of rows is not needed. On Postgres a transaction does not wait for its answer, which saves a round trip. The
   * statements of a transaction are executed in the order of the calls. An error rejects a later statement of the transaction, or its commit.
   */
  enqueue(query: Query<unknown>): Promise<void>;
  /** Returns a new id. A transaction that is repeated for its encryption gets the same ids, so that the values with them stay the same. */
  newId(): string;
}

export interface Database {
  /** Type and location of the database, for log lines and error messages. */
  readonly description: string;
  /** Reads the last committed state, outside of a transaction. */
  readonly read: Tx;
  /** Like `read`, for queries that may visit many rows. SQLite runs them in a separate thread. */
  readonly search: Tx;
  readonly hints: Hints;
  /** Identifies this process among the processes that share the database. It is new at each start. */
  readonly worker_id: number;
  /** Whether the database was available at the last health check. Sends no query. Always true on SQLite. */
  isAvailable(): boolean;
  /** Counts the connections of this process on Postgres. */
  connections?(): { active: number; idle: number; waiting: number };
  /**
   * Runs `work` in a transaction and returns its value after the commit. `work` may await only queries of its `tx`. After a deadlock or
   * serialization failure, `work` runs again.
   *
   * @param hint emitted after the commit on Postgres. On SQLite it is emitted immediately: the writes that it triggers run after this one
   * and may share its commit.
   */
  write<T>(work: (tx: Tx) => Promise<T>, hint?: Hint): Promise<T>;
  /** Like `write`, for one statement that waits for no lock. On Postgres it uses the connection for hints, which no request uses. */
  writeNow<T>(work: (tx: Tx) => Promise<T>): Promise<T>;
  /** Like `write`, for schema changes: without timeouts. */
  migrate<T>(work: (tx: Tx) => Promise<T>): Promise<T>;
  /** Ends idle transactions of processes that hang or are disconnected. On SQLite the operating system releases their locks. */
  freeLocks(worker_ids: readonly number[]): Promise<void>;
  close(): Promise<void>;
  /** Undefined if the project does not encrypt values. */
  readonly encryption?: DatabaseEncryption;
}

/** Access to the encryption of a database. */
export interface DatabaseEncryption {
  /** See {@link sealedOf}. */
  readonly sealed: Database;
  /**
   * Decrypts a row of `sealed` in place, and returns the encryption context of its values; undefined if none is encrypted.
   *
   * @throws ApiError encryption_failed
   */
  open(row: object): Promise<string | undefined>;
  /** A view of the database whose writes use `context`, as soon as it is set. */
  scoped(): ScopedDatabase;
}

/** The database without decryption: its rows contain encrypted values. */
export const sealedOf = (database: Database): Database => database.encryption?.sealed ?? database;

export type ScopedDatabase = Database & { context: string | undefined };

/** Connections of a pool on Postgres, unless another size is given. */
export const POOL_SIZE = 10;

/** Maximum connections to Postgres: those of the pool, and one for notifications. */
export const maxConnections = (pool_size = POOL_SIZE): number => pool_size + 1;

export type JsonOperator = "=" | ">" | ">=" | "<" | "<=";

/** The differences between SQLite and Postgres. The SQL functions `now_ms()` and `json_contains()` exist in both. */
export interface Dialect {
  readonly name: "sqlite" | "postgres";
  /** Column types for migrations. `clustered` makes a table store its rows in the order of the primary key. */
  readonly types: {
    readonly sequence: string;
    readonly bigint: string;
    readonly bytes: string;
    readonly clustered: string;
  };
  /** Locks the selected rows until the transaction ends. SQLite has one writer at a time and no row locks. */
  forUpdate<Q>(query: Q): Q;
  /** Like {@link forUpdate}, with a lock that several transactions can hold. */
  forShare<Q>(query: Q): Q;
  /** Like {@link forUpdate}, but omits rows that another transaction has locked. */
  skipLocked<Q>(query: Q): Q;
  /** Whether the process that executes a run is connected. Always true on SQLite, where only an expired lease shows a lost process. */
  workerIsPresent(): RawBuilder<boolean>;
  /** Whether a text contains `part`, case-insensitive. */
  containsText(text: Expression<string | null>, part: string): RawBuilder<boolean>;
  /** A field of the object in a JSON text, as text; null if missing. */
  jsonText(json: Expression<string | null>, field: string): RawBuilder<string | null>;
  /** A table with the `key`, `kind` (text, number, true, false, null, array, object) and `text` of each member of a JSON object. */
  jsonEntries(json: RawBuilder<string | null>): RawBuilder<unknown>;
  /** The number at a path of a column with JSON text; null if missing. Other types of values are not supported. */
  jsonNumber(column: string, path: readonly string[]): RawBuilder<number | null>;
  /** Whether a field of a column's JSON object has the type of `value` and satisfies the comparison. Strings are compared by bytes. */
  jsonCompare(
    column: string,
    field: string,
    operator: JsonOperator,
    value: string | number | boolean | null,
  ): RawBuilder<boolean>;
  /** The first part of a text that matches a regular expression, or null. The expression has no capturing groups. */
  matchingText(text: Expression<string>, pattern: string): RawBuilder<string | null>;
  /** Aggregates numbers into a comma-separated text in any order. Nulls are skipped; the result is null if there are no numbers. */
  joinNumbers(number: Expression<number | null>): RawBuilder<string | null>;
  /** Maximum number of parameters in a statement. */
  readonly max_parameters: number;
  /** Whether an error reports the violation of a unique index. */
  isUniqueViolation(error: unknown): boolean;
}

/** The current time in milliseconds since the epoch, from the clock that all processes on the same database share. */
export const nowMs = sql<number>`now_ms()`;

export async function readNow(tx: Tx): Promise<number> {
  const row = await tx.first(sql<{ now: number }>`select now_ms() as now`.compile(tx.k));
  return (row as { now: number }).now;
}

/**
 * @param asks whether to run a query in addition to reading the last known state
 * @throws DatabaseUnavailableError, or the error of the driver
 */
export async function checkDatabase(database: Database, { asks }: { asks: boolean }): Promise<void> {
  if (!database.isAvailable()) throw new DatabaseUnavailableError("The database is unavailable.");
  if (asks) await database.read.first(sql`select 1`.compile(database.read.k));
}

const UNIQUE_WRITE_ATTEMPTS = 3;

/**
 * Runs a write that checks whether a name or ID is free. On Postgres, two concurrent writes may both find it free. The unique index then
 * rejects one of them, and the retry reports the conflict.
 */
export async function writeUnique<T>(database: Database, write: (tx: Tx) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await database.write(write);
    } catch (error) {
      if (attempt === UNIQUE_WRITE_ATTEMPTS || !database.read.dialect.isUniqueViolation(error)) throw error;
    }
  }
}
