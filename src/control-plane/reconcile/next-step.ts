import type { RevisionRow, RevisionStatus } from "../storage/schema.ts";
import { deletionStep, isBusy } from "./deletion-step.ts";
import { type DeploymentState, fingerprint, freshOf, rolloutOf, upstreamsOf } from "./deployment-state.ts";
import { givenUpAt } from "./health.ts";
import { replicasOf } from "./instance-order.ts";
import { instanceStep, lookAt } from "./instance-step.ts";
import { isTerminal } from "./revision-states.ts";
import { type Facts, keyOf, type Step, type StepSettings } from "./steps.ts";

/** A job that a driver has failed this often has failed for good. The first attempt and three more. */
const MAX_FAILURES = 4;
/** An instance that ended this often before it was ready takes its revision along. */
const MAX_DEATHS = 3;

/** What is to be done next, given what the rows say and what this process knows. Decides and does nothing. */
export function nextStep(state: DeploymentState, facts: Facts, settings: StepSettings): Step {
  if (state.deployment.status === "AWAITING_DELETE") return deletionStep(state, facts, settings);
  return (
    interruption(state, facts) ??
    queueStep(state, facts) ??
    rolloutStep(state, facts, settings) ??
    routeStep(state, facts) ??
    activationStep(state, facts) ??
    instanceStep(state, facts, settings) ??
    pruneStep(state, facts) ??
    rest(state, facts, settings)
  );
}

/** Builder first, status next; the instances go with the status. */
function interruption({ revisions }: DeploymentState, { jobs, switched }: Facts): Step | undefined {
  const revision = revisions.find(
    // Past the switch of the traffic there is no way back.
    (one) => one.interrupt_asked === 1 && isUnderWay(one.status) && rolloutOf(one) !== switched,
  );
  if (!revision) return undefined;
  const key = keyOf({ kind: "build", revision });
  const building = jobs.get(key);
  if (!building) return { do: "move", revision, to: "INTERRUPTED", message: "Interrupted by a request." };
  // The build's end calls for another look.
  return building.aborted ? undefined : { do: "abort", key };
}

/** One revision at a time is under way, the others queue, and of those the newest wins. */
function queueStep({ revisions }: DeploymentState, facts: Facts): Step | undefined {
  const ahead = revisions.some(({ status }) => isUnderWay(status) && status !== "CREATING" && status !== "QUEUED");
  const queued = revisions.filter(({ status }) => status === "QUEUED");
  const created = revisions.find(({ status }) => status === "CREATING");
  if (created) return setOut(created, facts);
  const [oldest, newer] = queued;
  if (!oldest) return undefined;
  if (newer)
    return { do: "move", revision: oldest, to: "SKIPPED", message: "A newer revision took its place in the queue." };
  return ahead ? undefined : setOut(oldest, facts);
}

function setOut(revision: RevisionRow, facts: Facts): Step {
  const plan = facts.plan(revision);
  if (plan.kind === "impossible") return { do: "move", revision, to: "CREATE_FAILED", message: plan.because };
  if (plan.kind === "build") return { do: "move", revision, to: "AWAITING_BUILD", message: null };
  return { do: "move", revision, to: "AWAITING_DEPLOY", message: null, artifact: plan.image };
}

function rolloutStep(state: DeploymentState, facts: Facts, settings: StepSettings): Step | undefined {
  const revision = state.revisions.find(
    ({ status }) => isUnderWay(status) && status !== "CREATING" && status !== "QUEUED",
  );
  if (!revision) return undefined;
  if (revision.status === "DEPLOYING") return deployStep(revision, state, facts, settings);
  if (revision.status === "AWAITING_DEPLOY") return { do: "move", revision, to: "DEPLOYING", message: null };
  return buildStep(revision, facts);
}

function buildStep(revision: RevisionRow, { jobs, troubles }: Facts): Step | undefined {
  const job = { kind: "build", revision } as const;
  // What is built is in no row yet, so it would be taken for old.
  if (jobs.has(keyOf(job)) || jobs.has("prune")) return undefined;
  const trouble = troubles.get(keyOf(job));
  if (trouble && trouble.failures >= MAX_FAILURES && revision.status === "BUILDING") {
    return { do: "move", revision, to: "BUILD_FAILED", message: gaveUp("built") };
  }
  return trouble?.waits ? undefined : { do: "begin", job };
}

