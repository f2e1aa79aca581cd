import { isInProgress } from "../rollout/revision-transitions.ts";
import { queueStep, rolloutDeadline, rolloutProgress, rolloutStep } from "../rollout/rollout-step.ts";
import type { InstanceRow, RevisionRow } from "../storage/schema.ts";
import { type DeploymentState, fingerprint, roleOf, rolloutId, upstreamsOf } from "./deployment-state.ts";
import { type Facts, type InstanceJob, keyOf, type ReconcileStep, type StepSettings } from "./steps.ts";

/** Decides the next step from the rows of a deployment and the facts of the controller. Has no side effects. */
export function nextStep(state: DeploymentState, facts: Facts, settings: StepSettings): ReconcileStep {
  if (state.deployment.status === "AWAITING_DELETE") return deletionStep(state, facts, settings);
  return (
    interruptStep(state, facts) ??
    queueStep(state, facts) ??
    rolloutStep(state, facts, settings) ??
    routeStep(state, facts) ??
    activationStep(state, facts) ??
    instanceStep(state, facts, settings) ??
    pruneStep(state, facts) ??
    waitStep(state, facts, settings)
  );
}

/** Aborts a running build, then sets the status INTERRUPTED. The transition also drains the instances of the rollout. */
function interruptStep({ revisions }: DeploymentState, { jobs, uncommitted_switch }: Facts): ReconcileStep | undefined {
  const revision = revisions.find(
    // A traffic switch cannot be undone.
    (each) => each.interrupt_asked === 1 && isInProgress(each.status) && rolloutId(each) !== uncommitted_switch,
  );
  if (!revision) return undefined;
  const key = keyOf({ kind: "build", revision });
  const building = jobs.get(key);
  if (!building) return { do: "transition", revision, to: "INTERRUPTED", message: "Interrupted by an API request." };
  // The end of the build wakes the controller.
  return building.aborted ? undefined : { do: "abort job", key };
}

function routeStep(state: DeploymentState, { routed_upstreams }: Facts): ReconcileStep | undefined {
  if (state.deployment.active_revision_id === null) return undefined;
  const upstreams = upstreamsOf(state);
  return fingerprint(upstreams) === routed_upstreams ? undefined : { do: "route", upstreams };
}

/** Activates the serving rollout once in each controller, because no row records whether an earlier controller has activated it. */
function activationStep(
  state: DeploymentState,
  { activated_rollout, jobs, failures }: Facts,
): ReconcileStep | undefined {
  const [instance] = upstreamsOf(state);
  if (!instance || instance.rollout === activated_rollout) return undefined;
  const job = { kind: "activate", instance } as const;
  return jobs.has(keyOf(job)) || failures.get(keyOf(job))?.backing_off ? undefined : { do: "start job", job };
}

/** Removes old builds after each rollout, when no revision is in progress. */
function pruneStep(
  { deployment, revisions }: DeploymentState,
  { pruned_after, jobs, failures }: Facts,
): ReconcileStep | undefined {
  const active = revisions.find(({ revision_id }) => revision_id === deployment.active_revision_id);
  if (!active || rolloutId(active) === pruned_after || revisions.some(({ status }) => isInProgress(status)))
    return undefined;
  const job = { kind: "prune", after: rolloutId(active) } as const;
  const isBuilding = [...jobs.keys()].some((key) => key.startsWith("build "));
  return isBuilding || jobs.has(keyOf(job)) || failures.get(keyOf(job))?.backing_off
    ? undefined
    : { do: "start job", job };
}

/** Waits until a step may be due, a job ends or the deployment changes. Releases the deployment if nothing is running or pending. */
function waitStep(state: DeploymentState, facts: Facts, settings: StepSettings): ReconcileStep {
  const in_progress = state.revisions.filter(({ status }) => isInProgress(status));
  if (!isBusy(facts) && state.instances.length === 0 && in_progress.length === 0) return { do: "release" };
  const deploying = in_progress.filter(({ status }) => status === "DEPLOYING");
  const times = [
    state.now + settings.resync_ms,
    ...deploying.map((revision) => rolloutDeadline(rolloutProgress(revision, state, facts), settings)),
    ...state.instances.map((instance) => nextCheckAt(instance, state, facts, settings)),
  ];
  return { do: "wait", ms: Math.min(...times.filter((time) => time > state.now)) - state.now };
}

/** In this order: closes the route, aborts builds, stops instances, removes driver resources and uploads, deletes the rows. */
function deletionStep(state: DeploymentState, facts: Facts, settings: StepSettings): ReconcileStep {
  if (!facts.route_closed) return { do: "close route" };
  for (const revision of state.revisions) {
    const key = keyOf({ kind: "build", revision });
    if (facts.jobs.get(key)?.aborted === false) return { do: "abort job", key };
  }
  const step = instanceStep(state, facts, settings);
  if (step) return step;
  if (isBusy(facts) || state.instances.length > 0) return { do: "wait", ms: settings.resync_ms };
  return facts.resources_removed ? { do: "delete rows" } : { do: "start job", job: { kind: "remove" } };
}

/** Whether a job runs or will be retried. */
const isBusy = ({ jobs, failures }: Facts): boolean =>
  jobs.size > 0 || [...failures.values()].some(({ backing_off }) => backing_off);

