import { setTimeout as pause } from "node:timers/promises";
import type { Deployment, Revision } from "../../control-plane/contract/records.ts";
import { askControl, type Target } from "../experiments/api.ts";
import { CommandError } from "../experiments/command-error.ts";
import { eachRevision, findDeployment, getRevision } from "./find.ts";

export interface RollbackFlags {
  wait: boolean;
  timeout: number;
  json?: boolean;
}

const POLL_MS = 500;
const ENDS: readonly string[] = ["DEPLOYED", "DEPLOY_FAILED", "INTERRUPTED"];

/**
 * Deploys an earlier revision again, and waits until it serves.
 *
 * @throws CommandError when there is none, or when it does not come to serve
 */
export async function rollBack(
  name: string,
  revision: string | undefined,
  { wait, timeout, json }: RollbackFlags,
  target: Target,
): Promise<void> {
  const deployment = await findDeployment(target, name);
  const { id } = deployment;
  const revision_id = revision ?? (await previousOf(target, deployment)).id;
  await askControl(target, "POST", `/v2/deployments/${id}/revisions/${revision_id}/redeploy`);
  const ended = wait
    ? await endOf(target, { deployment_id: id, revision_id }, timeout)
    : await getRevision(target, id, revision_id);
  if (json) console.log(JSON.stringify(ended));
  else
    console.log(
      wait ? `"${deployment.name}" serves revision ${revision_id}.` : `Revision ${revision_id} is being deployed.`,
    );
}

/** The last revision that served before the one that serves now. */
async function previousOf(target: Target, { id, name, active_revision_id }: Deployment): Promise<Revision> {
  let isPast = active_revision_id === null;
  for await (const revision of eachRevision(target, id, "DEPLOYED")) {
    if (isPast) return revision;
    isPast = revision.id === active_revision_id;
  }
  throw new CommandError(`"${name}" has no earlier revision that was deployed: there is nothing to go back to.`);
}

/** Tells on standard error how far it is. */
async function endOf(
  target: Target,
  { deployment_id, revision_id }: { deployment_id: string; revision_id: string },
  timeout_s: number,
): Promise<Revision> {
  const deadline = Date.now() + timeout_s * 1000;
  for (let told = ""; ; ) {
    const revision = await getRevision(target, deployment_id, revision_id);
    const { status, status_message } = revision;
    if (status === "DEPLOYED") return revision;
    if (ENDS.includes(status)) {
      throw new CommandError(
        `Revision ${revision_id} was not deployed (${status}): ${status_message ?? "no reason is known"} What served before still does.`,
      );
    }
    if (Date.now() > deadline)
      throw new CommandError(`Revision ${revision_id} is still ${status} after ${timeout_s} s.`);
    if (status !== told) console.error(`${status} ...`);
    told = status;
    await pause(POLL_MS);
  }
}
