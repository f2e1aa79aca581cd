import type { Database } from "../../platform/database/database.ts";
import type { Log } from "../../platform/lib/log.ts";
import { repeating, type Service } from "../../platform/lib/service.ts";
import { deleteOldLogLines, deploymentsWithMoreLines, trimLogLines } from "../storage/logs.ts";
import type { Uploads } from "../uploads.ts";

interface TidyingOptions {
  database: Database;
  uploads: Uploads;
  settings: {
    /** Lines of builds and instances are kept for this long. */
    deployment_log_retention_ms: number;
  };
  log: Log;
}

const EVERY_MS = 60_000;

/** Of each deployment; beyond it the oldest go. At 200 bytes a line these are 10 MB. */
export const MAX_LOG_LINES = 50_000;

/** Keeps what builds, instances and uploads leave behind from growing without an end. */
export const tidying = (options: TidyingOptions): Service =>
  repeating(
    EVERY_MS,
    () => tidyControl(options),
    (error) => options.log.warn({ error }, "what deployments left behind was not tidied; it will be"),
  );

/** One round; tests call it. */
export async function tidyControl({ database, uploads, settings }: Omit<TidyingOptions, "log">): Promise<void> {
  await uploads.tidy();
  await database.write((tx) => deleteOldLogLines(tx, settings.deployment_log_retention_ms));
  for (const deployment_id of await deploymentsWithMoreLines(database.read, MAX_LOG_LINES))
    await database.write((tx) => trimLogLines(tx, deployment_id, MAX_LOG_LINES));
}
