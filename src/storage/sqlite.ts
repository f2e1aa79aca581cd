import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync, type SQLInputValue, type StatementSync } from "node:sqlite";
import { DummyDriver, Kysely, SqliteAdapter, SqliteIntrospector, SqliteQueryCompiler, sql } from "kysely";
import type { Clock } from "../lib/clock.ts";
import { contains, isObject } from "../lib/json.ts";
import type { Database, Dialect, Query, Tx } from "./database.ts";
import { GroupCommit } from "./group-commit.ts";
import { LocalHints } from "./hints.ts";
import { makePrivateFile } from "./private-folder.ts";
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
  /** How long a statement waits while another process or thread writes. Default 5 s. */
  busy_timeout_ms?: number;
  /** Who moves the log into the database: a thread of its own (default), or the writer at its commits. */
  checkpointer?: "thread" | "writer";
  /** Pages that each of the two connections keeps in memory. Default 32. */
  cache_mb?: number;
}

/** Opens the embedded database. */
export function openSqlite(options: SqliteOptions): Database {
  mkdirSync(dirname(options.file), { recursive: true, mode: 0o700 });
  makePrivateFile(options.file);
  const writer = connect(options);
  // A second connection only for reads sees the last commit while a group is being written (WAL).
  const reader = connect(options);
  const worker_id = takeNumber(writer);
  // From here on SQLite does not wait for other writers, which would stop this thread: the group does.
  writer.exec("pragma busy_timeout = 0");
  const group = new GroupCommit(writer, transactionOn(writer), busyTimeoutOf(options));
  const hints = new LocalHints();
  const checkpointer = options.checkpointer === "writer" ? undefined : walCheckpointer(options.file);
  checkpointer?.start();
  return {
    description: `SQLite, ${options.file} (synchronous=${options.synchronous})`,
    read: transactionOn(reader),
    hints,
    worker_id,
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

const busyTimeoutOf = ({ busy_timeout_ms = 5_000 }: SqliteOptions) => busy_timeout_ms;

function connect(options: SqliteOptions): DatabaseSync {
  const { file, synchronous, clock, cache_mb = 32 } = options;
  const connection = new DatabaseSync(file);
  // Readers never wait for writers, but for a log to be recovered that a killed process has left.
  connection.exec(`pragma busy_timeout = ${busyTimeoutOf(options)}`);
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

/** The next number of this file: nobody else who opens it ever gets the same. SQLite keeps a number for its users in each file. */
function takeNumber(connection: DatabaseSync): number {
  connection.exec("begin immediate");
  const { user_version } = connection.prepare("pragma user_version").get() as { user_version: number };
  connection.exec(`pragma user_version = ${user_version + 1}; commit`);
  return user_version + 1;
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
