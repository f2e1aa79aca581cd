import pg from "pg";

/** The server on which the benchmark creates its databases. */
const POSTGRES = process.env.BENCH_DATABASE_URL ?? "postgres://postgres@127.0.0.1:5432/postgres";

/** Creates an empty database, in place of an existing one, and returns its URL. */
export async function createDatabase(name: string): Promise<string> {
  await query(`drop database if exists ${name} with (force)`);
  await query(`create database ${name}`);
  const url = new URL(POSTGRES);
  url.pathname = `/${name}`;
  return url.href;
}

export async function query(statement: string, connectionString = POSTGRES): Promise<void> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  await client.query(statement).finally(() => client.end());
}
