import {
  type CompiledQuery,
  type Expression,
  type Kysely,
  type RawBuilder,
  type SelectQueryBuilder,
  sql,
} from "kysely";
import type { Hint, Hints } from "./hints.ts";
import type { Schema } from "./schema.ts";

/** A query: a Kysely builder, or one compiled before (see prepared.ts). */
export type Query<R> = { compile(): CompiledQuery<R> } | CompiledQuery<R>;

/** Somewhere to run queries: a transaction, or the last committed state. */
export interface Tx {
  /** Builds queries; it executes nothing. */
  readonly k: Kysely<Schema>;
  readonly dialect: Dialect;
  all<R>(query: Query<R>): Promise<R[]>;
  first<R>(query: Query<R>): Promise<R | undefined>;
  /** Runs a change and says how many rows it touched. */
  run(query: Query<unknown>): Promise<number>;
}

export interface Database {
  /** For people: which database this is, and where. */
  readonly description: string;
  /** Reads outside a transaction: what was committed last. */
  readonly read: Tx;
  /** As `read`, for queries that may look at many rows: on SQLite in a thread of their own. */
  readonly search: Tx;
  readonly hints: Hints;
  /** This process among those that share the database; a new one at each start, so that it is never taken for its predecessor. */
  readonly worker_id: number;
  /** False while the database is known not to answer; it costs nothing to ask. */
  isAvailable(): boolean;
  /**
   * Runs `work` in a transaction and answers after its commit. `work` awaits nothing but queries of its
   * `tx`, and may be called again when the database asks for a repeat (deadlock, serialization).
   *
   * @param hint given as soon as a write that comes of it can see this one: after the commit on Postgres; on SQLite
   *   at once, so that the two share one commit
   */
  write<T>(work: (tx: Tx) => Promise<T>, hint?: Hint): Promise<T>;
  /**
   * As `write`, for one statement that waits for no lock and must not wait for other work of this process either: on Postgres
   * it has a connection that no request uses.
   */
  writeNow<T>(work: (tx: Tx) => Promise<T>): Promise<T>;
  /** As `write`, for changes of the schema, which may take as long as they take. */
  migrate<T>(work: (tx: Tx) => Promise<T>): Promise<T>;
  /**
   * Ends transactions in which these processes keep rows locked and do nothing: processes that are frozen or cut off. On SQLite
   * there are none, as the system ends the locks of a process with it.
   */
  freeLocks(worker_ids: readonly number[]): Promise<void>;
  close(): Promise<void>;
}

type AnySelect<O> = SelectQueryBuilder<Schema, never, O>;

/** What differs between the two databases, as named facts. `now_ms()` and `json_contains()` exist on both. */
export interface Dialect {
  readonly name: "sqlite" | "postgres";
  /** Column types for migrations, and what makes a table keep its rows in the order of its primary key. */
  readonly types: {
    readonly sequence: string;
    readonly bigint: string;
    readonly bytes: string;
    readonly clustered: string;
  };
  /** Holds the selected rows until the transaction ends. SQLite has one writer at a time, so there it is nothing. */
  forUpdate<Q>(query: Q): Q;
  /** As {@link forUpdate}, but shared by several holders. */
  forShare<Q>(query: Q): Q;
  /** As {@link forUpdate}, but rows that somebody else holds are left out. */
  skipLocked<Q>(query: Q): Q;
  /** Whether the process that holds a run still has its connection. On SQLite there is one process: the lease decides. */
  workerIsPresent(): RawBuilder<boolean>;
  /** Whether a text has `part` in it, in any case of its letters. */
  containsText(text: Expression<string | null>, part: string): RawBuilder<boolean>;
  /** A field of an object in a JSON text, as text; null where it is not there. */
  jsonText(json: Expression<string | null>, field: string): RawBuilder<string | null>;
  /**
   * The members of a JSON text of an object, as a table: `key`, `kind` (text, number, true, false, null, array, object) and
   * `text`, which holds what the first two say.
   */
  jsonEntries(json: RawBuilder<string | null>): RawBuilder<unknown>;
  /** A number within the JSON text of a column, by its path; null where there is none. */
  jsonNumber(column: string, path: readonly string[]): RawBuilder<number | null>;
  /** Most parameters of a statement. */
  readonly max_parameters: number;
  /** Whether an error says that a unique index would have been violated. */
  isUniqueViolation(error: unknown): boolean;
}

/** Lets dialects call builder methods on queries whose tables they do not care about. */
export const anySelect = (query: unknown): AnySelect<unknown> => query as AnySelect<unknown>;

/** The time of the database, in milliseconds since the epoch: the one clock that all its processes share. */
export const nowMs = sql<number>`now_ms()`;

/** {@link nowMs} as a number, for rows whose times depend on more. */
export async function readNow(tx: Tx): Promise<number> {
  const row = await tx.first(sql<{ now: number }>`select now_ms() as now`.compile(tx.k));
  return (row as { now: number }).now;
}
