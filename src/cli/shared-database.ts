import { MIGRATIONS } from "../app/compose/migrations.ts";
import { openDatabase } from "../app/compose/open-data.ts";
import { type Flags, readStorageConfig } from "../config/config.ts";
import type { Database } from "../platform/database/database.ts";
import { migrate } from "../platform/database/migrate.ts";
import { createLog, type Log } from "../platform/lib/log.ts";

/** Opens or creates the database. A service may use it at the same time: the data folder is not locked. */
export async function withSharedDatabase<T>(
  flags: Flags,
  work: (database: Database, log: Log) => Promise<T>,
): Promise<T> {
  const config = readStorageConfig(flags, process.env);
  const log = createLog(config.log_level);
  const database = await openDatabase(config, "full", log);
  try {
    await migrate(database, MIGRATIONS.agents);
    return await work(database, log);
  } finally {
    await database.close();
  }
}
