import { randomInt } from "node:crypto";
import { DummyDriver, Kysely, PostgresAdapter, PostgresIntrospector, PostgresQueryCompiler, sql } from "kysely";
import pg from "pg";
import type { Log } from "../lib/log.ts";
import { anySelect, type Database, type Dialect, type Query, type Tx } from "./database.ts";
import { PostgresHints, PRESENCE } from "./postgres-hints.ts";
import type { Schema } from "./schema.ts";

export interface PostgresOptions {
  /** postgres://user:password@host:port/database */
  url: string;
  log: Log;
  /** Connections for queries; one more is kept for hints. */
  pool_size?: number;
}

/** Errors after which a transaction is simply repeated: serialization failure and deadlock. */
const REPEATABLE = new Set(["40001", "40P01"]);
const MAX_REPEATS = 5;

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
    sql<boolean>`worker_id in (select objid::bigint from pg_locks where locktype = 'advisory' and classid = ${sql.lit(PRESENCE)})`,
  containsText: (text, part) => sql<boolean>`strpos(lower(${text}), ${part.toLowerCase()}) > 0`,
  jsonText: (json, field) => sql<string | null>`(${json})::jsonb ->> ${field}`,
  jsonEntries: (json) => sql`(select key, value #>> '{}' as text,
    case jsonb_typeof(value) when 'string' then 'text' when 'boolean' then value::text else jsonb_typeof(value) end as kind
    from jsonb_each((${json})::jsonb))`,
  jsonNumber: (column, path) => sql<number | null>`((${sql.ref(column)})::jsonb #>> ${path}::text[])::double precision`,
  most_parameters: 60_000,
  isUniqueViolation: (error) => (error as { code?: string })?.code === "23505",
};

/** 64-bit integers are times and counters here; all are far below 2^53. */
const types: pg.CustomTypesConfig = {
  getTypeParser: (id, format) => (id === pg.types.builtins.INT8 ? Number : pg.types.getTypeParser(id, format)),
};

/** Opens a Postgres database. Connections are made when they are first needed. */
export function openPostgres(options: PostgresOptions): Database {
  const pool = new pg.Pool({
    connectionString: options.url,
    max: options.pool_size ?? 10,
    types,
    application_name: "threadmill",
  });
  // A connection that breaks is replaced by the pool; without a listener it would end the process. The pool listens to idle
  // ones alone, and one may break between two queries of a transaction, whose next query then fails.
  pool.on("error", () => undefined);
  pool.on("connect", (client) => {
    client.on("error", (error) => options.log.warn({ error: error.message }, "a database connection broke"));
  });
  const worker_id = randomInt(1, 2 ** 31 - 1);
  const hints = new PostgresHints(options.url, worker_id, pool, options.log);
  void hints.connect();
  const read = transactionOn(pool, buildOnly());
  return {
    description: `Postgres, ${withoutPassword(options.url)}`,
    read,
    search: read,
    hints,
    worker_id,
    async write(work, hint) {
      const value = await inTransaction(pool, read.k, work);
      if (hint) hints.emit(hint);
      return value;
    },
    async close() {
      await hints.close();
      await pool.end();
    },
  };
}

const buildOnly = () =>
  new Kysely<Schema>({
    dialect: {
      createAdapter: () => new PostgresAdapter(),
      createDriver: () => new DummyDriver(),
      createIntrospector: (db) => new PostgresIntrospector(db),
      createQueryCompiler: () => new PostgresQueryCompiler(),
    },
  });

function transactionOn(client: pg.Pool | pg.PoolClient, k: Kysely<Schema>): Tx {
  const send = (query: Query<unknown>) => {
    const { sql, parameters } = "compile" in query ? query.compile() : query;
    return client.query(sql, parameters as unknown[]);
  };
  return {
    k,
    dialect,
    all: async <R>(query: Query<R>) => (await send(query)).rows as R[],
    first: async <R>(query: Query<R>) => (await send(query)).rows[0] as R | undefined,
    run: async (query) => (await send(query)).rowCount ?? 0,
  };
}

async function inTransaction<T>(pool: pg.Pool, k: Kysely<Schema>, work: (tx: Tx) => Promise<T>): Promise<T> {
  for (let repeat = 0; ; repeat++) {
    const client = await pool.connect();
    let broken: Error | undefined;
    try {
      await client.query("begin");
      const value = await work(transactionOn(client, k));
      await client.query("commit");
      return value;
    } catch (error) {
      await client.query("rollback").catch((failure: Error) => {
        broken = failure;
      });
      if (!REPEATABLE.has((error as { code?: string }).code ?? "") || repeat === MAX_REPEATS) throw error;
    } finally {
      client.release(broken);
    }
  }
}

function withoutPassword(url: string): string {
  const { protocol, host, pathname } = new URL(url);
  return `${protocol}//${host}${pathname}`;
}
