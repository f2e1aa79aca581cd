import { mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";
import type { DatabaseSync, SQLInputValue } from "node:sqlite";
import {
  DummyDriver,
  type Expression,
  Kysely,
  type RawBuilder,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
  sql,
} from "kysely";
import { type BackgroundService, periodicService } from "../../lib/background-service.ts";
import type { Clock } from "../../lib/clock.ts";
import { newId } from "../../lib/ids.ts";
import { WorkerRpc } from "../../lib/worker-rpc.ts";
import { type Database, type Dialect, type Query, type Schema, StatementCache, type Tx } from "../database.ts";
import { createPrivateFile } from "./file-permissions.ts";
import { GroupCommit } from "./group-commit.ts";
import { SharedHints } from "./shared-hints.ts";
import { type ConnectionOptions, connect, type Runner, statementsOf } from "./sqlite-connection.ts";

export interface SqliteOptions {
  /** A missing folder is created. */
  file: string;
  /** With `full`, each commit waits for the disk and survives a power failure. With `normal`, it survives only a crash of the process. */
  synchronous: "full" | "normal";
  clock: Clock;
  /** Maximum wait while another process or thread writes. Default 5 s. */
  busy_timeout_ms?: number;
  /** What copies the write-ahead log into the database: a separate thread (default), or the writer when it commits. */
  checkpointer?: "thread" | "writer";
  /** Size of each connection's page cache, in MB. Default: 32. */
  cache_mb?: number;
}

export function openSqlite(options: SqliteOptions): Database {
  mkdirSync(dirname(options.file), { recursive: true, mode: 0o700 });
  createPrivateFile(options.file);
  const settings = {
    file: options.file,
    busy_timeout_ms: options.busy_timeout_ms ?? 5_000,
    synchronous: options.synchronous,
    cache_mb: options.cache_mb ?? 32,
    now: () => options.clock.now(),
  };
  const writer = connect(settings);
  // In WAL mode this connection reads the last commit while a group is being written.
  const reader = connect(settings);
  const searcher = searchThread(settings);
  const worker_id = nextWorkerId(writer);
  const hints = new SharedHints(options.file, worker_id);
  const txOn = (runner: Runner) => createTx(runner, dialectWithout(hints.lost));
  // SQLite's own wait for other writers would block this thread. GroupCommit waits instead.
  writer.exec("pragma busy_timeout = 0");
  const group = new GroupCommit(writer, txOn(runnerOn(writer)), settings.busy_timeout_ms);
  const checkpointer = options.checkpointer === "writer" ? undefined : walCheckpointer(options.file);
  checkpointer?.start();
  return {
    description: `SQLite, ${options.file} (synchronous=${options.synchronous})`,
    read: txOn(runnerOn(reader)),
    search: txOn(searcher),
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
      hints.close();
      reader.close();
      writer.close();
    },
  };
}

/** Returns a number that is unique among the processes that open this file. SQLite reserves `user_version` for applications. */
function nextWorkerId(connection: DatabaseSync): number {
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
  containsText: (text, part) => containsText(text, part.toLowerCase()),
  jsonText: (json, field) => sql<string | null>`json_text(${json}, ${field})`,
  jsonEntries: (json) => sql`(select key, cast(value as text) as text,
    case type when 'integer' then 'number' when 'real' then 'number' else type end as kind from json_each(${json}))`,
  jsonNumber: (column, path) =>
    sql<
      number | null
    >`json_extract(${sql.ref(column)}, ${`$${path.map((part) => `.${JSON.stringify(part)}`).join("")}`})`,
  jsonCompare: (column, field, operator, value) => {
    const path = `$.${JSON.stringify(field)}`;
    const type = sql`json_type(${sql.ref(column)}, ${path})`;
    // json_extract returns 1 and 0 for true and false, so the JSON type is compared instead of the value.
    if (typeof value === "boolean" || value === null) return sql<boolean>`coalesce(${type} = ${String(value)}, false)`;
    const types = typeof value === "string" ? sql`('text')` : sql`('integer', 'real')`;
    return sql<boolean>`coalesce(${type} in ${types}
      and json_extract(${sql.ref(column)}, ${path}) ${sql.raw(operator)} ${value}, false)`;
  },
  matchingText: (text, pattern) => sql<string | null>`matching_text(${text}, ${pattern})`,
  joinNumbers: (number) => sql<string | null>`group_concat(${number})`,
  max_parameters: 32_000,
  isUniqueViolation: (error) => /UNIQUE constraint failed/.test((error as Error)?.message),
};

/**
 * Ignores case as `toLowerCase` in JavaScript does. Each text that a JavaScript function gets is converted to a string, so a pattern
 * excludes most texts before: a search in 260 MB takes 0.5 instead of 1.5 s.
 */