function deployStep(
  revision: RevisionRow,
  state: DeploymentState,
  facts: Facts,
  settings: StepSettings,
): Step | undefined {
  const fresh = freshOf(revision, state);
  if (facts.switched === rolloutOf(revision)) return { do: "switch", revision, fresh };
  const replicas = replicasOf(revision);
  if (fresh.length < replicas) return { do: "want", revision, replicas };
  const failed = (message: string): Step => ({ do: "move", revision, to: "DEPLOY_FAILED", message });
  for (const instance of fresh) {
    const trouble = facts.troubles.get(keyOf({ kind: "ensure", instance, revision }));
    if (trouble && trouble.failures >= MAX_FAILURES) return failed(gaveUp("started"));
    if (instance.restarts >= MAX_DEATHS)
      return failed(seen(`Ended ${MAX_DEATHS} times before it was ready.`, revision));
  }
  if (fresh.every((instance) => instance.state === "ready")) return { do: "switch", revision, fresh };
  if (state.now < givenUpAt(courseOf(revision, state, facts), settings)) return undefined;
  const seconds = Math.round((state.now - (revision.deploying_at ?? 0)) / 1000);
  return failed(seen(`Not ready after ${seconds} s.`, revision));
}

const courseOf = (revision: RevisionRow, state: DeploymentState, { kept_since }: Facts) => ({
  began_at: Math.max(revision.deploying_at ?? 0, kept_since),
  progress_at: Math.max(state.last_line_at ?? 0, ...freshOf(revision, state).map(({ updated_at }) => updated_at)),
});

/** With what was last seen of its instances. */
const seen = (sentence: string, { status_message }: RevisionRow) =>
  status_message === null ? sentence : `${sentence} ${status_message}`;

const gaveUp = (done: string) =>
  `It could not be ${done}, ${MAX_FAILURES} times in a row, and not because of what was deployed: the log of the service says why.`;

function routeStep(state: DeploymentState, { routed }: Facts): Step | undefined {
  if (state.deployment.active_revision_id === null) return undefined;
  const upstreams = upstreamsOf(state);
  return fingerprint(upstreams) === routed ? undefined : { do: "route", upstreams };
}

/** Once a process, also where it was done before: whether the last one came to it, no row says. Instances take it for what it is. */
function activationStep(state: DeploymentState, { activated, jobs, troubles }: Facts): Step | undefined {
  const [instance] = upstreamsOf(state);
  if (!instance || instance.rollout === activated) return undefined;
  const job = { kind: "activate", instance } as const;
  return jobs.has(keyOf(job)) || troubles.get(keyOf(job))?.waits ? undefined : { do: "begin", job };
}

/** After each roll-out, when nothing is under way. */
function pruneStep({ deployment, revisions }: DeploymentState, { pruned, jobs, troubles }: Facts): Step | undefined {
  const active = revisions.find(({ revision_id }) => revision_id === deployment.active_revision_id);
  if (!active || rolloutOf(active) === pruned || revisions.some(({ status }) => isUnderWay(status))) return undefined;
  const isBuilding = [...jobs.keys()].some((key) => key.startsWith("build "));
  const key = "prune";
  return isBuilding || jobs.has(key) || troubles.get(key)?.waits
    ? undefined
    : { do: "begin", job: { kind: "prune", after: rolloutOf(active) } };
}

/** Until something is due. Ends of jobs, and those who change what is wanted, call before that. */
function rest(state: DeploymentState, facts: Facts, settings: StepSettings): Step {
  const underWay = state.revisions.filter(({ status }) => isUnderWay(status));
  if (!isBusy(facts) && state.instances.length === 0 && underWay.length === 0) return { do: "leave" };
  const deploying = underWay.filter(({ status }) => status === "DEPLOYING");
  const times = [
    state.now + settings.look_ms,
    ...deploying.map((revision) => givenUpAt(courseOf(revision, state, facts), settings)),
    ...state.instances.map((instance) => lookAt(instance, state, facts, settings)),
  ];
  return { do: "rest", ms: Math.min(...times.filter((time) => time > state.now)) - state.now };
}

const isUnderWay = (status: RevisionStatus) => !isTerminal(status);
