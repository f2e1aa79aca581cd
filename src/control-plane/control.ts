import { join } from "node:path";
import type { VaultContext } from "../access/index.ts";
import type { Service } from "../platform/lib/service.ts";
import { tidying } from "./cleanup/log-retention.ts";
import { Deployments } from "./deployments.ts";
import { Listeners } from "./listeners.ts";
import { DeploymentLogs } from "./logs.ts";
import { Revisions } from "./revisions.ts";
import { Uploads } from "./uploads.ts";

/** What the control plane works with. */
export interface ControlContext extends Pick<VaultContext, "database" | "seal" | "log"> {
  settings: ControlSettings;
}

export interface ControlSettings {
  /** What the control plane keeps lies in the folder `control` of this one. */
  data_dir: string;
  /** Of a tarball of source. */
  source_limit_bytes: number;
  deployment_log_retention_ms: number;
}

/** The rules of the control plane, and what runs in the background for it. */
export interface Control {
  deployments: Deployments;
  revisions: Revisions;
  logs: DeploymentLogs;
  uploads: Uploads;
  listeners: Listeners;
  maintenance: readonly Service[];
}

/** The contract's hour. */
const UPLOAD_TTL_MS = 3_600_000;

export function createControl(context: ControlContext): Control {
  const { database, settings } = context;
  const uploads = new Uploads({
    database,
    folder: join(settings.data_dir, "control", "uploads"),
    limit_bytes: settings.source_limit_bytes,
    ttl_ms: UPLOAD_TTL_MS,
  });
  return {
    deployments: new Deployments(context),
    revisions: new Revisions(context),
    logs: new DeploymentLogs(context),
    uploads,
    listeners: new Listeners(context),
    maintenance: [tidying({ ...context, uploads })],
  };
}
