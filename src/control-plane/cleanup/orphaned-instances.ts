import type { Database } from "../../platform/database/database.ts";
import type { Log } from "../../platform/lib/log.ts";
import type { DeployDriver } from "../drivers/driver.ts";
import type { ReconcilerParts } from "../reconcile/reconciler-context.ts";
import { knownInstances } from "../storage/instances.ts";

const GRACE_MS = 5_000;

/**
 * Stops what drivers have and no row knows: left behind by a process that died, or lost its lease, in the wrong moment. Drivers
 * are asked before the rows: a row is there before its instance, so whatever they name without one is nobody's.
 */
export async function collectGarbage({
  database,
  drivers,
  log,
}: Pick<ReconcilerParts, "database" | "drivers" | "log">): Promise<void> {
  for (const driver of drivers.all) {
    await collectFrom(driver, database, log).catch((error) =>
      log.warn({ error, driver: driver.kind }, "looking for instances that belong to nobody failed"),
    );
  }
}

async function collectFrom(driver: DeployDriver, database: Database, log: Log): Promise<void> {
  const found = await driver.list();
  const known = await knownInstances(
    database.read,
    found.map(({ instance_id }) => instance_id),
  );
  for (const ref of found.filter(({ instance_id }) => !known.has(instance_id))) {
    log.warn({ instance_id: ref.instance_id, deployment_id: ref.deployment_id }, "an instance belonged to nobody");
    await driver.stop(ref, { grace_ms: GRACE_MS });
  }
}
