import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync, type SQLInputValue, type StatementSync } from "node:sqlite";
import { DummyDriver, Kysely, SqliteAdapter, SqliteIntrospector, SqliteQueryCompiler, sql } from "kysely";
import type { Clock } from "../lib/clock.ts";
import { contains, isObject } from "../lib/json.ts";
import type { Database, Dialect, Query, Tx } from "./database.ts";
import { LocalHints } from "./hints.ts";
import type { Schema } from "./schema.ts";
import { walCheckpointer } from "./wal-checkpointer.ts";

export interface SqliteOptions {
  /** Path of the database file; its folder is made when missing. */
  file: string;
  /**
   * `full` waits for the disk at each commit and survives a power cut; `normal` survives the death of the
   * process, not of the machine.
   */
  synchronous: "full" | "normal";
  clock: Clock;
  /** How long a statement waits while another thread writes. Default 2 s. */
  busy_timeout_ms?: number;
  /** Who moves the log into the database: a thread of its own (default), or the writer at its commits. */
  checkpointer?: "thread" | "writer";
  /** Pages that each of the two connections keeps in memory. Default 32. */
  cache_mb?: number;
}

/** Opens the embedded database. */
export function openSqlite(options: SqliteOptions): Database {
  mkdirSync(dirname(options.file), { recursive: true });
  const writer = connect(options);
  // A second connection only for reads sees the last commit while a group is being written (WAL).
  const reader = connect(options);
  const group = new GroupCommit(writer);
  const hints = new LocalHints();
  const checkpointer = options.checkpointer === "writer" ? undefined : walCheckpointer(options.file);
  checkpointer?.start();
  return {
    description: `SQLite, ${options.file} (synchronous=${options.synchronous})`,
    read: transactionOn(reader),
    hints,
    worker_id: options.clock.now(),
    write(work, hint) {
      const written = group.add(work);
      if (hint) hints.emit(hint);
      return written;
    },
    async close() {
      await group.drained();
      await checkpointer?.stop();
      reader.close();
      writer.close();
    },
  };
}

function connect({ file, synchronous, clock, busy_timeout_ms = 2000, cache_mb = 32 }: SqliteOptions): DatabaseSync {
  const connection = new DatabaseSync(file);
  connection.exec(`pragma busy_timeout = ${busy_timeout_ms}`);
  connection.exec("pragma journal_mode = wal");
  connection.exec(`pragma synchronous = ${synchronous}`);
  connection.exec(`pragma cache_size = -${cache_mb * 1000}`); // KiB
  // Only finishes, every 32 MB, what the checkpointer's thread has begun (wal-checkpointer.ts).
  connection.exec("pragma wal_autocheckpoint = 8000");
  connection.function("now_ms", () => clock.now());
  connection.function("json_contains", { deterministic: true }, (whole, part) =>
    contains(JSON.parse(String(whole ?? "null")), JSON.parse(String(part))) ? 1 : 0,
  );
  // SQLite's own lower() knows the letters of ASCII alone.
  connection.function("text_contains", { deterministic: true }, (text, part) =>
    text === null ? null : Number(String(text).toLowerCase().includes(String(part))),
  );
  connection.function("json_text", { deterministic: true }, (json, field) => fieldText(json, String(field)));
  return connection;
}

/** What Postgres' `->>` answers. */
function fieldText(json: unknown, field: string): string | null {
  if (typeof json !== "string") return null;
  const object: unknown = JSON.parse(json);
  const value = isObject(object) && Object.hasOwn(object, field) ? object[field] : null;
  return value === null ? null : typeof value === "object" ? JSON.stringify(value) : String(value);
}

const dialect: Dialect = {
  name: "sqlite",
  types: {
    sequence: "integer primary key autoincrement",
    bigint: "integer",
    bytes: "blob",
    clustered: "without rowid",
  },
  forUpdate: (query) => query,
  forShare: (query) => query,
  skipLocked: (query) => query,
  workerIsPresent: () => sql<boolean>`1 = 1`,
  containsText: (text, part) => sql<boolean>`text_contains(${text}, ${part.toLowerCase()})`,
  jsonText: (json, field) => sql<string | null>`json_text(${json}, ${field})`,
  jsonEntries: (json) => sql`(select key, cast(value as text) as text,
    case type when 'integer' then 'number' when 'real' then 'number' else type end as kind from json_each(${json}))`,
  jsonNumber: (column, path) =>
    sql<
      number | null
    >`json_extract(${sql.ref(column)}, ${`$${path.map((part) => `.${JSON.stringify(part)}`).join("")}`})`,
  most_parameters: 32_000,
  isUniqueViolation: (error) => /UNIQUE constraint failed/.test((error as Error)?.message),
};

