import { asking, type Work } from "../reconcile/reconciler-context.ts";
import { artifactsOf, deleteSomeLogLines } from "../storage/deployment-removal.ts";

/** Lines of the log that go in one transaction, so that no other write waits for long. */
const BATCH = 2_000;

/** What drivers, uploads and the log have of a deployment whose instances are gone. The other rows go after that. */
export async function remove(work: Work): Promise<void> {
  const { database, drivers, uploads, deployment, hands } = work;
  const { deployment_id } = deployment;
  const made = await artifactsOf(database.read, deployment_id);
  const sources = new Set([deployment.source, ...made.map(({ source }) => source)]);
  await hands.use(new AbortController().signal, async () => {
    for (const driver of new Set([...sources].map((source) => drivers.driverFor(source)))) {
      const artifacts = made
        .filter(({ source }) => drivers.driverFor(source) === driver)
        .flatMap(({ artifact }) => artifact ?? []);
      await asking(async () => driver?.remove({ deployment_id, artifacts }));
    }
    await asking(() => uploads.removeOf(deployment_id));
  });
  while ((await work.commit((tx) => deleteSomeLogLines(tx, deployment_id, BATCH))) > 0);
}
