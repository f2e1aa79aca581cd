import type { Seal } from "../../access/index.ts";
import type { Database, Tx } from "../../platform/database/database.ts";
import type { Clock, Wait } from "../../platform/lib/clock.ts";
import type { Log } from "../../platform/lib/log.ts";
import type { Semaphore } from "../../platform/lib/semaphore.ts";
import { type DeployDriver, DeployError, type InstanceRef, type LogLine } from "../drivers/driver.ts";
import type { Drivers } from "../drivers/drivers.ts";
import type { Activate, CheckReady } from "../rollout/instance-client.ts";
import type { Router } from "../router/router.ts";
import type { DeploymentLease } from "../storage/leases.ts";
import type { DeploymentRow, InstanceRow, RevisionRow } from "../storage/schema.ts";
import type { Uploads } from "../uploads.ts";
import type { Facts, StepSettings } from "./steps.ts";
import type { CollectTraces } from "./trace-collector.ts";

export interface ReconcilerContext {
  database: Database;
  drivers: Drivers;
  router: Router;
  seal: Seal;
  uploads: Pick<Uploads, "fileOf" | "removeOf">;
  checkReady: CheckReady;
  activate: Activate;
  collectTraces: CollectTraces;
  /** Default variables of all instances. The secrets of a deployment take precedence. */
  default_env: Readonly<Record<string, string>>;
  clock: Clock;
  wait: Wait;
  log: Log;
  settings: ReconcilerSettings;
}

/** All values are milliseconds, except for counts. */
export interface ReconcilerSettings extends StepSettings {
  /** Lifetime of a lease that is not renewed. */
  lease_ms: number;
  /** Interval of the search for deployments without a lease. */
  poll_ms: number;
  /** Maximum number of concurrent builds, and of concurrent calls of one driver that start, stop or remove. */
  builds: number;
  driver_slots: number;
  /** Number of consecutive successful checks of /ok that make an instance ready, and the interval between checks. */
  probes: number;
  probe_ms: number;
  /** Interval at which the driver checks whether an instance is running. */
  watch_ms: number;
  /** Interval of the search for orphans: instances without a row. */
  orphan_check_ms: number;
  /** Time limit for an aborted job to end, and for the reconciler to stop. */
  abort_ms: number;
}

/** Settings that users cannot change. */
const FIXED_SETTINGS = {
  progress_ms: 60_000,
  drain_check_ms: 500,
  stable_ms: 300_000,
  resync_ms: 5_000,
  poll_ms: 1_000,
  driver_slots: 4,
  probe_ms: 250,
  watch_ms: 1_000,
  orphan_check_ms: 60_000,
  abort_ms: 5_000,
} as const satisfies Partial<ReconcilerSettings>;

interface DeploySettings {
  deploy_lease_ms: number;
  deploy_deadline_ms: number;
  deploy_drain_ms: number;
  deploy_builds: number;
  deploy_probes: number;
}

export const reconcilerSettings = (config: DeploySettings): ReconcilerSettings => ({
  ...FIXED_SETTINGS,
  lease_ms: config.deploy_lease_ms,
  deadline_ms: config.deploy_deadline_ms,
  drain_ms: config.deploy_drain_ms,
  builds: config.deploy_builds,
  probes: config.deploy_probes,
});

/** Context of the steps and jobs of a deployment while this process holds the lease. */
export interface DeploymentContext extends ReconcilerContext {
  deployment: DeploymentRow;
  lease: DeploymentLease;
  buildSlots: Semaphore;
  /** The slots of a driver. Each listener has its own, because one that does not respond must not delay other workspaces. */
  driverSlots(kind: string): Semaphore;
  facts: Facts;
  /**
   * Runs a transaction that first checks that this process still holds the lease.
   *
   * @throws DeploymentLeaseLostError when another process holds the lease, or the deployment was deleted; nothing is written
   */
  commit<T>(write: (tx: Tx) => Promise<T>): Promise<T>;
  appendLog(kind: "build" | "deploy", revision: RevisionRow, line: LogLine): void;
  flushLogs(): Promise<void>;
  /** Resolves when all previous lines are stored; rejects when some lines cannot be stored. */
  logsPersisted(): Promise<void>;
}

export class DeploymentLeaseLostError extends Error {}

/** Resolves when the work is done, or after `ms`. Rejects if the work fails within this time. */
export async function settledWithin(ms: number, work: Promise<unknown>, wait: Wait): Promise<void> {
  const settled = new AbortController();
  await Promise.race([work, wait(ms, settled.signal)]).finally(() => settled.abort());
}

/** A driver failed because of an infrastructure error, not because of the user's source or image. The job is retried. */
export class RetryableDriverError extends Error {}

/** @throws RetryableDriverError for every driver error except DeployError */
export async function callDriver<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (cause) {
    if (cause instanceof DeployError) throw cause;
    throw new RetryableDriverError((cause as Error)?.message ?? String(cause), { cause });
  }
}

/** @throws RetryableDriverError when the service was started without this driver */
export function requireDriver(kind: string, { drivers }: Pick<ReconcilerContext, "drivers">): DeployDriver {
  const driver = drivers.named(kind);
  if (driver) return driver;
  throw new RetryableDriverError(
    `The driver "${kind}" is not configured in this process: start the service with the settings of this driver.`,
  );
}

/** The driver's reference to an instance; undefined before the first start. */
export const instanceRefOf = ({
  instance_id,
  deployment_id,
  revision_id,
  handle,
  address,
}: InstanceRow): InstanceRef | undefined =>
  handle === null ? undefined : { instance_id, deployment_id, revision_id, handle, address: address ?? "" };
