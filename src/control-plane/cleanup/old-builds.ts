import { asking, type Work } from "../reconcile/reconciler-context.ts";
import { artifactsOf } from "../storage/deployment-removal.ts";
import { forgetBuildsButNewest } from "../storage/revision-steps.ts";
import { UNDER_WAY } from "../storage/revisions.ts";

/** Revisions of a deployment that can be deployed again as they were built: those that were deployed last. */
const KEPT_BUILDS = 5;

/** Removes builds that no revision can need any more. The rows go first: what they do not name is nobody's. */
export async function prune(work: Work): Promise<void> {
  const { database, drivers, deployment, hands } = work;
  const { deployment_id } = deployment;
  await work.commit((tx) => forgetBuildsButNewest(tx, { deployment_id, statuses: UNDER_WAY, kept: KEPT_BUILDS }));
  const made = await artifactsOf(database.read, deployment_id);
  const keep = made.flatMap(({ artifact }) => artifact ?? []);
  await hands.use(new AbortController().signal, async () => {
    for (const driver of drivers.all) await asking(async () => driver.prune?.({ deployment_id, keep }));
  });
}
