import { randomBytes } from "node:crypto";
import { type BuildIo, type Built, backOffMs, DeployError, type InstanceRef, type LogLine } from "../drivers/driver.ts";
import { setDatabasePasswordIfUnset } from "../storage/deployments.ts";
import { deleteInstance, readyIfStarting, recordStarted, scheduleRestart } from "../storage/instances.ts";
import { deleteLogLines } from "../storage/logs.ts";
import { artifactsOf, clearOldArtifacts, pinArtifact, setMessageIfStatus } from "../storage/revisions.ts";
import type { InstanceRow, RevisionRow } from "../storage/schema.ts";
import { applyTransition } from "./apply-step.ts";
import { apiKeyAad, buildSpec, databasePasswordAad, instanceSpec, parsedRevisionConfig } from "./instance-spec.ts";
import { callDriver, type DeploymentContext, instanceRefOf, requireDriver } from "./reconciler-context.ts";
import { transition } from "./revision-transitions.ts";
import type { InstanceJob, Job, JobOf } from "./steps.ts";

type RunJob<J extends Job> = (job: J, context: DeploymentContext, signal: AbortSignal) => Promise<void>;

export const runJob: RunJob<Job> = (job, context, signal) => {
  const run: RunJob<never> = JOBS[job.kind];
  return run(job as never, context, signal);
};

/** Builds a revision when a slot is free. If the service dies during a build, the build starts over; drivers cache builds by content. */
async function build({ revision }: JobOf<"build">, context: DeploymentContext, signal: AbortSignal): Promise<void> {
  await context.buildSlots.use(signal, async () => {
    if (!(await beginBuild(revision, context))) return;
    try {
      const { artifact, commit_sha } = await buildArtifact(revision, context, signal);
      if (signal.aborted) return;
      await context.flushLogs();
      const found = commit_sha === undefined ? {} : { source_revision_config: withCommit(revision, commit_sha) };
      const change = { from: "BUILDING", to: "AWAITING_DEPLOY", status_message: null, artifact, ...found } as const;
      await transition(revision, change, context);
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof DeployError)) throw error;
      await context.flushLogs();
      const change = { from: "BUILDING", to: "BUILD_FAILED", status_message: error.message } as const;
      await transition(revision, change, context);
    }
  });
}

async function beginBuild(revision: RevisionRow, context: DeploymentContext): Promise<boolean> {
  if (revision.status === "BUILDING") return true;
  return transition(revision, { from: "AWAITING_BUILD", to: "BUILDING", status_message: null }, context);
}

async function buildArtifact(revision: RevisionRow, context: DeploymentContext, signal: AbortSignal): Promise<Built> {
  const driver = context.drivers.driverFor(revision.source);
  if (!driver?.build) throw new DeployError(`This service cannot build deployments with source "${revision.source}".`);
  const spec = await callDriver(() => buildSpec(revision, context));
  const log = (line: LogLine) => context.appendLog("build", revision, line);
  return callDriver(async () => driver.build?.(spec, { log, signal }) as Promise<Built>);
}

/** Adds the built commit to the config of the revision, because the branch may change later. */
const withCommit = ({ source_revision_config }: RevisionRow, repo_commit_sha: string): string =>
  JSON.stringify({ ...JSON.parse(source_revision_config), repo_commit_sha });

const logFieldsOf = ({ deployment_id, revision_id, instance_id }: InstanceRow) => ({
  deployment_id,
  revision_id,
  instance_id,
});

