import { join } from "node:path";
import { sql } from "kysely";
import {
  checkData,
  checkHeader,
  explainConnecting,
  explainOpening,
  noteData,
} from "../../agent-server/storage/data-check.ts";
import { expireLeases, shiftFutureRuns } from "../../agent-server/storage/run-leases.ts";
import type { Config } from "../../config/config.ts";
import type { ExperimentsOptions } from "../../experiments/worker/experiments-service.ts";
import { EXPERIMENT_CONNECTIONS, TRACE_CONNECTIONS } from "../../experiments/worker/experiments-service.ts";
import { type Database, maxConnections } from "../../platform/database/database.ts";
import { migrate } from "../../platform/database/migrate.ts";
import { restrictDataFolder } from "../../platform/database/sqlite/file-permissions.ts";
import { lockFolder, shareFolder } from "../../platform/database/sqlite/folder-lock.ts";
import { openSqlite } from "../../platform/database/sqlite/sqlite.ts";
import { steadyClock, systemClock } from "../../platform/lib/clock.ts";
import type { Log } from "../../platform/lib/log.ts";
import { MIGRATIONS } from "./migrations.ts";
import { traceBackend } from "./otlp.ts";

export interface DataLocation {
  data_dir: string;
  database_url: string | undefined;
  database_pooler_url?: string | undefined;
  lease_ms?: number;
  share_data?: boolean;
  /** The only part of the service that the process serves. If undefined, it serves all parts. */
  only?: "agents" | undefined;
  role?: "all" | "api" | "worker";
}

type Part = "agents" | "experiments";
type Synchronous = "full" | "normal";

/**
 * Opens the database and applies pending migrations. On SQLite, also locks the data folder.
 *
 * @throws ConfigError if the folder is locked, a newer version migrated the database, a file is damaged, or Postgres is unreachable
 */
export async function openData(
  location: DataLocation & { share_data: boolean },
  synchronous: Synchronous,
  log: Log,
): Promise<{ database: Database; close(): Promise<void> }> {
  if (location.database_url) return openOnPostgres(location, synchronous, log);
  const file = fileOf(location, "agents");
  try {
    restrictDataFolder(location.data_dir, log);
    let database: Database | undefined;
    const open = async (isExclusive: boolean) => {
      database ??= await openDatabase(location, synchronous, log);
      if (isExclusive) await checkData(database, file);
      await migrate(database, MIGRATIONS.agents);
      // Checked here because the experiment workers open this file on the first request, too late to report an error at startup.
      checkHeader(fileOf(location, "experiments"));
      return database;
    };
    const recover = async () => {
      const { write } = await open(true);
      await write(expireLeases);
      await write(shiftFutureRuns);
    };
    const release = location.share_data ? await shareFolder(location.data_dir, recover) : lockFolder(location.data_dir);
    if (!location.share_data) await recover();
    const opened = await open(false);
    const recorder = noteData(opened, file, { isShared: location.share_data, log });
    recorder.start();
    return {
      database: opened,
      async close() {
        await recorder.stop();
        await opened.close();
        release();
      },
    };
  } catch (error) {
    throw explainOpening(error, file);
  }
}

async function openOnPostgres(location: DataLocation, synchronous: Synchronous, log: Log) {
  restrictDataFolder(location.data_dir, log);
  const database = await openDatabase(location, synchronous, log);
  try {
    await migrate(database, MIGRATIONS.agents);
    await warnOfFewConnections(database, location, log);
  } catch (error) {
    await database.close();
    throw explainConnecting(error, database.description);
  }
  return { database, close: () => database.close() };
}

/** Logs a warning if too few connections are free. With `only`, the process opens none for experiments; a worker only those for traces. */
async function warnOfFewConnections({ read }: Database, { only, role }: DataLocation, log: Log): Promise<void> {
  const needed = maxConnections() + (only ? 0 : role === "worker" ? TRACE_CONNECTIONS : EXPERIMENT_CONNECTIONS);
  const query = sql<{ free: number }>`
    select current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int - count(*)::int as free
    from pg_stat_activity where backend_type = 'client backend'`;
  const { free } = (await read.first(query.compile(read.k))) as { free: number };
  if (free >= needed) return;
  log.warn(
    { free, needed },
    "few Postgres connections are available, so requests and runs may be delayed: raise max_connections or run fewer processes",
  );
}

/** Opens a database without applying or checking its migrations. Without Postgres, its library is not loaded, which saves 5 MB. */
export async function openDatabase(
  location: DataLocation,
  synchronous: Synchronous,
  log: Log,
  part: Part = "agents",
): Promise<Database> {
  const { database_url: url, database_pooler_url: pooler_url, lease_ms } = location;
  if (url) {
    const { openPostgres } = await import("../../platform/database/postgres/postgres.ts");
    return openPostgres({ url, pooler_url, log, lease_ms });
  }
  // Processes that share a file must use the same clock.
  const clock = location.share_data ? systemClock : steadyClock();
  return openSqlite({ file: fileOf(location, part), synchronous, clock });
}

/** On SQLite, the experiments have a separate file, so that uploads do not block runs. */
export const fileOf = ({ data_dir }: Pick<DataLocation, "data_dir">, part: Part): string =>
  join(data_dir, part === "agents" ? "threadmill.db" : "experiments.db");

export const experimentsOptions = (config: Config, log: Log): ExperimentsOptions => ({
  database: config.database_url
    ? { url: config.database_url, pooler_url: config.database_pooler_url }
    : { file: fileOf(config, "experiments"), synchronous: synchronousOf(config) },
  log_level: config.log_level,
  span_export: spanExportOf(config, log),
});

/** Durability of a commit: with `serve` it survives a power failure, with `dev` a crash of the process. */
export const synchronousOf = ({ command }: Pick<Config, "command">) => (command === "serve" ? "full" : "normal");

function spanExportOf(config: Config, log: Log): ExperimentsOptions["span_export"] {
  const backend = traceBackend(config, log);
  return backend && { ...backend, includes_ingested: config.otlp_export === "all", has_payloads: config.otlp_payloads };
}
