import { setTimeout as sleep } from "node:timers/promises";
import type { Deployment, DeploymentsList, Revision } from "../../control-plane/contract/records.ts";
import { isUuid } from "../../platform/lib/ids.ts";
import { escapeControlCharacters } from "../../platform/lib/sanitize-output.ts";
import { CommandError, formatTable, type Target } from "../command.ts";
import { requestJson, requestOk } from "../service-client.ts";

export interface RevisionKey {
  deployment_id: string;
  revision_id: string;
}

export interface WaitFlags {
  wait: boolean;
  timeout: number;
  json?: boolean;
}

const POLL_MS = 500;
const FINAL: readonly string[] = [
  "DEPLOYED",
  "SKIPPED",
  "CREATE_FAILED",
  "BUILD_FAILED",
  "DEPLOY_FAILED",
  "INTERRUPTED",
];

export async function listDeployments({ json }: { json?: boolean }, target: Target): Promise<void> {
  const all: Deployment[] = [];
  for await (const deployment of eachRecord<Deployment>(target, "/v2/deployments?limit=100")) all.push(deployment);
  if (json) return console.log(JSON.stringify(all, null, 2));
  if (all.length === 0) return console.log(`There are no deployments at ${target.url}.`);
  const rows = [["NAME", "STATE", "UPDATED", "URL"]];
  for (const deployment of all) {
    const { name, updated_at, source_config } = deployment;
    const updated = `${updated_at.slice(0, 16).replace("T", " ")} UTC`;
    const state = await stateOf(deployment, target);
    rows.push([escapeControlCharacters(name), state, updated, source_config.custom_url ?? ""]);
  }
  console.log(formatTable(rows));
}

/** Returns before the control plane has stopped the instances. */
export async function deleteDeployment(name: string, { json }: { json?: boolean }, target: Target): Promise<void> {
  const deployment = await findDeployment(target, name);
  await requestOk(target, "DELETE", `/v2/deployments/${deployment.id}`);
  if (json) console.log(JSON.stringify({ id: deployment.id, name: deployment.name }));
  else console.log(`Deleting deployment "${deployment.name}".`);
}

/** @throws CommandError when there is no earlier revision, or the redeployment fails */
export async function rollBack(
  name: string,
  revision: string | undefined,
  { wait, timeout, json }: WaitFlags,
  target: Target,
): Promise<void> {
  const deployment = await findDeployment(target, name);
  const revision_id = revision ?? (await findPreviousRevision(target, deployment)).id;
  const key = { deployment_id: deployment.id, revision_id };
  await requestOk(target, "POST", `/v2/deployments/${deployment.id}/revisions/${revision_id}/redeploy`);
  const result = wait ? await waitForRevision(target, key, timeout) : await getRevision(target, key);
  if (wait) checkDeployed(result);
  if (json) console.log(JSON.stringify(result));
  else if (wait) console.log(`Revision ${revision_id} of "${deployment.name}" is live.`);
  else console.log(`Deploying revision ${revision_id} of "${deployment.name}".`);
}

/** @param name name or ID. @throws CommandError when there is no such deployment */
export async function findDeployment(target: Target, name: string): Promise<Deployment> {
  if (isUuid(name)) return requestJson<Deployment>(target, "GET", `/v2/deployments/${name}`);
  const found = await findByName(target, name);
  if (found) return found;
  throw new CommandError(
    `There is no deployment "${name}" at ${target.url}. Run "threadmill deployments list" to list all deployments.`,
  );
}

export async function findByName(target: Target, name: string): Promise<Deployment | undefined> {
  // The service lists an exact match first, so one result is enough.
  const query = new URLSearchParams({ name_contains: name, limit: "1" });
  const { resources } = await requestJson<DeploymentsList>(target, "GET", `/v2/deployments?${query}`);
  const [first] = resources;
  return first?.name === name ? first : undefined;
}

export const getRevision = (target: Target, { deployment_id, revision_id }: RevisionKey): Promise<Revision> =>
  requestJson(target, "GET", `/v2/deployments/${deployment_id}/revisions/${revision_id}`);

async function* eachRecord<T>(target: Target, path: string): AsyncGenerator<T> {
  for (let offset = 0; ; ) {
    const page = await requestJson<{ resources: T[]; offset: number }>(target, "GET", `${path}&offset=${offset}`);
    if (page.resources.length === 0) return;
    yield* page.resources;
    offset = page.offset;
  }
}

async function stateOf(deployment: Deployment, target: Target): Promise<string> {
  const { id, status, latest_revision_id: latest, active_revision_id: active } = deployment;
  if (status === "AWAITING_DELETE") return "deleting";
  if (latest === null) return "no revisions";
  if (latest === active) return "live";
  const { status: next } = await getRevision(target, { deployment_id: id, revision_id: latest });
  return active === null ? next : next === "DEPLOYED" ? "live, rolled back" : `live; latest ${next}`;
}

async function findPreviousRevision(target: Target, { id, name, active_revision_id }: Deployment): Promise<Revision> {
  let isPrevious = active_revision_id === null;
  const path = `/v2/deployments/${id}/revisions?limit=100&status=DEPLOYED`;
  for await (const revision of eachRecord<Revision>(target, path)) {
    if (isPrevious) return revision;
    isPrevious = revision.id === active_revision_id;
  }
  throw new CommandError(`Deployment "${name}" cannot be rolled back: no earlier revision was deployed.`);
}

/**
 * Waits until a revision reaches a final status.
 *
 * @param onPoll called after each poll, before its status is printed
 * @throws CommandError after `timeout_s` seconds
 */
export async function waitForRevision(
  target: Target,
  key: RevisionKey,
  timeout_s: number,
  onPoll: () => Promise<void> = async () => undefined,
): Promise<Revision> {
  const deadline = Date.now() + timeout_s * 1000;
  for (let printed = ""; ; await sleep(POLL_MS)) {
    const revision = await getRevision(target, key);
    await onPoll();
    const { status } = revision;
    if (status !== printed) printProgress(`${status}${FINAL.includes(status) ? "" : " ..."}`);
    printed = status;
    if (FINAL.includes(status)) return revision;
    if (Date.now() > deadline)
      throw new CommandError(
        `Timed out after ${timeout_s} s: revision ${key.revision_id} is still ${status}. The deployment continues in the background.`,
      );
  }
}

/** @throws CommandError for a revision that was not deployed */
export function checkDeployed({ id, status, status_message }: Revision): void {
  if (status === "DEPLOYED") return;
  if (status === "SKIPPED") throw new CommandError(`Revision ${id} was skipped: a newer revision replaced it.`);
  throw new CommandError(
    `Revision ${id} was not deployed (${status}): ${status_message ?? "The service returned no reason."}\nFix the cause and deploy again. If an earlier revision is live, it stays live.`,
  );
}

/** Progress goes to standard error, results to standard output. */
export const printProgress = (text: string): void => console.error(escapeControlCharacters(text));