async function ensure(job: InstanceJob, context: DeploymentContext, signal: AbortSignal): Promise<void> {
  const { instance, revision } = job;
  await context.driverSlots.use(signal, async () => {
    try {
      const log = (line: LogLine) => context.appendLog("deploy", revision, line);
      const pinned = belongsToRollout(job) ? await pin(job, context, { log, signal }) : revision;
      const database_password = await databasePasswordOf(instance, context);
      const input = { ...context, instance, revision: pinned, database_password };
      const spec = { ...instanceSpec(input, context.seal, log), logsPersisted: context.logsPersisted };
      const ref = await callDriver(() => requireDriver(instance.driver, context).ensure(spec));
      const is_new = (await context.commit((tx) => recordStarted(tx, ref))) > 0;
      context.facts.attached.add(instance.instance_id);
      if (is_new) context.log.info({ ...logFieldsOf(instance), address: ref.address }, "instance started");
    } catch (error) {
      if (!(error instanceof DeployError)) throw error;
      const { message } = error;
      if (belongsToRollout(job)) await applyTransition({ revision, to: "DEPLOY_FAILED", message }, context);
      else await restartLater(job, context, message);
    }
  });
}

async function databasePasswordOf(instance: InstanceRow, { seal, commit }: DeploymentContext): Promise<string> {
  const aad = databasePasswordAad(instance);
  const created = seal.seal(randomBytes(32).toString("base64url"), aad);
  return seal.open(await commit((tx) => setDatabasePasswordIfUnset(tx, instance.deployment_id, created)), aad);
}

/**
 * Pins the image of a revision at the first deployment, because a tag may refer to another image later.
 *
 * @returns the revision with the pinned artifact, which all instances of the revision use
 */
async function pin({ instance, revision }: InstanceJob, context: DeploymentContext, io: BuildIo): Promise<RevisionRow> {
  const driver = requireDriver(instance.driver, context);
  const { revision_id, deployment_id, artifact: image } = revision;
  if (!driver.pin || image === null) return revision;
  const spec = { deployment_id, image, pinned: image !== parsedRevisionConfig(revision).image_uri };
  const artifact = await callDriver(() => (driver.pin as NonNullable<typeof driver.pin>)(spec, io));
  if (artifact === image) return revision;
  return { ...revision, artifact: await context.commit((tx) => pinArtifact(tx, { revision_id, image, artifact })) };
}

/** Sets the state `ready` after `probes` consecutive successful checks. Schedules a restart if the instance ends before that. */
async function awaitReady(job: InstanceJob, context: DeploymentContext, signal: AbortSignal): Promise<void> {
  const { instance, revision } = job;
  const { probes, probe_ms } = context.settings;
  const ref = instanceRefOf(instance) as InstanceRef;
  let reported: string | undefined;
  for (let successes = 0; !signal.aborted; await context.wait(probe_ms, signal)) {
    const condition = await callDriver(() => requireDriver(instance.driver, context).probe(ref));
    if (condition.state === "ended") return restartLater(job, context, condition.reason);
    const { failure, custom_auth = false } = await context.checkReady(ref.address);
    successes = failure === undefined ? successes + 1 : 0;
    if (successes === probes) {
      await context.commit((tx) => readyIfStarting(tx, instance, custom_auth));
      return;
    }
    if (failure === undefined || failure === reported || !belongsToRollout(job)) continue;
    reported = failure;
    const status_message = `Last readiness check: /ok ${failure}.`;
    await context.commit((tx) => setMessageIfStatus(tx, { ...revision, status: "DEPLOYING", status_message }));
  }
}

async function activate({ instance }: JobOf<"activate">, context: DeploymentContext): Promise<void> {
  const api_key = context.seal.open(instance.api_key, apiKeyAad(instance));
  await context.activate({ address: instance.address ?? "", api_key });
  context.facts.activated_rollout = instance.rollout;
}

async function watch(job: InstanceJob, context: DeploymentContext, signal: AbortSignal): Promise<void> {
  const ref = instanceRefOf(job.instance) as InstanceRef;
  while (!signal.aborted) {
    const condition = await callDriver(() => requireDriver(job.instance.driver, context).probe(ref));
    if (condition.state === "ended") return restartLater(job, context, condition.reason);
    await context.wait(context.settings.watch_ms, signal);
  }
}

async function restart(job: InstanceJob, context: DeploymentContext, signal: AbortSignal): Promise<void> {
  await context.driverSlots.use(signal, async () => {
    await stopByDriver(job.instance, context, 0);
    await restartLater(job, context, "the instance did not recover in time");
  });
}

