import { callDriver, type DeploymentContext } from "../reconcile/reconciler-context.ts";
import type { JobOf } from "../reconcile/steps.ts";
import { deleteDeploymentRows } from "../storage/deployments.ts";
import { deleteLogLines } from "../storage/logs.ts";
import { artifactsOf } from "../storage/revisions.ts";

/** Number of log lines that one transaction deletes. A larger transaction would delay other writes. */
const LOG_BATCH = 2_000;

export async function remove(_: JobOf<"remove">, context: DeploymentContext): Promise<void> {
  const { database, drivers, uploads, deployment, driverSlots } = context;
  const { deployment_id, source_config } = deployment;
  const driverFor = (source: string) => drivers.driverFor({ source, source_config });
  const built = await artifactsOf(database.read, deployment_id);
  const sources = new Set([deployment.source, ...built.map(({ source }) => source)]);
  for (const driver of new Set([...sources].flatMap((source) => driverFor(source) ?? []))) {
    const artifacts = built
      .filter(({ source }) => driverFor(source) === driver)
      .flatMap(({ artifact }) => artifact ?? []);
    await driverSlots(driver.kind).use(new AbortController().signal, () =>
      callDriver(() => driver.remove({ deployment_id, artifacts })),
    );
  }
  await callDriver(() => uploads.removeOf(deployment_id));
  while ((await context.commit((tx) => deleteLogLines(tx, deployment_id, LOG_BATCH))) > 0);
  context.facts.resources_removed = true;
}

export async function deleteDeployment({ commit, log, deployment }: DeploymentContext): Promise<void> {
  const { deployment_id } = deployment;
  await commit((tx) => deleteDeploymentRows(tx, deployment_id));
  log.info({ deployment_id }, "deployment deleted");
}
