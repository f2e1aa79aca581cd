import type { InstanceRow, RevisionRow } from "../storage/schema.ts";
import { type DeploymentState, purposeOf } from "./deployment-state.ts";
import { type Facts, type Job, keyOf, type Step, type StepSettings } from "./steps.ts";

/** One that has served ends its runs in good order: as long as a Threadmill takes to hand them back, and a little more. */
export const GRACE_MS = 45_000;
/** One that has never served, or whose deployment goes, has nothing to hand back. */
const SHORT_GRACE_MS = 5_000;

/** The next step about any of the instances, if one is due. */
export function instanceStep(state: DeploymentState, facts: Facts, settings: StepSettings): Step | undefined {
  for (const instance of state.instances) {
    const step =
      purposeOf(instance, state) === "is to go"
        ? goingStep(instance, state, facts, settings)
        : stayingStep(instance, state, facts, settings);
    if (step) return step;
  }
  return undefined;
}

function goingStep(
  instance: InstanceRow,
  state: DeploymentState,
  facts: Facts,
  { drain_ms }: StepSettings,
): Step | undefined {
  const isDeleted = state.deployment.status === "AWAITING_DELETE";
  if (instance.state !== "draining" || (isDeleted && (instance.drain_until ?? 0) > state.now)) {
    return { do: "drain", instances: [instance], drain_ms: isDeleted ? 0 : drain_ms };
  }
  const revision = revisionOf(instance, state);
  for (const kind of ["ensure", "gate", "watch"] as const) {
    const key = keyOf({ kind, instance, revision });
    if (facts.jobs.get(key)?.aborted === false) return { do: "abort", key };
  }
  const stop = { kind: "stop", instance, grace_ms: graceOf(revision, isDeleted) } as const;
  if (isAtWork(instance, revision, facts) || facts.troubles.get(keyOf(stop))?.waits) return undefined;
  const isDone = (instance.drain_until ?? 0) <= state.now || facts.inFlight(instance.instance_id) === 0;
  return isDone ? { do: "begin", job: stop } : undefined;
}

const graceOf = ({ status }: RevisionRow, isDeleted: boolean) =>
  status === "DEPLOYED" && !isDeleted ? GRACE_MS : SHORT_GRACE_MS;

function stayingStep(
  instance: InstanceRow,
  state: DeploymentState,
  { jobs, troubles, known, kept_since }: Facts,
  { deadline_ms, steady_ms }: StepSettings,
): Step | undefined {
  const revision = revisionOf(instance, state);
  const job = (kind: "ensure" | "gate" | "watch" | "restart") => ({ kind, instance, revision }) as Job;
  const begin = (kind: Parameters<typeof job>[0]): Step | undefined => {
    const key = keyOf(job(kind));
    return jobs.has(key) || troubles.get(key)?.waits ? undefined : { do: "begin", job: job(kind) };
  };
  if (jobs.has(keyOf(job("restart")))) return undefined;
  if (instance.state === "wanted" || !known.has(instance.instance_id)) {
    return (instance.restart_at ?? 0) > state.now ? undefined : begin("ensure");
  }
  if (instance.state === "starting") {
    // A roll-out has a deadline of its own; one that serves and does not come back is tried again.
    const isLate =
      purposeOf(instance, state) === "serves" && Math.max(instance.updated_at, kept_since) + deadline_ms <= state.now;
    if (!isLate) return begin("gate");
    const gate = jobs.get(keyOf(job("gate")));
    if (gate) return gate.aborted ? undefined : { do: "abort", key: keyOf(job("gate")) };
    return begin("restart");
  }
  if (instance.restarts > 0 && instance.updated_at + steady_ms <= state.now) return { do: "forget restarts", instance };
  return begin("watch");
}

const isAtWork = (instance: InstanceRow, revision: RevisionRow, { jobs }: Facts): boolean =>
  (["ensure", "gate", "watch", "restart"] as const).some((kind) => jobs.has(keyOf({ kind, instance, revision }))) ||
  jobs.has(keyOf({ kind: "stop", instance, grace_ms: 0 }));

/** When the passing of time alone calls for another look at an instance. */
export function lookAt(
  instance: InstanceRow,
  state: DeploymentState,
  facts: Facts,
  { deadline_ms, steady_ms, drain_look_ms }: StepSettings,
): number {
  const { now } = state;
  switch (instance.state) {
    case "wanted":
      return instance.restart_at ?? Number.POSITIVE_INFINITY;
    case "starting":
      return purposeOf(instance, state) === "serves"
        ? Math.max(instance.updated_at, facts.kept_since) + deadline_ms
        : Number.POSITIVE_INFINITY;
    case "ready":
      return instance.restarts > 0 ? instance.updated_at + steady_ms : Number.POSITIVE_INFINITY;
    case "draining": {
      const until = instance.drain_until ?? 0;
      const isWaiting = until > now && facts.inFlight(instance.instance_id) < Number.POSITIVE_INFINITY;
      return isWaiting ? Math.min(until, now + drain_look_ms) : until;
    }
  }
}

/** The row is there: {@link DeploymentState} has the revisions of all instances. */
const revisionOf = ({ revision_id }: InstanceRow, { revisions }: DeploymentState): RevisionRow =>
  revisions.find((revision) => revision.revision_id === revision_id) as RevisionRow;
