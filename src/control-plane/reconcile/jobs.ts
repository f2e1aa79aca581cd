import { randomBytes } from "node:crypto";
import type { Tx } from "../../platform/database/database.ts";
import { type BuildIo, DeployError, type InstanceRef } from "../drivers/driver.ts";
import { keepDatabasePassword } from "../storage/deployments.ts";
import { deleteInstance, drainRollout, readyIfStarting, recordStarted, wantAgain } from "../storage/instances.ts";
import { pinArtifact } from "../storage/pinned-artifacts.ts";
import { moveIfAt, tellIfAt } from "../storage/revision-steps.ts";
import type { InstanceRow, RevisionRow } from "../storage/schema.ts";
import { backOff } from "./back-off.ts";
import { apiKeyPlace, databasePasswordPlace, instanceOrder, madeOf } from "./instance-order.ts";
import { asking, driverNamed, refOf, type Work } from "./reconciler-context.ts";

export interface InstanceJob {
  instance: InstanceRow;
  revision: RevisionRow;
}

/** Starts an instance, or finds the one that is there; from then on this process hears of it. */
export async function ensure(job: InstanceJob, work: Work, signal: AbortSignal): Promise<void> {
  const { instance, revision } = job;
  await work.hands.use(signal, async () => {
    try {
      const log = (line: Parameters<Work["tell"]>[2]) => work.tell("deploy", revision, line);
      const pinned = isOfRollout(job) ? await pin(job, work, { log, signal }) : revision;
      const database_password = await databasePasswordOf(instance, work);
      const parts = { ...work, instance, revision: pinned, database_password };
      const order = { ...instanceOrder(parts, work.seal, log), kept: work.kept };
      const ref = await asking(() => driverNamed(instance.driver, work).ensure(order));
      await work.commit((tx) => recordStarted(tx, ref));
      work.known.add(instance.instance_id);
    } catch (error) {
      if (!(error instanceof DeployError)) throw error;
      if (isOfRollout(job)) await work.commit((tx) => failRollout(tx, revision, error.message));
      else await died(job, work, error.message);
    }
  });
}

async function databasePasswordOf(instance: InstanceRow, { seal, commit }: Work): Promise<string> {
  const place = databasePasswordPlace(instance);
  const made = seal.seal(randomBytes(32).toString("base64url"), place);
  return seal.open(await commit((tx) => keepDatabasePassword(tx, instance.deployment_id, made)), place);
}

/**
 * A tag may lead elsewhere tomorrow: the image that it leads to when the revision is first deployed is the one that this is made of.
 *
 * @returns the revision as it is now, for all of its instances
 */
async function pin({ instance, revision }: InstanceJob, work: Work, io: BuildIo): Promise<RevisionRow> {
  const driver = driverNamed(instance.driver, work);
  const { revision_id, deployment_id, artifact: image } = revision;
  if (!driver.pin || image === null) return revision;
  const order = { deployment_id, image, pinned: image !== madeOf(revision).image_uri };
  const artifact = await asking(() => (driver.pin as NonNullable<typeof driver.pin>)(order, io));
  if (artifact === image) return revision;
  return { ...revision, artifact: await work.commit((tx) => pinArtifact(tx, { revision_id, image, artifact })) };
}

/** Until the instance has answered /ok so many times in a row, or is gone. */
export async function gate(job: InstanceJob, work: Work, signal: AbortSignal): Promise<void> {
  const { instance, revision } = job;
  const { probes, probe_ms } = work.settings;
  const ref = refOf(instance) as InstanceRef;
  let told: string | undefined;
  for (let inARow = 0; !signal.aborted; await work.wait(probe_ms, signal)) {
    const condition = await asking(() => driverNamed(instance.driver, work).probe(ref));
    if (condition.state === "gone") return died(job, work, condition.reason);
    const answer = await work.askOk(ref.address);
    inARow = answer === undefined ? inARow + 1 : 0;
    if (inARow === probes) {
      await work.commit((tx) => readyIfStarting(tx, instance));
      return;
    }
    if (answer === undefined || answer === told || !isOfRollout(job)) continue;
    told = answer;
    const status_message = `The last look at /ok: it ${answer}.`;
    await work.commit((tx) => tellIfAt(tx, { ...revision, status: "DEPLOYING", status_message }));
  }
}

/**
 * Has the roll-out of an instance execute the runs of the deployment; from then on no other does.
 *
 * @returns the roll-out
 */
export async function activate({ instance }: { instance: InstanceRow }, work: Work): Promise<number> {
  const api_key = work.seal.open(instance.api_key, apiKeyPlace(instance));
  await work.activate({ address: instance.address ?? "", api_key });
  return instance.rollout;
}

/** Until the instance is gone. */
export async function watch(job: InstanceJob, work: Work, signal: AbortSignal): Promise<void> {
  const ref = refOf(job.instance) as InstanceRef;
  while (!signal.aborted) {
    const condition = await asking(() => driverNamed(job.instance.driver, work).probe(ref));
    if (condition.state === "gone") return died(job, work, condition.reason);
    await work.wait(work.settings.watch_ms, signal);
  }
}

/** Stops an instance that served once and does not get ready again; another is started in its place. */
export async function restart(job: InstanceJob, work: Work, signal: AbortSignal): Promise<void> {
  await work.hands.use(signal, async () => {
    await stopDriven(job.instance, work, 0);
    await died(job, work, "it did not get ready again in time");
  });
}

/** Its row goes when it has stopped, so there is no instance without a row. */
export async function stop(
  { instance, grace_ms }: { instance: InstanceRow; grace_ms: number },
  work: Work,
  signal: AbortSignal,
): Promise<void> {
  await work.hands.use(signal, async () => {
    await stopDriven(instance, work, grace_ms);
    await work.commit((tx) => deleteInstance(tx, instance.instance_id));
    work.known.delete(instance.instance_id);
  });
}

/** A process that died while it started an instance has left no handle, but perhaps the instance: the driver knows. */
async function stopDriven(instance: InstanceRow, work: Work, grace_ms: number): Promise<void> {
  const driver = driverNamed(instance.driver, work);
  await asking(async () => {
    const ref = refOf(instance) ?? (await driver.list()).find((one) => one.instance_id === instance.instance_id);
    if (ref) await driver.stop(ref, { grace_ms });
  });
}

/** It is to be started again, later each time. What a roll-out makes of it is decided by its row (next-step.ts). */
async function died({ instance, revision }: InstanceJob, work: Work, reason: string): Promise<void> {
  const { instance_id, restarts } = instance;
  work.log.warn({ instance_id, deployment_id: instance.deployment_id, reason }, "an instance of a deployment ended");
  await work.commit(async (tx) => {
    await wantAgain(tx, instance, backOff(restarts + 1));
    const status_message = `An instance ended: ${reason}.`;
    if (isOfRollout({ instance, revision })) await tellIfAt(tx, { ...revision, status: "DEPLOYING", status_message });
  });
  work.known.delete(instance_id);
}

const isOfRollout = ({ instance, revision }: InstanceJob): boolean =>
  revision.status === "DEPLOYING" && revision.deploying_at === instance.rollout;

/** Takes the instances of the roll-out along, and no others: what served before goes on. */
async function failRollout(tx: Tx, revision: RevisionRow, status_message: string): Promise<void> {
  const { revision_id, deploying_at } = revision;
  const step = { revision_id, from: "DEPLOYING", to: "DEPLOY_FAILED", status_message, ends: true } as const;
  if (await moveIfAt(tx, step)) await drainRollout(tx, { revision_id, rollout: deploying_at as number });
}
