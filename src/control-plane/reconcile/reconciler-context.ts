import type { Seal } from "../../access/index.ts";
import type { Database, Tx } from "../../platform/database/database.ts";
import type { Clock, Wait } from "../../platform/lib/clock.ts";
import type { Log } from "../../platform/lib/log.ts";
import { type DeployDriver, DeployError, type Drivers, type InstanceRef, type LogLine } from "../drivers/driver.ts";
import type { Router } from "../router/router.ts";
import type { DeploymentLease } from "../storage/leases.ts";
import type { DeploymentRow, RevisionRow } from "../storage/schema.ts";
import type { Uploads } from "../uploads.ts";
import type { Activate } from "./activation.ts";
import type { AskOk } from "./health.ts";
import type { Slots } from "./semaphore.ts";
import type { StepSettings } from "./steps.ts";

/** What a reconciler works with. */
export interface ReconcilerParts {
  database: Database;
  drivers: Drivers;
  router: Router;
  seal: Seal;
  uploads: Pick<Uploads, "fileOf" | "removeOf">;
  askOk: AskOk;
  activate: Activate;
  clock: Clock;
  wait: Wait;
  log: Log;
  settings: ReconcilerSettings;
}

/** All in milliseconds but for the counts. */
export interface ReconcilerSettings extends StepSettings {
  /** How long a process holds a deployment without a sign of life. */
  lease_ms: number;
  /** How often deployments that nobody holds are looked for. */
  poll_ms: number;
  /** Builds at a time, and other work of drivers. */
  builds: number;
  at_work: number;
  /** So many answers to /ok in a row make an instance ready, and so long is waited between two. */
  probes: number;
  probe_ms: number;
  /** How often a driver is asked whether an instance is still there. */
  watch_ms: number;
  /** How often what belongs to no row is looked for. */
  garbage_ms: number;
  /** How long an aborted build may take to end, and how long the end of the reconciler waits for anything. */
  abort_ms: number;
}

/** What is not for users to set. */
const PACE = {
  progress_ms: 60_000,
  drain_look_ms: 500,
  steady_ms: 300_000,
  look_ms: 5_000,
  poll_ms: 1_000,
  at_work: 4,
  probe_ms: 250,
  watch_ms: 1_000,
  garbage_ms: 60_000,
  abort_ms: 5_000,
} as const satisfies Partial<ReconcilerSettings>;

/** What users set; config.ts says what each means. */
export interface DeploySettings {
  deploy_lease_ms: number;
  deploy_deadline_ms: number;
  deploy_drain_ms: number;
  deploy_builds: number;
  deploy_probes: number;
}

export const reconcilerSettings = (config: DeploySettings): ReconcilerSettings => ({
  ...PACE,
  lease_ms: config.deploy_lease_ms,
  deadline_ms: config.deploy_deadline_ms,
  drain_ms: config.deploy_drain_ms,
  builds: config.deploy_builds,
  probes: config.deploy_probes,
});

/** What a job works with: the parts, and the deployment that is held. */
export interface Work extends ReconcilerParts {
  deployment: DeploymentRow;
  lease: DeploymentLease;
  builders: Slots;
  hands: Slots;
  /** Instances that this process has started or found. */
  known: Set<string>;
  /**
   * Writes behind the fence.
   *
   * @throws LeaseLost when somebody else has the deployment, or it is gone; then nothing was written
   */
  commit<T>(write: (tx: Tx) => Promise<T>): Promise<T>;
  /** Takes a line for the log of the deployment. */
  tell(kind: "build" | "deploy", revision: RevisionRow, line: LogLine): void;
  /** Writes down the lines that were taken so far. */
  told(): Promise<void>;
  /** Resolves when the lines that were taken so far are written down; rejects when some of them will not be. */
  kept(): Promise<void>;
}

export class LeaseLost extends Error {}

/** A driver failed, and not because of what the user brought. */
export class DriverTrouble extends Error {}

/** Asks a driver, and tells its troubles from all others. */
export async function asking<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (cause) {
    if (cause instanceof DeployError) throw cause;
    throw new DriverTrouble((cause as Error)?.message ?? String(cause), { cause });
  }
}

/** @throws DriverTrouble when the service was started without it */
export function driverNamed(kind: string, { drivers }: Pick<Work, "drivers">): DeployDriver {
  const driver = drivers.all.find((one) => one.kind === kind);
  if (driver) return driver;
  throw new DriverTrouble(`This service has no driver "${kind}".`);
}

/** An instance that has been started, as its driver knows it. */
export const refOf = (
  row: Omit<InstanceRef, "handle" | "address"> & { handle: string | null; address: string | null },
) =>
  row.handle === null
    ? undefined
    : ({
        instance_id: row.instance_id,
        deployment_id: row.deployment_id,
        revision_id: row.revision_id,
        handle: row.handle,
        address: row.address ?? "",
      } satisfies InstanceRef);