/** Grace period of an instance that has served requests: longer than an agent server takes to return its runs to the queue. */
export const GRACE_MS = 45_000;
/** Grace period of an instance whose runs need not be returned: it never served requests, or the deployment is being deleted. */
const SHORT_GRACE_MS = 5_000;

function instanceStep(state: DeploymentState, facts: Facts, settings: StepSettings): ReconcileStep | undefined {
  for (const instance of state.instances) {
    const nextOf = roleOf(instance, state) === "retiring" ? retiringStep : activeStep;
    const step = nextOf(instance, state, facts, settings);
    if (step) return step;
  }
  return undefined;
}

function retiringStep(
  instance: InstanceRow,
  state: DeploymentState,
  facts: Facts,
  { drain_ms }: StepSettings,
): ReconcileStep | undefined {
  const isDeleted = state.deployment.status === "AWAITING_DELETE";
  if (instance.state !== "draining" || (isDeleted && (instance.drain_until ?? 0) > state.now)) {
    return { do: "drain", instances: [instance], drain_ms: isDeleted ? 0 : drain_ms };
  }
  const revision = revisionOf(instance, state);
  for (const kind of ["ensure", "readiness", "watch"] as const) {
    const key = keyOf({ kind, instance, revision });
    if (facts.jobs.get(key)?.aborted === false) return { do: "abort job", key };
  }
  const stop = { kind: "stop", instance, grace_ms: isDeleted ? SHORT_GRACE_MS : graceOf(instance, revision) } as const;
  if (hasRunningJob(instance, revision, facts) || facts.failures.get(keyOf(stop))?.backing_off) return undefined;
  const isDone = (instance.drain_until ?? 0) <= state.now || facts.inFlight(instance.instance_id) === 0;
  return isDone ? { do: "start job", job: stop } : undefined;
}

/** After a failed redeployment, the instances of the earlier rollout of the revision still serve. */
const graceOf = ({ rollout }: InstanceRow, { status, deploying_at }: RevisionRow) =>
  status === "DEPLOYED" || rollout !== deploying_at ? GRACE_MS : SHORT_GRACE_MS;

function activeStep(
  instance: InstanceRow,
  state: DeploymentState,
  { jobs, failures, attached, held_since }: Facts,
  { deadline_ms, stable_ms }: StepSettings,
): ReconcileStep | undefined {
  const revision = revisionOf(instance, state);
  const job = (kind: InstanceJob["kind"]): InstanceJob => ({ kind, instance, revision });
  const start = (kind: InstanceJob["kind"]): ReconcileStep | undefined => {
    const key = keyOf(job(kind));
    return jobs.has(key) || failures.get(key)?.backing_off ? undefined : { do: "start job", job: job(kind) };
  };
  if (jobs.has(keyOf(job("restart")))) return undefined;
  if (instance.state === "wanted" || !attached.has(instance.instance_id)) {
    return (instance.restart_at ?? 0) > state.now ? undefined : start("ensure");
  }
  if (instance.state === "starting") {
    // During a rollout, the revision fails at its deadline. A serving instance that does not become ready again is restarted.
    const isLate =
      roleOf(instance, state) === "serving" && Math.max(instance.updated_at, held_since) + deadline_ms <= state.now;
    if (!isLate) return start("readiness");
    const readiness = jobs.get(keyOf(job("readiness")));
    if (readiness) return readiness.aborted ? undefined : { do: "abort job", key: keyOf(job("readiness")) };
    return start("restart");
  }
  if (instance.restarts > 0 && instance.updated_at + stable_ms <= state.now) return { do: "reset restarts", instance };
  return start("watch");
}

const hasRunningJob = (instance: InstanceRow, revision: RevisionRow, { jobs }: Facts): boolean =>
  (["ensure", "readiness", "watch", "restart"] as const).some((kind) =>
    jobs.has(keyOf({ kind, instance, revision })),
  ) || jobs.has(keyOf({ kind: "stop", instance, grace_ms: 0 }));

/** Time at which an instance may need another step even if no row changes. */
function nextCheckAt(
  instance: InstanceRow,
  state: DeploymentState,
  facts: Facts,
  { deadline_ms, stable_ms, drain_check_ms }: StepSettings,
): number {
  const { now } = state;
  switch (instance.state) {
    case "wanted":
      return instance.restart_at ?? Number.POSITIVE_INFINITY;
    case "starting":
      return roleOf(instance, state) === "serving"
        ? Math.max(instance.updated_at, facts.held_since) + deadline_ms
        : Number.POSITIVE_INFINITY;
    case "ready":
      return instance.restarts > 0 ? instance.updated_at + stable_ms : Number.POSITIVE_INFINITY;
    case "draining": {
      const until = instance.drain_until ?? 0;
      const isWaiting = until > now && facts.inFlight(instance.instance_id) < Number.POSITIVE_INFINITY;
      return isWaiting ? Math.min(until, now + drain_check_ms) : until;
    }
  }
}

/** The row always exists, because {@link DeploymentState} contains the revisions of all instances. */
const revisionOf = ({ revision_id }: InstanceRow, { revisions }: DeploymentState): RevisionRow =>
  revisions.find((revision) => revision.revision_id === revision_id) as RevisionRow;
