import { sql } from "kysely";
import type { Database, Query } from "../../src/platform/database/database.ts";

/** How SQLite would find what a function asks for. */
export async function planOf(database: Database, ask: (tx: Database["read"]) => Promise<unknown>): Promise<string> {
  const { read } = database;
  let plan = "";
  const explain = async <R>(query: Query<R>): Promise<R[]> => {
    const { sql: text, parameters } = "compile" in query ? query.compile() : query;
    const explained = {
      ...sql<{ detail: string }>`select 1`.compile(read.k),
      sql: `explain query plan ${text}`,
      parameters,
    };
    plan = (await read.all<{ detail: string }>(explained)).map(({ detail }) => detail).join("\n");
    return [];
  };
  const first = async (query: Query<unknown>) => (await explain(query))[0];
  await ask({ ...read, all: explain, first } as Database["read"]);
  return plan;
}
