import { sql } from "kysely";
import type { Database } from "./database.ts";

/** Asks the database for a sign of life. */
export const ping = (database: Database): Promise<unknown> =>
  database.read.first(sql`select 1`.compile(database.read.k));
