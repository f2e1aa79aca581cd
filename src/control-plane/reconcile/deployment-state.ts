import type { Tx } from "../../platform/database/database.ts";
import { instancesOf } from "../storage/instances.ts";
import { type DeploymentLease, findIfHeld, lockIfHeld } from "../storage/leases.ts";
import { lastLineSince } from "../storage/logs.ts";
import { reconciledRevisions } from "../storage/revisions.ts";
import type { DeploymentRow, InstanceRow, RevisionRow } from "../storage/schema.ts";

export interface DeploymentState {
  /** Current time of the database. */
  now: number;
  deployment: DeploymentRow;
  /** Revisions in progress, the active revision, and revisions with instances; ordered by `seq`. */
  revisions: readonly RevisionRow[];
  instances: readonly InstanceRow[];
  /** Time of the last log line from the revision that is being deployed; undefined if it is older than `progress_ms`. */
  last_line_at: number | undefined;
}

/**
 * @param locked whether the row of the deployment stays locked until the transaction ends
 * @returns undefined when another process holds the lease, or the deployment was deleted
 */
export async function readState(
  tx: Tx,
  lease: DeploymentLease,
  { progress_ms, locked = false }: { progress_ms: number; locked?: boolean },
): Promise<DeploymentState | undefined> {
  const found = await (locked ? lockIfHeld : findIfHeld)(tx, lease);
  if (!found) return undefined;
  const { now, ...deployment } = found;
  const { deployment_id } = deployment;
  const revisions = await reconciledRevisions(tx, deployment);
  const instances = await instancesOf(tx, deployment_id);
  const deploying = revisions.find(({ status }) => status === "DEPLOYING");
  const since = now - progress_ms;
  const last_line_at = deploying
    ? await lastLineSince(tx, { deployment_id, revision_id: deploying.revision_id, since })
    : undefined;
  return { now, deployment, revisions, instances, last_line_at };
}

/** Role of an instance: it serves requests, will serve requests when it is ready, or must be stopped. */
type InstanceRole = "serving" | "joining" | "retiring";

export function roleOf(instance: InstanceRow, { deployment, revisions }: DeploymentState): InstanceRole {
  if (instance.state === "draining" || deployment.status === "AWAITING_DELETE") return "retiring";
  const revision = revisions.find(({ revision_id }) => revision_id === instance.revision_id);
  if (revision?.status === "DEPLOYING" && revision.deploying_at === instance.rollout) return "joining";
  return instance.revision_id === deployment.active_revision_id ? "serving" : "retiring";
}

/** Identifies a rollout of a deployment. A revision that is deployed again has several rollouts. */
export const rolloutId = ({ revision_id, deploying_at }: RevisionRow): string => `${revision_id} ${deploying_at}`;

export const rolloutInstancesOf = (revision: RevisionRow, state: DeploymentState): InstanceRow[] =>
  state.instances.filter(
    (instance) => instance.revision_id === revision.revision_id && roleOf(instance, state) === "joining",
  );

/** Instances that currently receive requests. */
export const upstreamsOf = (state: DeploymentState): InstanceRow[] =>
  state.instances.filter((instance) => instance.state === "ready" && roleOf(instance, state) === "serving");

export const fingerprint = (instances: readonly InstanceRow[]): string =>
  JSON.stringify(instances.map(({ instance_id, address }) => [instance_id, address]).sort());
