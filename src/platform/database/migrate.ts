import { sql } from "kysely";
import { ConfigError } from "../errors.ts";
import type { Database, Dialect, Tx } from "./database.ts";

export interface Migration {
  name: string;
  statements(dialect: Dialect): string[];
}

/**
 * Applies the pending migrations in order and returns their names. Processes that start at the same time are serialized by a lock
 * on Postgres, and by the transaction on SQLite.
 *
 * @throws ConfigError if a newer version has migrated the database: this version may misread its data
 */
export async function migrate(database: Database, migrations: readonly Migration[]): Promise<string[]> {
  return database.migrate(async (tx) => {
    if (tx.dialect.name === "postgres") await execute(tx, "select pg_advisory_xact_lock(20240, 0)");
    await execute(
      tx,
      "create table if not exists schema_migrations (name text primary key, applied_at bigint not null)",
    );
    const rows = await tx.all<{ name: string }>(
      sql<{ name: string }>`select name from schema_migrations`.compile(tx.k),
    );
    const applied = new Set(rows.map((row) => row.name));
    const known = new Set(migrations.map(({ name }) => name));
    const series = new Set(migrations.map(seriesOf));
    const unknown = rows.filter((row) => series.has(seriesOf(row)) && !known.has(row.name)).map(({ name }) => name);
    if (unknown.length > 0)
      throw new ConfigError(
        `A newer version of Threadmill has migrated the database (${database.description}). Migrations unknown to this version: ${unknown.join(", ")}. Start the newer version.`,
      );
    const pending = migrations.filter((migration) => !applied.has(migration.name));
    for (const migration of pending) {
      for (const statement of migration.statements(tx.dialect)) await execute(tx, statement);
      await tx.run(
        sql`insert into schema_migrations (name, applied_at) values (${migration.name}, ${Date.now()})`.compile(tx.k),
      );
    }
    return pending.map((migration) => migration.name);
  });
}

/** Returns the series of a migration: "" for "001-agent-server", "experiments-" for "experiments-001". A database may have several. */
const seriesOf = ({ name }: { name: string }): string => name.replace(/\d.*/, "");

const execute = (tx: Tx, statement: string) => tx.run(sql.raw(statement).compile(tx.k));
