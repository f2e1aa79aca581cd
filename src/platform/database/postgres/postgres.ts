import { randomInt } from "node:crypto";
import {
  DummyDriver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type SelectQueryBuilder,
  sql,
} from "kysely";
import pg from "pg";
import { newId } from "../../lib/ids.ts";
import type { Log } from "../../lib/log.ts";
import {
  type Database,
  type Dialect,
  POOL_SIZE,
  type Query,
  type Schema,
  StatementCache,
  type Tx,
} from "../database.ts";
import type { Hint } from "../hints.ts";
import { PostgresHints, PRESENCE_LOCK_CLASS, presenceLock, RESPONSE_TIMEOUT_MS } from "./postgres-hints.ts";
import { inTransaction, PostgresPool, type Transaction } from "./postgres-pool.ts";
import { isOutdated, StatementNames } from "./statement-names.ts";

export interface PostgresOptions {
  url: string;
  /**
   * URL of PgBouncer in transaction mode, which leads to the same database. All queries use it. Only the connection for hints uses `url`,
   * because it listens for notifications and holds the lock that shows the presence of the process.
   */
  pooler_url?: string | undefined;
  log: Log;
  /** Maximum connections for queries. One more connection is for notifications. */
  pool_size?: number;
  /** Idle timeout of transactions: a process that hangs loses its runs after this time, and Postgres releases its locks. Default: 4 s. */
  lease_ms?: number | undefined;
}

const LOCK_TIMEOUT_MS = 4_000;
const STATEMENT_TIMEOUT_MS = 60_000;
/** Timeout in the client, for a server that does not report the statement timeout. */
const QUERY_TIMEOUT_MS = STATEMENT_TIMEOUT_MS + 5_000;
/** pg sets no timer for this value. */
const NO_TIMEOUT = 0;
const KEEP_ALIVE_MS = 10_000;

const anySelect = (query: unknown) => query as SelectQueryBuilder<Schema, never, unknown>;

const dialect: Dialect = {
  name: "postgres",
  types: {
    sequence: "bigint generated always as identity primary key",
    bigint: "bigint",
    bytes: "bytea",
    clustered: "",
  },
  forUpdate: (query) => anySelect(query).forUpdate() as typeof query,
  forShare: (query) => anySelect(query).forShare() as typeof query,
  skipLocked: (query) => anySelect(query).forUpdate().skipLocked() as typeof query,
  workerIsPresent: () =>
    sql<boolean>`worker_id in (select objid::bigint from pg_locks where locktype = 'advisory' and classid = ${sql.lit(PRESENCE_LOCK_CLASS)})`,
  containsText: (text, part) => sql<boolean>`strpos(lower(${text}), ${part.toLowerCase()}) > 0`,
  jsonText: (json, field) => sql<string | null>`(${json})::jsonb ->> ${field}`,
  jsonEntries: (json) => sql`(select key, value #>> '{}' as text,
    case jsonb_typeof(value) when 'string' then 'text' when 'boolean' then value::text else jsonb_typeof(value) end as kind
    from jsonb_each((${json})::jsonb))`,
  jsonNumber: (column, path) => sql<number | null>`((${sql.ref(column)})::jsonb #>> ${path}::text[])::double precision`,
  jsonCompare: (column, field, operator, value) => {
    const member = sql`(${sql.ref(column)})::jsonb -> ${field}::text`;
    const json = sql`${JSON.stringify(value)}::jsonb`;
    const compared =
      typeof value === "string" && operator !== "="
        ? sql`((${sql.ref(column)})::jsonb ->> ${field}::text) collate "C" ${sql.raw(operator)} ${value}`
        : sql`${member} ${sql.raw(operator)} ${json}`;
    return sql<boolean>`coalesce(jsonb_typeof(${member}) = jsonb_typeof(${json}) and ${compared}, false)`;
  },
  matchingText: (text, pattern) => sql<string | null>`substring(${text}, ${pattern}::text)`,
  joinNumbers: (number) => sql<string | null>`string_agg((${number})::text, ',')`,
  max_parameters: 60_000,
  isUniqueViolation: (error) => (error as { code?: string })?.code === "23505",
};

/** 64-bit integers are times and counters far below 2^53. */
const types: pg.CustomTypesConfig = {
  getTypeParser: (id, format) => (id === pg.types.builtins.INT8 ? Number : pg.types.getTypeParser(id, format)),
};

