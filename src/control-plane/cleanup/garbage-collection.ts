import type { Database } from "../../platform/database/database.ts";
import { withTimeout } from "../../platform/lib/signal.ts";
import type { DeployDriver } from "../drivers/driver.ts";
import { callDriver, type DeploymentContext, type ReconcilerContext } from "../reconcile/reconciler-context.ts";
import type { JobOf } from "../reconcile/steps.ts";
import { knownInstances } from "../storage/instances.ts";
import { deleteOldLogLines, deploymentsWithMoreLines, trimLogLines } from "../storage/logs.ts";
import { artifactsOf, clearOldArtifacts } from "../storage/revisions.ts";
import type { Uploads } from "../uploads.ts";

interface RetentionOptions {
  database: Database;
  uploads: Uploads;
  /** Log lines of builds and instances are deleted after this time. */
  settings: { deployment_log_retention_ms: number };
}

export const RETENTION_INTERVAL_MS = 60_000;

/** Maximum number of log lines per deployment; the oldest lines are deleted first. 50,000 lines of 200 bytes are 10 MB. */
export const MAX_LOG_LINES = 50_000;

/** Deletes expired uploads and log lines, and the oldest log lines beyond the maximum number. */
export async function deleteExpiredData({ database, uploads, settings }: RetentionOptions): Promise<void> {
  await uploads.deleteExpired();
  await database.write((tx) => deleteOldLogLines(tx, settings.deployment_log_retention_ms));
  for (const deployment_id of await deploymentsWithMoreLines(database.read, MAX_LOG_LINES))
    await database.write((tx) => trimLogLines(tx, deployment_id, MAX_LOG_LINES));
}

/** Number of recently deployed revisions whose builds are kept, so that these revisions can be deployed again. */
const KEPT_BUILDS = 5;

/** Removes old builds. Updates the rows first, so that no row refers to a removed build. */
export async function prune({ after }: JobOf<"prune">, context: DeploymentContext): Promise<void> {
  const { database, drivers, deployment, driverSlots } = context;
  const { deployment_id } = deployment;
  await context.commit((tx) => clearOldArtifacts(tx, { deployment_id, keep_count: KEPT_BUILDS }));
  const built = await artifactsOf(database.read, deployment_id);
  const keep = built.flatMap(({ artifact }) => artifact ?? []);
  // Without a wait for the slots of listeners, which have no builds.
  for (const driver of drivers.all.filter((one) => one.prune))
    await driverSlots(driver.kind).use(new AbortController().signal, () =>
      callDriver(async () => driver.prune?.({ deployment_id, keep })),
    );
  context.facts.pruned_after = after;
}

const ORPHAN_GRACE_MS = 5_000;

type OrphanContext = Pick<ReconcilerContext, "database" | "drivers" | "log">;

/**
 * Stops instances without a row, which remain when a process dies or loses its lease before it stops them. The instances are listed
 * before the rows are read. A row is inserted before its instance starts, so a listed instance without a row is an orphan.
 */
export async function stopOrphanedInstances(context: OrphanContext): Promise<void> {
  const checks = context.drivers.all.filter((driver) => !checked.has(driver)).map((driver) => check(driver, context));
  await withTimeout(Promise.all(checks), CHECK_TIMEOUT_MS);
}

/** The drivers that are being checked. A listener that does not respond must not end the checks of the others. */
const checked = new WeakSet<DeployDriver>();
const CHECK_TIMEOUT_MS = 60_000;

async function check(driver: DeployDriver, context: OrphanContext): Promise<void> {
  checked.add(driver);
  try {
    await stopOrphansOf(driver, context);
  } catch (error) {
    context.log.warn({ error, driver: driver.kind }, "orphan check failed");
  } finally {
    checked.delete(driver);
  }
}

async function stopOrphansOf(driver: DeployDriver, { database, log }: OrphanContext): Promise<void> {
  const found = await driver.list();
  const known = await knownInstances(
    database.read,
    found.map(({ instance_id }) => instance_id),
  );
  for (const ref of found.filter(({ instance_id }) => !known.has(instance_id))) {
    const { instance_id, deployment_id, revision_id } = ref;
    log.warn({ deployment_id, revision_id, instance_id }, "stopping orphaned instance");
    await driver.stop(ref, { grace_ms: ORPHAN_GRACE_MS });
  }
}