function containsText(text: Expression<string | null>, word: string): RawBuilder<boolean> {
  const contains = sql<boolean>`text_contains(${text}, ${word})`;
  const pattern = likePattern(word);
  return pattern === undefined ? contains : sql<boolean>`(${text} like ${pattern} escape '\\' and ${contains})`;
}

/** In texts such as "aaaa", `like` compares the whole pattern at each position: 1,000 characters took 170 s for 50 MB, 8 take 2 s. */
const MAX_PATTERN_CHARS = 8;

/**
 * Returns a pattern that matches every text with the word, in lower case or not. `like` ignores the case of ASCII letters only, so `_`
 * replaces other letters, and the ASCII letters that are the lower case of another character: k (U+212A) and a last i (U+0130).
 */
function likePattern(word: string): string | undefined {
  // A character has at most two units. Cutting between them would leave half a character.
  const start = [...word.slice(0, 2 * MAX_PATTERN_CHARS)].slice(0, MAX_PATTERN_CHARS).join("");
  // U+0130 has two characters in lower case; the second is U+0307.
  if (start.includes("\u0307")) return undefined;
  const escaped = start.replaceAll(/[%_\\]/g, "\\$&");
  const pattern = escaped.replaceAll(/k|i$|[^\0-\x7f]/gu, (letter) => (letter.toUpperCase() === letter ? letter : "_"));
  return /[^_]/.test(pattern) ? `%${pattern}%` : undefined;
}

function runnerOn(connection: DatabaseSync): Runner {
  const prepare = statementsOf(connection);
  return {
    all: async (sql, parameters) => prepare(sql).all(parameters),
    first: async (sql, parameters) => prepare(sql).first(parameters),
    run: async (sql, parameters) => prepare(sql).run(parameters),
  };
}

/** @param lost ids of processes that have ended */
const dialectWithout = (lost: ReadonlySet<number>): Dialect => ({
  ...dialect,
  workerIsPresent: () =>
    lost.size === 0 ? dialect.workerIsPresent() : sql<boolean>`worker_id not in (${sql.join([...lost])})`,
});

function createTx(runner: Runner, dialect: Dialect): Tx {
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
    statements: new StatementCache(),
    dialect,
    all: <R>(query: Query<R>) => runner.all(...compiled(query)) as Promise<R[]>,
    first: <R>(query: Query<R>) => runner.first(...compiled(query)) as Promise<R | undefined>,
    run: (query) => runner.run(...compiled(query)),
    enqueue: async (query) => void (await runner.run(...compiled(query))),
    newId,
  };
}

/** `now` is the time that `now_ms()` returns in the query. */
export type SearchOperations = {
  all(now: number, sql: string, parameters: SQLInputValue[]): unknown[];
  first(now: number, sql: string, parameters: SQLInputValue[]): unknown;
};

/** Runs searches in a separate thread, because a search over many rows would delay other requests. */
function searchThread({ now, ...connection }: ConnectionOptions): Runner & { close(): Promise<void> } {
  const worker = new WorkerRpc<SearchOperations>({
    entry: new URL("./sqlite-search-thread", import.meta.url),
    name: "sqlite search",
    workerData: connection,
  });
  return {
    all: (sql, parameters) => worker.call("all", [now(), sql, parameters]),
    first: (sql, parameters) => worker.call("first", [now(), sql, parameters]),
    async run() {
      throw new Error("The search connection is read-only.");
    },
    close: () => worker.terminate(),
  };
}

export type CheckpointOperations = { checkpoint(): unknown };

const WAL_CHECK_INTERVAL_MS = 250;

/** Smaller logs are not copied. */
const MIN_CHECKPOINT_BYTES = 4 * 1024 * 1024;

/**
 * Copies the write-ahead log into the database in a thread. On the serving thread this took 20 % of the time under load. The thread never
 * blocks a writer. The less frequent checkpoints of the writer copy the rest, even if the thread fails.
 */
function walCheckpointer(file: string): BackgroundService {
  const thread = new WorkerRpc<CheckpointOperations>({
    entry: new URL("./wal-checkpointer-thread", import.meta.url),
    name: "wal checkpointer",
    workerData: file,
    resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 2 },
  });
  const check = async () => {
    const log = statSync(`${file}-wal`, { throwIfNoEntry: false });
    if ((log?.size ?? 0) >= MIN_CHECKPOINT_BYTES) await thread.call("checkpoint", []);
  };
  const checking = periodicService(WAL_CHECK_INTERVAL_MS, check, () => undefined);
  return {
    start: () => checking.start(),
    async stop() {
      await checking.stop();
      await thread.terminate();
    },
  };
}
