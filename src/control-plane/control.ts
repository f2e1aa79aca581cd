import { join } from "node:path";
import type { VaultContext } from "../access/index.ts";
import { type BackgroundService, periodicService } from "../platform/lib/background-service.ts";
import { deleteExpiredData, RETENTION_INTERVAL_MS } from "./cleanup/garbage-collection.ts";
import { Deployments, type DeploymentsSettings } from "./deployments/deployments.ts";
import { Revisions } from "./deployments/revisions.ts";
import type { ListenerConnections } from "./drivers/listener/connections.ts";
import { Listeners } from "./listeners.ts";
import { DeploymentLogs } from "./logs.ts";
import { Uploads } from "./uploads.ts";

export interface ControlContext extends Pick<VaultContext, "database" | "seal" | "log"> {
  settings: ControlSettings;
  /** Undefined if this process does not deploy. */
  listener_connections: ListenerConnections | undefined;
}

interface ControlSettings extends DeploymentsSettings {
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
    listeners: new Listeners(context, context.listener_connections),
    maintenance: [
      periodicService(
        RETENTION_INTERVAL_MS,
        () => deleteExpiredData({ database, settings, uploads }),
        (error) => context.log.warn({ error }, "deleting expired deployment data failed"),
      ),
    ],
  };
}
