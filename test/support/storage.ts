import { join } from "node:path";
import { MIGRATIONS } from "../../src/app/compose/migrations.ts";
import type { Database } from "../../src/platform/database/database.ts";
import { migrate } from "../../src/platform/database/migrate.ts";
import { openPostgres } from "../../src/platform/database/postgres/postgres.ts";
import { openSqlite } from "../../src/platform/database/sqlite/sqlite.ts";
import { type Clock, systemClock } from "../../src/platform/lib/clock.ts";
import { createLog } from "../../src/platform/lib/log.ts";
import { createDatabase, type DatabaseName, type TestDatabase } from "./databases.ts";

export interface TestStorage {
  database: Database;
  at: TestDatabase;
  close(): Promise<void>;
}

/**
 * Opens a database of the service, by itself, on what {@link createDatabase} made.
 *
 * @param file one of the two files of SQLite
 * @param clock the time of SQLite; Postgres has its own
 */
export const openOn = (
  at: TestDatabase,
  file: "threadmill.db" | "experiments.db" = "threadmill.db",
  clock: Clock = systemClock,
): Database =>
  at.url
    ? openPostgres({ url: at.url, log: createLog("silent") })
    : openSqlite({ file: join(at.data_dir, file), synchronous: "normal", clock });

/** A fresh, migrated database. */
export async function openTestStorage(name: DatabaseName): Promise<TestStorage> {
  const at = await createDatabase(name);
  const database = openOn(at);
  await migrate(database, MIGRATIONS.agents);
  return {
    database,
    at,
    async close() {
      await database.close();
      await at.drop();
    },
  };
}
