import { join } from "node:path";
import type { VaultContext } from "../access/index.ts";
import { type BackgroundService, periodicService } from "../platform/lib/background-service.ts";
import { Deployments } from "./deployments/deployments.ts";
import { Revisions } from "./deployments/revisions.ts";
import { Listeners } from "./listeners.ts";
import { DeploymentLogs } from "./logs.ts";
import { deleteOldLogLines, deploymentsWithMoreLines, trimLogLines } from "./storage/logs.ts";
import { Uploads } from "./uploads.ts";

export interface ControlContext extends Pick<VaultContext, "database" | "seal" | "log"> {
  settings: ControlSettings;
}

interface ControlSettings {
  /** The control plane stores its files in the subfolder `control`. */
  data_dir: string;
  /** Maximum size of a source tarball. */
  source_limit_bytes: number;
  /** Log lines of builds and instances are deleted after this time. */
  deployment_log_retention_ms: number;
}

export interface Control {
  deployments: Deployments;
  revisions: Revisions;
  logs: DeploymentLogs;
  uploads: Uploads;
  listeners: Listeners;
  maintenance: readonly BackgroundService[];
}

const UPLOAD_TTL_MS = 3_600_000;

export function createControl(context: ControlContext): Control {
  const { database, settings } = context;
  const deployments = new Deployments(context);
  const uploads = new Uploads({
    database,
    folder: join(settings.data_dir, "control", "uploads"),
    limit_bytes: settings.source_limit_bytes,
    ttl_ms: UPLOAD_TTL_MS,
  });
  return {
    deployments,
    revisions: new Revisions(context, deployments),
    logs: new DeploymentLogs(context),
    uploads,
    listeners: new Listeners(context),
    maintenance: [
      periodicService(
        RETENTION_INTERVAL_MS,
        () => deleteExpiredData({ database, settings, uploads }),
        (error) => context.log.warn({ error }, "deleting expired deployment data failed"),
      ),
    ],
  };
}

interface RetentionOptions extends Pick<ControlContext, "database"> {
  uploads: Uploads;
  settings: Pick<ControlSettings, "deployment_log_retention_ms">;
}

const RETENTION_INTERVAL_MS = 60_000;

/** Maximum number of log lines per deployment; the oldest lines are deleted first. 50,000 lines of 200 bytes are 10 MB. */
export const MAX_LOG_LINES = 50_000;

/** Deletes expired uploads and log lines, and the oldest log lines beyond the maximum number. */
export async function deleteExpiredData({ database, uploads, settings }: RetentionOptions): Promise<void> {
  await uploads.deleteExpired();
  await database.write((tx) => deleteOldLogLines(tx, settings.deployment_log_retention_ms));
  for (const deployment_id of await deploymentsWithMoreLines(database.read, MAX_LOG_LINES))
    await database.write((tx) => trimLogLines(tx, deployment_id, MAX_LOG_LINES));
}
