import { join } from "node:path";
import { systemClock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import type { Database } from "./database.ts";
import { lockFolder } from "./folder-lock.ts";
import { migrate } from "./migrate.ts";
import { openPostgres } from "./postgres.ts";
import { makePrivate } from "./private-folder.ts";
import { expireLeases } from "./run-leases.ts";
import { shareFolder } from "./shared-folder.ts";
import { openSqlite } from "./sqlite.ts";

/** Where the data is; see Config for each. */
export interface DataPlace {
  data_dir: string;
  database_url: string | undefined;
}

type Part = "agents" | "experiments";
type Synchronous = "full" | "normal";

/**
 * Takes the data folder for this process, opens the database in it and brings its schema up to date.
 *
 * @throws ConfigError when somebody else has the folder, or a newer program made the database
 */
export async function openData(
  place: DataPlace & { share_data: boolean },
  synchronous: Synchronous,
  log: Log,
): Promise<{ database: Database; close(): Promise<void> }> {
  makePrivate(place.data_dir, log);
  let database: Database | undefined;
  const open = async () => {
    database ??= openDatabase(place, synchronous, log);
    await migrate(database, "agents");
    return database;
  };
  const release = await takeFolder(place, async () => void (await (await open()).write(expireLeases)));
  const opened = await open();
  return {
    database: opened,
    async close() {
      await opened.close();
      release();
    },
  };
}

/** @param whenAlone what is to be done while no other process has the folder */
async function takeFolder(
  { data_dir, database_url, share_data }: DataPlace & { share_data: boolean },
  whenAlone: () => Promise<void>,
): Promise<() => void> {
  if (database_url) return () => undefined;
  if (share_data) return shareFolder(data_dir, whenAlone);
  const unlock = lockFolder(data_dir);
  await whenAlone();
  return unlock;
}

/** Opens the database of one part; the schema is not looked at. */
export function openDatabase(place: DataPlace, synchronous: Synchronous, log: Log, part: Part = "agents"): Database {
  if (place.database_url) return openPostgres({ url: place.database_url, log });
  return openSqlite({ file: fileOf(place, part), synchronous, clock: systemClock });
}

/** Experiments have a file of their own, so that an upload never holds up a run. On Postgres all is one database. */
export const fileOf = ({ data_dir }: Pick<DataPlace, "data_dir">, part: Part): string =>
  join(data_dir, part === "agents" ? "threadmill.db" : "experiments.db");
