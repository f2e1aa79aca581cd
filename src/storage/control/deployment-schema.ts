import { sql } from "kysely";
import type { Tx } from "../database.ts";

/** Makes the Postgres schema in which a deployment keeps its threads and runs. */
export const createSchemaIfMissing = (tx: Tx, schema: string): Promise<number> =>
  tx.run(sql`create schema if not exists ${sql.id(schema)}`.compile(tx.k));

/** Drops it with everything in it. */
export const dropSchema = (tx: Tx, schema: string): Promise<number> =>
  tx.run(sql`drop schema if exists ${sql.id(schema)} cascade`.compile(tx.k));
