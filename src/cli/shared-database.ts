import { MIGRATIONS } from "../app/compose/migrations.ts";
import { openDatabase } from "../app/compose/open-data.ts";
import { type Flags, readStorageConfig } from "../config/config.ts";
import type { Database } from "../platform/database/database.ts";
import { migrate } from "../platform/database/migrate.ts";
import { createLog, type Log } from "../platform/lib/log.ts";

/**
 * Opens the database while a service may be running on it: takes no lock on the data folder, and short transactions wait for those of
 * the service. Creates the database if it does not exist.
 */
export async function withSharedDatabase<T>(
  flags: Flags,
  work: (database: Database, log: Log) => Promise<T>,
): Promise<T> {
  const config = readStorageConfig(flags, process.env);
  const log = createLog(config.log_level);
  const database = openDatabase(config, "full", log);
  try {
    await migrate(database, MIGRATIONS.agents);
    return await work(database, log);
  } finally {
    await database.close();
  }
}
