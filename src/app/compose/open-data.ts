import { join } from "node:path";
import { sql } from "kysely";
import {
  checkData,
  checkHeader,
  explainConnecting,
  explainOpening,
  noteData,
} from "../../agent-server/storage/data-check.ts";
import { bringBackToNow, expireLeases } from "../../agent-server/storage/lost-runs.ts";
import type { Database } from "../../platform/database/database.ts";
import { migrate } from "../../platform/database/migrate.ts";
import { openPostgres } from "../../platform/database/postgres/postgres.ts";
import { lockFolder } from "../../platform/database/sqlite/folder-lock.ts";
import { makePrivate } from "../../platform/database/sqlite/private-folder.ts";
import { shareFolder } from "../../platform/database/sqlite/shared-folder.ts";
import { openSqlite } from "../../platform/database/sqlite/sqlite.ts";
import { steadyClock, systemClock } from "../../platform/lib/clock.ts";
import type { Log } from "../../platform/lib/log.ts";
import { MIGRATIONS } from "./migrations.ts";

/** Where the data is; see Config for each. */
export interface DataPlace {
  data_dir: string;
  database_url: string | undefined;
  lease_ms?: number;
  share_data?: boolean;
}

type Part = "agents" | "experiments";
type Synchronous = "full" | "normal";

/**
 * Takes the data folder for this process, opens the database in it and brings its schema up to date.
 *
 * @throws ConfigError when somebody else has the folder, a newer program made the database, or the files cannot be used
 */
export async function openData(
  place: DataPlace & { share_data: boolean },
  synchronous: Synchronous,
  log: Log,
): Promise<{ database: Database; close(): Promise<void> }> {
  if (place.database_url) return openWithoutFolder(place, synchronous, log);
  const file = fileOf(place, "agents");
  try {
    makePrivate(place.data_dir, log);
    let database: Database | undefined;
    const open = async (isAlone: boolean) => {
      database ??= openDatabase(place, synchronous, log);
      if (isAlone) await checkData(database, file);
      await migrate(database, MIGRATIONS.agents);
      // The threads that use it open it with the first request, too late for an error at the start.
      checkHeader(fileOf(place, "experiments"));
      return database;
    };
    const release = await takeFolder(place, async () => {
      const { write } = await open(true);
      await write(expireLeases);
      await write(bringBackToNow);
    });
    const opened = await open(false);
    const noting = noteData(opened, file, { isShared: place.share_data, log });
    noting.start();
    return {
      database: opened,
      async close() {
        await noting.stop();
        await opened.close();
        release();
      },
    };
  } catch (error) {
    throw explainOpening(error, file);
  }
}

async function openWithoutFolder(place: DataPlace, synchronous: Synchronous, log: Log) {
  makePrivate(place.data_dir, log);
  const database = openDatabase(place, synchronous, log);
  try {
    await migrate(database, MIGRATIONS.agents);
    await warnOfFewConnections(database, log);
  } catch (error) {
    await database.close();
    throw explainConnecting(error, database.description);
  }
  return { database, close: () => database.close() };
}

/** @param whenAlone what is to be done while no other process has the folder */
async function takeFolder(
  { data_dir, share_data }: DataPlace & { share_data: boolean },
  whenAlone: () => Promise<void>,
): Promise<() => void> {
  if (share_data) return shareFolder(data_dir, whenAlone);
  const unlock = lockFolder(data_dir);
  await whenAlone();
  return unlock;
}

/** Of the agent server; each of the three threads for experiments has up to 5 more while it is used. */
const MAX_CONNECTIONS = 11;

async function warnOfFewConnections({ read }: Database, log: Log): Promise<void> {
  const query = sql<{ free: number }>`
    select current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int - count(*)::int as free
    from pg_stat_activity where backend_type = 'client backend'`;
  const row = (await read.first(query.compile(read.k))) as { free: number };
  if (row.free >= MAX_CONNECTIONS) return;
  log.warn(
    { free: row.free, wanted: MAX_CONNECTIONS },
    "Postgres has few connections left: requests and runs will wait for each other. Raise max_connections, or start fewer processes.",
  );
}

/** Opens the database of one part; the schema is not looked at. */
export function openDatabase(place: DataPlace, synchronous: Synchronous, log: Log, part: Part = "agents"): Database {
  if (place.database_url) return openPostgres({ url: place.database_url, log, lease_ms: place.lease_ms });
  // Processes that share a file must agree on the time, and have nothing but the system's clock for that.
  const clock = place.share_data ? systemClock : steadyClock();
  return openSqlite({ file: fileOf(place, part), synchronous, clock });
}

/** Experiments have a file of their own, so that an upload never holds up a run. On Postgres all is one database. */
export const fileOf = ({ data_dir }: Pick<DataPlace, "data_dir">, part: Part): string =>
  join(data_dir, part === "agents" ? "threadmill.db" : "experiments.db");
