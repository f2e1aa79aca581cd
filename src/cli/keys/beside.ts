import { type Flags, readStorageConfig } from "../../config.ts";
import { createLog } from "../../lib/log.ts";
import { openDatabase } from "../../main.ts";
import type { Database } from "../../storage/database.ts";
import { migrate } from "../../storage/migrate.ts";

/**
 * Works with the database beside a service that may be running on it: the folder is not taken, and the few short
 * transactions wait for those of the service. A database that nobody has used is made.
 */
export async function besideService<T>(flags: Flags, work: (database: Database) => Promise<T>): Promise<T> {
  const config = readStorageConfig(flags, process.env);
  const database = openDatabase(config, "full", createLog(config.log_level));
  try {
    await migrate(database, "agents");
    return await work(database);
  } finally {
    await database.close();
  }
}
