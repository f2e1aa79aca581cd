import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import type { DatabaseSync, SQLInputValue } from "node:sqlite";
import { DummyDriver, Kysely, SqliteAdapter, SqliteIntrospector, SqliteQueryCompiler, sql } from "kysely";
import type { Clock } from "../../lib/clock.ts";
import type { Database, Dialect, Query, Tx } from "../database.ts";
import { LocalHints } from "../hints.ts";
import type { Schema } from "../schema.ts";
import { GroupCommit } from "./group-commit.ts";
import { makePrivateFile } from "./private-folder.ts";
import { connect, type Runner, statementsOf } from "./sqlite-connection.ts";
import { searchThread } from "./sqlite-search.ts";
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
  const settings = {
    file: options.file,
    busy_timeout_ms: busyTimeoutOf(options),
    synchronous: options.synchronous,
    cache_mb: options.cache_mb ?? 32,
    now: () => options.clock.now(),
  };
  const writer = connect(settings);
  // A second connection only for reads sees the last commit while a group is being written (WAL).
  const reader = connect(settings);
  const searcher = searchThread(settings);
  const worker_id = takeNumber(writer);
  // From here on SQLite does not wait for other writers, which would stop this thread: the group does.
  writer.exec("pragma busy_timeout = 0");
  const group = new GroupCommit(writer, transactionOn(runnerOn(writer)), settings.busy_timeout_ms);
  const hints = new LocalHints();
  const checkpointer = options.checkpointer === "writer" ? undefined : walCheckpointer(options.file);
  checkpointer?.start();
  return {
    description: `SQLite, ${options.file} (synchronous=${options.synchronous})`,
    read: transactionOn(runnerOn(reader)),
    search: transactionOn(searcher),
    hints,
    worker_id,
    write(work, hint) {
      const written = group.add(work);
      if (hint) hints.emit(hint);
      return written;
    },
    isAvailable: () => true,
    writeNow: (work) => group.add(work),
    migrate: (work) => group.add(work),
    freeLocks: async () => undefined,
    async close() {
      await group.drained();
      await checkpointer?.stop();
      await searcher.close();
      reader.close();
      writer.close();
    },
  };
}

const busyTimeoutOf = ({ busy_timeout_ms = 5_000 }: SqliteOptions) => busy_timeout_ms;

/** The next number of this file: nobody else who opens it ever gets the same. SQLite keeps a number for its users in each file. */
function takeNumber(connection: DatabaseSync): number {
  connection.exec("begin immediate");
  const { user_version } = connection.prepare("pragma user_version").get() as { user_version: number };
  connection.exec(`pragma user_version = ${user_version + 1}; commit`);
  return user_version + 1;
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
  max_parameters: 32_000,
  isUniqueViolation: (error) => /UNIQUE constraint failed/.test((error as Error)?.message),
};

function runnerOn(connection: DatabaseSync): Runner {
  const prepare = statementsOf(connection);
  return {
    all: async (sql, parameters) => prepare(sql).all(...parameters),
    first: async (sql, parameters) => prepare(sql).get(...parameters),
    run: async (sql, parameters) => Number(prepare(sql).run(...parameters).changes),
  };
}

function transactionOn(runner: Runner): Tx {
  const compiled = (query: Query<unknown>): [string, SQLInputValue[]] => {
    const { sql, parameters } = "compile" in query ? query.compile() : query;
    return [sql, parameters as SQLInputValue[]];
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
    all: <R>(query: Query<R>) => runner.all(...compiled(query)) as Promise<R[]>,
    first: <R>(query: Query<R>) => runner.first(...compiled(query)) as Promise<R | undefined>,
    run: (query) => runner.run(...compiled(query)),
  };
}