/** Statements are compiled once and kept; past this many the oldest goes (rows-per-insert make variants). */
const KEPT_STATEMENTS = 400;

function transactionOn(connection: DatabaseSync): Tx {
  const statements = new Map<string, StatementSync>();
  const prepare = (query: Query<unknown>): [StatementSync, SQLInputValue[]] => {
    const { sql, parameters } = "compile" in query ? query.compile() : query;
    let statement = statements.get(sql);
    if (!statement) {
      statement = connection.prepare(sql);
      statements.set(sql, statement);
      if (statements.size > KEPT_STATEMENTS) statements.delete(statements.keys().next().value as string);
    }
    return [statement, parameters as SQLInputValue[]];
  };
  return {
    k: new Kysely<Schema>({
      dialect: {
        createAdapter: () => new SqliteAdapter(),
        createDriver: () => new DummyDriver(),
        createIntrospector: (db) => new SqliteIntrospector(db),
        createQueryCompiler: () => new SqliteQueryCompiler(),
      },
    }),
    dialect,
    async all<R>(query: Query<R>) {
      const [statement, parameters] = prepare(query);
      return statement.all(...parameters) as R[];
    },
    async first<R>(query: Query<R>) {
      const [statement, parameters] = prepare(query);
      return statement.get(...parameters) as R | undefined;
    },
    async run(query) {
      const [statement, parameters] = prepare(query);
      return Number(statement.run(...parameters).changes);
    },
  };
}

interface Work {
  run(tx: Tx): Promise<unknown>;
  resolve(value: unknown): void;
  reject(reason: unknown): void;
}

/**
 * All writes that arrive within one turn of the event loop share one transaction, and so one wait for the
 * disk. Each has a savepoint of its own: one that fails undoes only itself.
 *
 * Queries on SQLite finish at once, so a whole group runs in one go of promise callbacks; no timer, socket
 * or other group comes between.
 */
class GroupCommit {
  readonly #connection: DatabaseSync;
  readonly #begin: StatementSync;
  readonly #commit: StatementSync;
  readonly #savepoint: StatementSync;
  readonly #release: StatementSync;
  readonly #tx: Tx;
  readonly #queue: Work[] = [];
  #scheduled = false;
  #idle: Promise<void> = Promise.resolve();

  constructor(connection: DatabaseSync) {
    this.#connection = connection;
    this.#tx = transactionOn(connection);
    // Compiled once: parsing them at each commit was 14 % of the serving thread.
    this.#begin = connection.prepare("begin immediate");
    this.#commit = connection.prepare("commit");
    this.#savepoint = connection.prepare("savepoint work");
    this.#release = connection.prepare("release work");
  }

  add<T>(run: (tx: Tx) => Promise<T>): Promise<T> {
    // Somebody may come back to it late, with what a provider has answered after the service was stopped.
    if (!this.#connection.isOpen) return Promise.reject(new Error("The database is closed."));
    return new Promise<T>((resolve, reject) => {
      this.#queue.push({ run, resolve: resolve as (value: unknown) => void, reject });
      this.#schedule();
    });
  }

  async drained(): Promise<void> {
    while (this.#scheduled || this.#queue.length > 0) {
      await this.#idle;
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#idle = this.#commitGroup().finally(() => {
        this.#scheduled = false;
        if (this.#queue.length > 0) this.#schedule();
      });
    });
  }

  async #commitGroup(): Promise<void> {
    const group = this.#queue.splice(0);
    const settle: (() => void)[] = [];
    try {
      this.#begin.run();
      for (const work of group) settle.push(await this.#runOne(work, group.length === 1));
      this.#commit.run();
    } catch (error) {
      if (this.#connection.isTransaction) this.#connection.exec("rollback");
      for (const work of group) work.reject(error);
      return;
    }
    for (const done of settle) done();
  }

  /** Runs one piece of work and says how to report it once the group is committed. A lone one needs no savepoint. */
  async #runOne(work: Work, alone: boolean): Promise<() => void> {
    if (!alone) this.#savepoint.run();
    try {
      const value = await work.run(this.#tx);
      if (!alone) this.#release.run();
      return () => work.resolve(value);
    } catch (error) {
      if (!this.#connection.isTransaction) throw error;
      this.#connection.exec(alone ? "rollback" : "rollback to work");
      if (alone) this.#begin.run();
      else this.#release.run();
      return () => work.reject(error);
    }
  }
}