/** Opens a Postgres database. The connections of the pool are opened when they are needed. */
export function openPostgres(options: PostgresOptions): Database {
  const { url, pooler_url, log, pool_size: size = POOL_SIZE, lease_ms = 4_000 } = options;
  const worker_id = randomInt(1, 2 ** 31 - 1);
  const config: pg.PoolConfig = {
    connectionString: withoutApplicationName(url),
    types,
    application_name: applicationName(worker_id),
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
  };
  const timeouts = { lock_timeout: LOCK_TIMEOUT_MS, statement_timeout: STATEMENT_TIMEOUT_MS };
  const settings = { ...timeouts, idle_in_transaction_session_timeout: lease_ms };
  // PgBouncer refuses settings as startup parameters, and gives each transaction to any connection, with the settings of others.
  const pool_options = pooler_url
    ? { config: { ...config, connectionString: withoutApplicationName(pooler_url) } }
    : { config, prepare: `${setAll(settings)} ${presenceLock(worker_id)}` };
  const begin = pooler_url ? `begin; ${setAll(settings, "local")}` : "begin";
  const names = new StatementNames(pooler_url ? { max: 0 } : {});
  const pool = new PostgresPool({ ...pool_options, size, log });
  const hints = new PostgresHints({ config, worker_id, pool, names, log });
  void hints.connect();
  const k = queryBuilder();
  const statements = new StatementCache();
  const txOn = (send: Send, query_timeout = QUERY_TIMEOUT_MS, transaction?: Transaction) =>
    createTx(send, { k, statements, names, query_timeout, transaction });
  /** For statements outside of a transaction. */
  const repeated =
    (send: Send): Send =>
    (query) =>
      send(query).catch((error) => {
        if (!isOutdated(error)) throw error;
        names.clear();
        return send({ ...query, name: undefined });
      });
  const read = txOn(repeated((query) => pool.use((client) => client.query(query))));
  const write = async <T>(work: (tx: Tx) => Promise<T>, hint?: Hint, timeout_ms?: number) => {
    const value = await inTransaction(pool, { begin, timeout_ms: QUERY_TIMEOUT_MS }, (transaction) =>
      work(txOn((query) => transaction.client.query(query), timeout_ms, transaction)),
    );
    if (hint) hints.emit(hint);
    return value;
  };
  return {
    description: `Postgres, ${withoutPassword(url)}`,
    read,
    search: read,
    hints,
    worker_id,
    isAvailable: () => !pool.isSuspended,
    connections: () => pool.connections,
    write,
    writeNow(work) {
      const { connection } = hints;
      const send: Send = (query) => (connection as pg.Client).query(query);
      return connection ? work(txOn(repeated(send), RESPONSE_TIMEOUT_MS)) : write(work);
    },
    migrate(work) {
      const withoutTimeouts = async (tx: Tx) => {
        for (const name of ["lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout"])
          await tx.run(sql`set local ${sql.raw(name)} = 0`.compile(k));
        return work(tx);
      };
      return write(withoutTimeouts, undefined, NO_TIMEOUT);
    },
    async freeLocks(worker_ids) {
      await read.run(freeLocksOf(worker_ids).compile(k));
    },
    async close() {
      await hints.close();
      await pool.close();
    },
  };
}

const setAll = (settings: Record<string, number>, scope: "session" | "local" = "session"): string =>
  Object.entries(settings)
    .map(([name, value]) => `set ${scope} ${name} = ${value};`)
    .join(" ");

/** {@link freeLocksOf} finds connections by this name. */
const applicationName = (worker_id: number): string => `threadmill ${worker_id}`;

/** Returns a query that ends transactions that have been idle for 500 ms. The statement timeout ends active transactions. */
const freeLocksOf = (worker_ids: readonly number[]) => sql`
  select pg_terminate_backend(pid) from pg_stat_activity
  where datname = current_database() and application_name = any(${worker_ids.map(applicationName)}::text[])
    and state like 'idle in transaction%' and state_change < clock_timestamp() - interval '500 milliseconds'`;

const queryBuilder = () =>
  new Kysely<Schema>({
    dialect: {
      createAdapter: () => new PostgresAdapter(),
      createDriver: () => new DummyDriver(),
      createIntrospector: (db) => new PostgresIntrospector(db),
      createQueryCompiler: () => new PostgresQueryCompiler(),
    },
  });

/** The types of pg do not declare `query_timeout`. */
type Send = (query: pg.QueryConfig & { name: string | undefined; query_timeout: number }) => Promise<pg.QueryResult>;

interface TxOptions extends Pick<Tx, "k" | "statements"> {
  names: StatementNames;
  query_timeout: number;
  /** Undefined outside of a transaction. */
  transaction: Transaction | undefined;
}

function createTx(send: Send, { k, statements, names, query_timeout, transaction }: TxOptions): Tx {
  /** Sends a statement, and returns its answer in an object, because the caller may not wait for it. */
  const start = async (query: Query<unknown>) => {
    // The text of a builder can differ with each request.
    const isFixed = !("compile" in query);
    const { sql: text, parameters } = isFixed ? query : query.compile();
    const wait = transaction?.before(text);
    if (wait) await wait;
    const name = isFixed ? names.nameOf(text) : undefined;
    const answer = send({ name, text, values: parameters as unknown[], query_timeout }).catch((error) => {
      if (isOutdated(error)) names.clear();
      throw error;
    });
    return { answer };
  };
  const execute = async (query: Query<unknown>) => {
    const { answer } = await start(query);
    try {
      return await answer;
    } catch (error) {
      await transaction?.answered();
      throw error;
    }
  };
  return {
    k,
    statements,
    dialect,
    all: async <R>(query: Query<R>) => (await execute(query)).rows as R[],
    first: async <R>(query: Query<R>) => (await execute(query)).rows[0] as R | undefined,
    run: async (query) => (await execute(query)).rowCount ?? 0,
    async enqueue(query) {
      const { answer } = await start(query);
      if (transaction) transaction.add(answer);
      else await answer;
    },
    newId,
  };
}

/** Removes the application name from the URL, because it would override the option. */
function withoutApplicationName(url: string): string {
  const parsed = new URL(url);
  parsed.searchParams.delete("application_name");
  return parsed.href;
}

function withoutPassword(url: string): string {
  const { protocol, host, pathname } = new URL(url);
  return `${protocol}//${host}${pathname}`;
}
