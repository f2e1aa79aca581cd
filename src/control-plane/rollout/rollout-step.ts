import { type DeploymentState, rolloutId, rolloutInstancesOf } from "../reconcile/deployment-state.ts";
import { type Facts, keyOf, type ReconcileStep, type StepSettings } from "../reconcile/steps.ts";
import { SKIPPED_MESSAGE } from "../storage/revisions.ts";
import type { RevisionRow } from "../storage/schema.ts";
import { replicasOf } from "./instance-spec.ts";
import { isInProgress } from "./revision-transitions.ts";

/** A driver failure is permanent after the first attempt and three retries. */
const MAX_FAILURES = 4;
/** A revision fails when one instance has ended this many times before it was ready. */
const MAX_EARLY_ENDS = 3;
/** A rollout fails after this many times `deadline_ms`, even if the instances still write log lines. */
const MAX_DEADLINES = 4;

/** Deploys one revision at a time. Of the queued revisions, only the newest is kept. */
export function queueStep({ revisions }: DeploymentState, facts: Facts): ReconcileStep | undefined {
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

export function rolloutStep(state: DeploymentState, facts: Facts, settings: StepSettings): ReconcileStep | undefined {
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
        withLastObservation(`An instance exited ${MAX_EARLY_ENDS} times without becoming ready.`, revision),
      );
  }
  if (instances.every((instance) => instance.state === "ready"))
    return { do: "switch", revision, upstreams: instances };
  if (state.now < rolloutDeadline(rolloutProgress(revision, state, facts), settings)) return undefined;
  const seconds = Math.round((state.now - (revision.deploying_at ?? 0)) / 1000);
  return failed(withLastObservation(`The instances were not ready after ${seconds} s.`, revision));
}

export const rolloutProgress = (revision: RevisionRow, state: DeploymentState, { held_since }: Facts) => ({
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
