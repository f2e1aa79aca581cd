import { MIGRATIONS } from "../../app/compose/migrations.ts";
import { openDatabase } from "../../app/compose/open-data.ts";
import { type Flags, readStorageConfig } from "../../config/config.ts";
import type { Database } from "../../platform/database/database.ts";
import { migrate } from "../../platform/database/migrate.ts";
import { createLog } from "../../platform/lib/log.ts";

/**
 * Works with the database beside a service that may be running on it: the folder is not taken, and the few short
 * transactions wait for those of the service. A database that nobody has used is made.
 */
export async function besideService<T>(flags: Flags, work: (database: Database) => Promise<T>): Promise<T> {
  const config = readStorageConfig(flags, process.env);
  const database = openDatabase(config, "full", createLog(config.log_level));
  try {
    await migrate(database, MIGRATIONS.agents);
    return await work(database);
  } finally {
    await database.close();
  }
}