/** Stops an instance. The row is deleted last, so no instance exists without a row. */
async function stop(
  { instance, grace_ms }: JobOf<"stop">,
  context: DeploymentContext,
  signal: AbortSignal,
): Promise<void> {
  await context.driverSlots.use(signal, async () => {
    await stopByDriver(instance, context, grace_ms);
    await context.commit((tx) => deleteInstance(tx, instance.instance_id));
    context.facts.attached.delete(instance.instance_id);
    context.log.info(logFieldsOf(instance), "instance stopped");
  });
}

/** If the service died while it started the instance, the row has no handle, but the driver may list the instance. */
async function stopByDriver(instance: InstanceRow, context: DeploymentContext, grace_ms: number): Promise<void> {
  const { driver: kind, instance_id } = instance;
  const driver = requireDriver(kind, context);
  await callDriver(async () => {
    const ref = instanceRefOf(instance) ?? (await driver.list()).find((listed) => listed.instance_id === instance_id);
    if (ref) await driver.stop(ref, { grace_ms });
  });
}

/** Schedules a restart in the row. next-step.ts decides from the row whether the rollout fails. */
async function restartLater(
  { instance, revision }: InstanceJob,
  context: DeploymentContext,
  reason: string,
): Promise<void> {
  context.log.warn({ ...logFieldsOf(instance), reason }, "instance exited");
  await context.commit(async (tx) => {
    await scheduleRestart(tx, instance, backOffMs(instance.restarts + 1));
    const status_message = `Last exit: ${reason}.`;
    if (belongsToRollout({ instance, revision }))
      await setMessageIfStatus(tx, { ...revision, status: "DEPLOYING", status_message });
  });
  context.facts.attached.delete(instance.instance_id);
}

const belongsToRollout = ({ instance, revision }: Pick<InstanceJob, "instance" | "revision">): boolean =>
  revision.status === "DEPLOYING" && revision.deploying_at === instance.rollout;

/** Number of log lines that one transaction deletes. A larger transaction would delay other writes. */
const LOG_BATCH = 2_000;

/** Number of recently deployed revisions whose builds are kept, so that these revisions can be deployed again. */
const KEPT_BUILDS = 5;

async function remove(_: JobOf<"remove">, context: DeploymentContext): Promise<void> {
  const { database, drivers, uploads, deployment, driverSlots } = context;
  const { deployment_id } = deployment;
  const built = await artifactsOf(database.read, deployment_id);
  const sources = new Set([deployment.source, ...built.map(({ source }) => source)]);
  await driverSlots.use(new AbortController().signal, async () => {
    for (const driver of new Set([...sources].map((source) => drivers.driverFor(source)))) {
      const artifacts = built
        .filter(({ source }) => drivers.driverFor(source) === driver)
        .flatMap(({ artifact }) => artifact ?? []);
      await callDriver(async () => driver?.remove({ deployment_id, artifacts }));
    }
    await callDriver(() => uploads.removeOf(deployment_id));
  });
  while ((await context.commit((tx) => deleteLogLines(tx, deployment_id, LOG_BATCH))) > 0);
  context.facts.resources_removed = true;
}

/** Removes old builds. Updates the rows first, so that no row refers to a removed build. */
async function prune({ after }: JobOf<"prune">, context: DeploymentContext): Promise<void> {
  const { database, drivers, deployment, driverSlots } = context;
  const { deployment_id } = deployment;
  await context.commit((tx) => clearOldArtifacts(tx, { deployment_id, keep_count: KEPT_BUILDS }));
  const built = await artifactsOf(database.read, deployment_id);
  const keep = built.flatMap(({ artifact }) => artifact ?? []);
  await driverSlots.use(new AbortController().signal, async () => {
    for (const driver of drivers.all) await callDriver(async () => driver.prune?.({ deployment_id, keep }));
  });
  context.facts.pruned_after = after;
}

const JOBS: { [K in Job["kind"]]: RunJob<JobOf<K>> } = {
  build,
  ensure,
  readiness: awaitReady,
  watch,
  restart,
  stop,
  activate,
  prune,
  remove,
};
