import { randomBytes } from "node:crypto";
import { newId } from "../../platform/lib/ids.ts";
import { type DeploymentState, fingerprint, rolloutId } from "../reconcile/deployment-state.ts";
import type { DeploymentContext } from "../reconcile/reconciler-context.ts";
import type { StepOf } from "../reconcile/steps.ts";
import type { Upstream } from "../router/router.ts";
import { drainInstances, drainRollout, insertInstances, type NewInstance } from "../storage/instances.ts";
import { setActiveRevision } from "../storage/revisions.ts";
import type { InstanceRow, RevisionRow } from "../storage/schema.ts";
import { apiKeyAad, apiKeyOf } from "./instance-spec.ts";
import { transition } from "./revision-transitions.ts";

export const applyTransition = (
  { revision, to, message, artifact }: Omit<StepOf<"transition">, "do">,
  context: DeploymentContext,
): Promise<boolean> => {
  const { revision_id, status: from, deploying_at } = revision;
  const change = { from, to, status_message: message, ...(artifact !== undefined && { artifact }) };
  return transition(revision, change, context, async (tx) => {
    // A revision that is deployed again may already be serving requests, so only the instances of this rollout are drained.
    if (from === "DEPLOYING") await drainRollout(tx, { revision_id, rollout: deploying_at as number });
  });
};

/** Inserts the rows before the drivers start the instances, so no instance exists without a row. */
export async function insertRolloutInstances(
  { revision, replicas }: StepOf<"insert instances">,
  context: DeploymentContext,
): Promise<void> {
  const driver = context.drivers.driverFor(revision)?.kind ?? "none";
  const rows = Array.from({ length: replicas }, (_, replica) => newInstance(revision, { replica, driver }, context));
  await context.commit((tx) => insertInstances(tx, rows));
}

function newInstance(
  { deployment_id, revision_id, tenant_id, deploying_at }: RevisionRow,
  { replica, driver }: Pick<InstanceRow, "replica" | "driver">,
  { seal }: DeploymentContext,
): NewInstance {
  const instance_id = newId();
  const api_key = seal.seal(randomBytes(32).toString("base64url"), apiKeyAad({ tenant_id, instance_id }));
  const rollout = deploying_at as number;
  return { instance_id, deployment_id, revision_id, tenant_id, rollout, replica, driver, api_key };
}

export function routeTo(instances: readonly InstanceRow[], context: DeploymentContext): void {
  const { router, deployment, facts } = context;
  const upstreams = instances.flatMap((instance): Upstream[] => {
    const api_key = apiKeyOf(instance, context);
    if (api_key === undefined) return [];
    const { instance_id, address, custom_auth } = instance;
    return [{ instance_id, address: address ?? "", api_key, custom_auth: custom_auth === 1 }];
  });
  router.activate(deployment.deployment_id, upstreams);
  facts.routed_upstreams = fingerprint(instances);
}

/**
 * Switches the router, then commits the rows. The switch cannot be undone, so a commit that throws is retried. If the revision is no longer
 * being deployed, the next step routes to the instances of the active one.
 */
export async function switchTraffic(
  step: StepOf<"switch">,
  state: DeploymentState,
  context: DeploymentContext,
): Promise<void> {
  const { facts } = context;
  routeTo(step.upstreams, context);
  facts.uncommitted_switch = rolloutId(step.revision);
  if (!(await commitTrafficSwitch(step, state, context))) facts.routed_upstreams = undefined;
  facts.uncommitted_switch = undefined;
}

/**
 * Writes `active_revision_id`, which no other function does. Drains all other instances.
 *
 * @returns false if the revision is no longer being deployed
 */
const commitTrafficSwitch = (
  { revision, upstreams }: StepOf<"switch">,
  { instances }: DeploymentState,
  context: DeploymentContext,
): Promise<boolean> =>
  transition(revision, { from: "DEPLOYING", to: "DEPLOYED", status_message: null }, context, async (tx) => {
    await setActiveRevision(tx, revision);
    const before = instances.filter((instance) => !upstreams.includes(instance)).map(({ instance_id }) => instance_id);
    if (before.length > 0) await drainInstances(tx, before, context.settings.drain_ms);
  });
