import type { Deployment, DeploymentsList, Revision, RevisionsList } from "../../control-plane/contract/records.ts";
import { isUuid } from "../../platform/lib/ids.ts";
import { askControl, type Target } from "../experiments/api.ts";
import { CommandError } from "../experiments/command-error.ts";

/**
 * The deployment of a name, or of an id.
 *
 * @throws CommandError when there is none
 */
export async function findDeployment(target: Target, name: string): Promise<Deployment> {
  if (isUuid(name)) return (await askControl(target, "GET", `/v2/deployments/${name}`)) as Deployment;
  // The one of exactly that name comes first.
  const query = new URLSearchParams({ name_contains: name, limit: "1" });
  const { resources } = (await askControl(target, "GET", `/v2/deployments?${query}`)) as DeploymentsList;
  const [found] = resources;
  if (found?.name === name) return found;
  throw new CommandError(`There is no deployment "${name}" at ${target.url}: "threadmill deployments list" shows all.`);
}

export const getRevision = async (target: Target, deployment_id: string, revision_id: string): Promise<Revision> =>
  (await askControl(target, "GET", `/v2/deployments/${deployment_id}/revisions/${revision_id}`)) as Revision;

/** All of them, page by page; the newest first. */
export async function* eachDeployment(target: Target): AsyncGenerator<Deployment> {
  for (let offset = 0; ; ) {
    const path = `/v2/deployments?limit=100&offset=${offset}`;
    const page = (await askControl(target, "GET", path)) as DeploymentsList;
    if (page.resources.length === 0) return;
    yield* page.resources;
    offset = page.offset;
  }
}

/** Those of a deployment, the newest first. */
export async function* eachRevision(
  target: Target,
  deployment_id: string,
  status: Revision["status"],
): AsyncGenerator<Revision> {
  for (let offset = 0; ; ) {
    const path = `/v2/deployments/${deployment_id}/revisions?limit=100&status=${status}&offset=${offset}`;
    const page = (await askControl(target, "GET", path)) as RevisionsList;
    if (page.resources.length === 0) return;
    yield* page.resources;
    offset = page.offset;
  }
}
