import { randomBytes } from "node:crypto";
import { SealError } from "../../access/index.ts";
import { type BuildIo, type Built, DeployError, type InstanceRef, type LogLine } from "../drivers/driver.ts";
import { ListenerUnavailableError } from "../drivers/listener/connections.ts";
import { belongsToRollout, logFieldsOf, restartLater } from "../reconcile/instance-jobs.ts";
import { callDriver, type DeploymentContext, instanceRefOf, requireDriver } from "../reconcile/reconciler-context.ts";
import type { InstanceJob, JobOf } from "../reconcile/steps.ts";
import { replaceDatabasePassword, setDatabasePasswordIfUnset } from "../storage/deployments.ts";
import { readyIfStarting, recordStarted } from "../storage/instances.ts";
import { pinArtifact, setMessageIfStatus } from "../storage/revisions.ts";
import type { InstanceRow, RevisionRow } from "../storage/schema.ts";
import { apiKeyAad, buildSpec, databasePasswordAad, instanceSpec, parsedRevisionConfig } from "./instance-spec.ts";
import { transition } from "./revision-transitions.ts";
import { applyTransition } from "./switch-traffic.ts";

/** Builds a revision when a slot is free. If the service dies during a build, the build starts over; drivers cache builds by content. */
export async function build(
  { revision }: JobOf<"build">,
  context: DeploymentContext,
  signal: AbortSignal,
): Promise<void> {
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
  const driver = context.drivers.driverFor(revision);
  if (!driver?.build) throw new DeployError(`This service cannot build deployments with source "${revision.source}".`);
  const spec = await callDriver(() => buildSpec(revision, context));
  const log = (line: LogLine) => context.appendLog("build", revision, line);
  return callDriver(async () => driver.build?.(spec, { log, signal }) as Promise<Built>);
}

/** Adds the built commit to the config of the revision, because the branch may change later. */
const withCommit = ({ source_revision_config }: RevisionRow, repo_commit_sha: string): string =>
  JSON.stringify({ ...JSON.parse(source_revision_config), repo_commit_sha });

export async function ensure(job: InstanceJob, context: DeploymentContext, signal: AbortSignal): Promise<void> {
  const { instance, revision } = job;
  const log = (line: LogLine) => context.appendLog("deploy", revision, line);
  try {
    const pinned = belongsToRollout(job) ? await pin(job, context, { log, signal }) : revision;
    await context.driverSlots(instance.driver).use(signal, async () => {
      const database_password = await databasePasswordOf(instance, context);
      const input = { ...context, instance, revision: pinned, database_password };
      const spec = { ...instanceSpec(input, context.seal, log), logsPersisted: context.logsPersisted };
      const ref = await callDriver(() => requireDriver(instance.driver, context).ensure(spec));
      const is_new = (await context.commit((tx) => recordStarted(tx, ref))) > 0;
      context.facts.attached.add(instance.instance_id);
      if (is_new) context.log.info({ ...logFieldsOf(instance), address: ref.address }, "instance started");
    });
  } catch (error) {
    if ((error as Error).cause instanceof ListenerUnavailableError && belongsToRollout(job)) {
      const { message: status_message } = error as Error;
      await context.commit((tx) => setMessageIfStatus(tx, { ...revision, status: "DEPLOYING", status_message }));
    }
    if (!(error instanceof DeployError)) throw error;
    const { message } = error;
    if (belongsToRollout(job)) await applyTransition({ revision, to: "DEPLOY_FAILED", message }, context);
    else await restartLater(job, context, message);
  }
}

async function databasePasswordOf(instance: InstanceRow, { seal, commit }: DeploymentContext): Promise<string> {
  const aad = databasePasswordAad(instance);
  const created = seal.seal(randomBytes(32).toString("base64url"), aad);
  const { deployment_id } = instance;
  const stored = await commit((tx) => setDatabasePasswordIfUnset(tx, deployment_id, created));
  try {
    return seal.open(stored, aad);
  } catch (error) {
    if (!(error instanceof SealError)) throw error;
    // The key that encrypted the password was lost. All replicas use the first new password, which the driver sets.
    return seal.open(await commit((tx) => replaceDatabasePassword(tx, deployment_id, stored, created)), aad);
  }
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
  // An image with a digest is never another one, so the registry is not needed again.
  const isDeployed = revision.deployed_at !== null && image.includes("@sha256:");
  const spec = { deployment_id, image, pinned: isDeployed || image !== parsedRevisionConfig(revision).image_uri };
  // An image may be pulled for minutes, which delays neither the instances of other workspaces nor builds.
  let artifact = image;
  await context.driverSlots(`${instance.driver} pin`).use(io.signal, async () => {
    artifact = await callDriver(() => (driver.pin as NonNullable<typeof driver.pin>)(spec, io));
  });
  if (artifact === image) return revision;
  return { ...revision, artifact: await context.commit((tx) => pinArtifact(tx, { revision_id, image, artifact })) };
}

/** Sets the state `ready` after `probes` consecutive successful checks. Schedules a restart if the instance ends before that. */
export async function awaitReady(job: InstanceJob, context: DeploymentContext, signal: AbortSignal): Promise<void> {
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

export async function activate({ instance }: JobOf<"activate">, context: DeploymentContext): Promise<void> {
  const api_key = context.seal.open(instance.api_key, apiKeyAad(instance));
  await context.activate({ address: instance.address ?? "", api_key });
  context.facts.activated_rollout = instance.rollout;
}
