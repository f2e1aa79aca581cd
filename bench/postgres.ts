import pg from "pg";

/** The server on which the benchmark creates its databases. */
const POSTGRES = process.env.BENCH_DATABASE_URL ?? "postgres://postgres@127.0.0.1:5432/postgres";

export const BENCH_DATABASE = "threadmill_bench";

/** Creates an empty database, in place of an existing one, and returns its URL. */
export async function createDatabase(name: string): Promise<string> {
  await query(`drop database if exists ${name} with (force)`);
  await query(`create database ${name}`);
  return urlOf(name);
}

function urlOf(name: string): string {
  const url = new URL(POSTGRES);
  url.pathname = `/${name}`;
  return url.href;
}

/** @returns the rows of the (last) statement */
export async function query(statement: string, connectionString = POSTGRES): Promise<pg.QueryResultRow[]> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  const result = await client.query(statement).finally(() => client.end());
  return [result].flat().at(-1)?.rows ?? [];
}

/** Queries the database of `threadmill-postgres`. */
export const queryBench = (statement: string): Promise<pg.QueryResultRow[]> => query(statement, urlOf(BENCH_DATABASE));
