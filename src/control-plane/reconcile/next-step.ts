import { SKIPPED_MESSAGE } from "../storage/revisions.ts";
import type { InstanceRow, RevisionRow, RevisionStatus } from "../storage/schema.ts";
import {
  type DeploymentState,
  fingerprint,
  roleOf,
  rolloutId,
  rolloutInstancesOf,
  upstreamsOf,
} from "./deployment-state.ts";
import { replicasOf } from "./instance-spec.ts";
import { isTerminal } from "./revision-transitions.ts";
import { type Facts, type InstanceJob, keyOf, type ReconcileStep, type StepSettings } from "./steps.ts";

/** A driver failure is permanent after the first attempt and three retries. */
const MAX_FAILURES = 4;
/** A revision fails when one instance has ended this many times before it was ready. */
const MAX_EARLY_ENDS = 3;
/** A rollout fails after this many times `deadline_ms`, even if the instances still write log lines. */
const MAX_DEADLINES = 4;

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

/** Deploys one revision at a time. Of the queued revisions, only the newest is kept. */
function queueStep({ revisions }: DeploymentState, facts: Facts): ReconcileStep | undefined {
  const created = revisions.find(({ status }) => status === "CREATING");
  if (created) return startRevision(created, facts);
  const [oldest, newer] = revisions.filter(({ status }) => status === "QUEUED");
  if (!oldest) return undefined;
  if (newer) return { do: "transition", revision: oldest, to: "SKIPPED", message: SKIPPED_MESSAGE };
  return revisions.some(isStarted) ? undefined : startRevision(oldest, facts);
}

const isStarted = ({ status }: RevisionRow) => isInProgress(status) && status !== "CREATING" && status !== "QUEUED";

function startRevision(revision: RevisionRow, facts: Facts): ReconcileStep {
  const plan = facts.plan(revision);
  if (plan.kind === "invalid") return { do: "transition", revision, to: "CREATE_FAILED", message: plan.reason };
  if (plan.kind === "build") return { do: "transition", revision, to: "AWAITING_BUILD", message: null };
  return { do: "transition", revision, to: "AWAITING_DEPLOY", message: null, artifact: plan.image };
}

function rolloutStep(state: DeploymentState, facts: Facts, settings: StepSettings): ReconcileStep | undefined {
  const revision = state.revisions.find(isStarted);
  if (!revision) return undefined;
  if (revision.status === "DEPLOYING") return deployStep(revision, state, facts, settings);
  if (revision.status === "AWAITING_DEPLOY") return { do: "transition", revision, to: "DEPLOYING", message: null };
  return buildStep(revision, facts);
}

function buildStep(revision: RevisionRow, { jobs, failures }: Facts): ReconcileStep | undefined {
  const job = { kind: "build", revision } as const;
  // No row refers to the new build yet, so pruning during a build would remove the new build.
  if (jobs.has(keyOf(job)) || jobs.has("prune")) return undefined;
  const failure = failures.get(keyOf(job));
  if (failure && failure.count >= MAX_FAILURES && revision.status === "BUILDING") {
    return { do: "transition", revision, to: "BUILD_FAILED", message: driverFailure("build") };
  }
  return failure?.backing_off ? undefined : { do: "start job", job };
}

function deployStep(
  revision: RevisionRow,
  state: DeploymentState,
  facts: Facts,
  settings: StepSettings,
): ReconcileStep | undefined {
  const instances = rolloutInstancesOf(revision, state);
  if (facts.uncommitted_switch === rolloutId(revision)) return { do: "switch", revision, upstreams: instances };
  const replicas = replicasOf(revision);
  if (instances.length < replicas) return { do: "insert instances", revision, replicas };
  const failed = (message: string): ReconcileStep => ({ do: "transition", revision, to: "DEPLOY_FAILED", message });
  for (const instance of instances) {
    const failure = facts.failures.get(keyOf({ kind: "ensure", instance, revision }));
    if (failure && failure.count >= MAX_FAILURES) return failed(driverFailure("start"));
    if (instance.restarts >= MAX_EARLY_ENDS)
      return failed(
        withLastObservation(`An instance exited ${MAX_EARLY_ENDS} times before it became ready.`, revision),
      );
  }
  if (instances.every((instance) => instance.state === "ready"))
    return { do: "switch", revision, upstreams: instances };
  if (state.now < rolloutDeadline(rolloutProgress(revision, state, facts), settings)) return undefined;
  const seconds = Math.round((state.now - (revision.deploying_at ?? 0)) / 1000);
  return failed(withLastObservation(`The instances were not ready after ${seconds} s.`, revision));
}

const rolloutProgress = (revision: RevisionRow, state: DeploymentState, { held_since }: Facts) => ({
  began_at: Math.max(revision.deploying_at ?? 0, held_since),
  progress_at: Math.max(
    state.last_line_at ?? 0,
    ...rolloutInstancesOf(revision, state).map(({ updated_at }) => updated_at),
  ),
});

export interface DeadlineSettings {
  /** Time within which the instances of a rollout must become ready. */
  deadline_ms: number;
  /** The deadline is extended while an instance has written a log line, or its row has changed, within this time. */
  progress_ms: number;
}

/** The time at which a rollout fails. Progress extends the deadline, so that a rollout does not fail just before its instances are ready. */
export function rolloutDeadline(
  { began_at, progress_at }: { began_at: number; progress_at: number },
  { deadline_ms, progress_ms }: DeadlineSettings,
): number {
  const deadline = Math.max(began_at + deadline_ms, progress_at + Math.min(progress_ms, deadline_ms));
  return Math.min(deadline, began_at + MAX_DEADLINES * deadline_ms);
}

/** Appends the status message, which contains the last observation of the instances during a rollout. */
const withLastObservation = (sentence: string, { status_message }: RevisionRow) =>
  status_message === null ? sentence : `${sentence} ${status_message}`;

const driverFailure = (action: "build" | "start") =>
  `The ${action} failed ${MAX_FAILURES} times because of an infrastructure error, not because of the deployment. See the log of the Threadmill service, then deploy again.`;

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

const isInProgress = (status: RevisionStatus) => !isTerminal(status);

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
