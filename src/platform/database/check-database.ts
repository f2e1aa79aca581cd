import { sql } from "kysely";
import { DatabaseUnavailableError } from "../lib/unavailable.ts";
import type { Database } from "./database.ts";

/**
 * @param asks also for a sign of life, and not only whether the database is known to be away
 * @throws DatabaseUnavailableError, or what the driver says
 */
export async function checkDatabase(database: Database, { asks }: { asks: boolean }): Promise<void> {
  if (!database.isAvailable()) throw new DatabaseUnavailableError("The database does not answer.");
  if (asks) await database.read.first(sql`select 1`.compile(database.read.k));
}
