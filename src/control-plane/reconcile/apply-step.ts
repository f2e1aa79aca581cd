import { randomBytes } from "node:crypto";
import { newId } from "../../platform/lib/ids.ts";
import type { Upstream } from "../router/router.ts";
import { deleteDeploymentRows } from "../storage/deployment-removal.ts";
import { drainInstances, drainRollout, forgetRestarts, insertWanted } from "../storage/instances.ts";
import { moveIfAt, setActiveRevision } from "../storage/revision-steps.ts";
import type { InstanceRow, RevisionRow } from "../storage/schema.ts";
import type { DeploymentState } from "./deployment-state.ts";
import { apiKeyPlace } from "./instance-order.ts";
import type { Work } from "./reconciler-context.ts";
import { isTerminal } from "./revision-states.ts";
import type { Step } from "./steps.ts";

type StepThat<D extends Step["do"]> = Extract<Step, { do: D }>;

/** Moves a revision, if it is still where it was. */
export const move = ({ revision, to, message, artifact }: StepThat<"move">, work: Work): Promise<void> =>
  work.commit(async (tx) => {
    const { revision_id, status: from, deploying_at } = revision;
    const step = { revision_id, from, to, status_message: message, ends: isTerminal(to) };
    if (!(await moveIfAt(tx, artifact === undefined ? step : { ...step, artifact }))) return;
    // A revision that is deployed again may serve all the while: only what this roll-out has started goes.
    if (from === "DEPLOYING") await drainRollout(tx, { revision_id, rollout: deploying_at as number });
  });

/** Makes the rows of a roll-out; drivers come after that, so that there is no instance without a row. */
export async function want({ revision, replicas }: StepThat<"want">, work: Work): Promise<void> {
  const driver = work.drivers.driverFor(revision.source)?.kind ?? "none";
  const rows = Array.from({ length: replicas }, (_, replica) => wanted(revision, { replica, driver }, work));
  await work.commit((tx) => insertWanted(tx, rows));
}

function wanted(revision: RevisionRow, { replica, driver }: { replica: number; driver: string }, { seal }: Work) {
  const { deployment_id, revision_id, tenant_id, deploying_at } = revision;
  const instance_id = newId();
  const api_key = seal.seal(randomBytes(32).toString("base64url"), apiKeyPlace({ tenant_id, instance_id }));
  const rollout = deploying_at as number;
  return { instance_id, deployment_id, revision_id, tenant_id, rollout, replica, driver, api_key };
}

/** New requests go to these instances from now on. */
export function route(instances: readonly InstanceRow[], { router, seal, deployment }: Work): void {
  const upstreams = instances.map(
    (instance): Upstream => ({
      instance_id: instance.instance_id,
      address: instance.address ?? "",
      api_key: seal.open(instance.api_key, apiKeyPlace(instance)),
    }),
  );
  router.activate(deployment.deployment_id, upstreams);
}

/**
 * Tells the rows that the traffic has been switched: the one place where `active_revision_id` changes. What served before is
 * drained.
 *
 * @returns false when the revision was not being deployed any more
 */
export const commitSwitch = (
  { revision, fresh }: StepThat<"switch">,
  { instances }: DeploymentState,
  work: Work,
): Promise<boolean> =>
  work.commit(async (tx) => {
    const { deployment_id, revision_id } = revision;
    const step = { revision_id, from: "DEPLOYING", to: "DEPLOYED", status_message: null, ends: true } as const;
    if (!(await moveIfAt(tx, step))) return false;
    await setActiveRevision(tx, { deployment_id, revision_id });
    const before = instances.filter((one) => !fresh.includes(one)).map(({ instance_id }) => instance_id);
    if (before.length > 0) await drainInstances(tx, before, work.settings.drain_ms);
    return true;
  });

export const drain = ({ instances, drain_ms }: StepThat<"drain">, work: Work): Promise<number> =>
  work.commit((tx) =>
    drainInstances(
      tx,
      instances.map(({ instance_id }) => instance_id),
      drain_ms,
    ),
  );

export const forget = ({ instance }: StepThat<"forget restarts">, work: Work): Promise<number> =>
  work.commit((tx) => forgetRestarts(tx, instance));

/** The end of a deployment of which nothing else is left. */
export const erase = (work: Work): Promise<void> =>
  work.commit((tx) => deleteDeploymentRows(tx, work.deployment.deployment_id));
