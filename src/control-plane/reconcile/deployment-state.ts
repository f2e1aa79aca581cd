import type { Tx } from "../../platform/database/database.ts";
import { instancesOf } from "../storage/instances.ts";
import { type DeploymentLease, findIfHeld, lockIfHeld } from "../storage/leases.ts";
import { lastLineSince } from "../storage/log-lines.ts";
import { revisionsAtWork } from "../storage/revision-steps.ts";
import { UNDER_WAY } from "../storage/revisions.ts";
import type { DeploymentRow, InstanceRow, RevisionRow } from "../storage/schema.ts";

/** A deployment as its rows say. */
export interface DeploymentState {
  /** The time of the database. */
  now: number;
  deployment: DeploymentRow;
  /** Those that are under way, the one that serves, and those of instances; by `seq`. */
  revisions: readonly RevisionRow[];
  instances: readonly InstanceRow[];
  /** When an instance of the revision that is being deployed last wrote something, if that was within `progress_ms`. */
  last_line_at: number | undefined;
}

/**
 * @param held whether the row stays held until the transaction ends
 * @returns undefined when somebody else has the deployment, or it is gone
 */
export async function readState(
  tx: Tx,
  lease: DeploymentLease,
  { progress_ms, held = false }: { progress_ms: number; held?: boolean },
): Promise<DeploymentState | undefined> {
  const found = await (held ? lockIfHeld : findIfHeld)(tx, lease);
  if (!found) return undefined;
  const { now, ...deployment } = found;
  const { deployment_id, active_revision_id } = deployment;
  const revisions = await revisionsAtWork(tx, { deployment_id, active_revision_id, statuses: UNDER_WAY });
  const instances = await instancesOf(tx, deployment_id);
  const deploying = revisions.find(({ status }) => status === "DEPLOYING");
  const since = now - progress_ms;
  const last_line_at = deploying
    ? await lastLineSince(tx, { deployment_id, revision_id: deploying.revision_id, since })
    : undefined;
  return { now, deployment, revisions, instances, last_line_at };
}

/** What an instance is for: to answer requests, to do so once it is ready, or nothing any more. */
export type Purpose = "serves" | "is to serve" | "is to go";

export function purposeOf(instance: InstanceRow, { deployment, revisions }: DeploymentState): Purpose {
  if (instance.state === "draining" || deployment.status === "AWAITING_DELETE") return "is to go";
  const revision = revisions.find(({ revision_id }) => revision_id === instance.revision_id);
  if (revision?.status === "DEPLOYING" && revision.deploying_at === instance.rollout) return "is to serve";
  return instance.revision_id === deployment.active_revision_id ? "serves" : "is to go";
}

/** Tells the roll-outs of a deployment apart: the same revision may have several, one after the other. */
export const rolloutOf = ({ revision_id, deploying_at }: RevisionRow): string => `${revision_id} ${deploying_at}`;

/** The instances that a revision gets in the roll-out that is under way. */
export const freshOf = (revision: RevisionRow, state: DeploymentState): InstanceRow[] =>
  state.instances.filter(
    (instance) => instance.revision_id === revision.revision_id && purposeOf(instance, state) === "is to serve",
  );

/** The instances that take requests now. */
export const upstreamsOf = (state: DeploymentState): InstanceRow[] =>
  state.instances.filter((instance) => instance.state === "ready" && purposeOf(instance, state) === "serves");

/** Tells lists of upstreams apart. */
export const fingerprint = (instances: readonly InstanceRow[]): string =>
  JSON.stringify(instances.map(({ instance_id, address }) => [instance_id, address]).sort());
