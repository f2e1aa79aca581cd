import { backOffMs, type InstanceRef } from "../drivers/driver.ts";
import { deleteInstance, scheduleRestart } from "../storage/instances.ts";
import { setMessageIfStatus } from "../storage/revisions.ts";
import type { InstanceRow } from "../storage/schema.ts";
import { callDriver, type DeploymentContext, instanceRefOf, requireDriver } from "./reconciler-context.ts";
import type { InstanceJob, JobOf } from "./steps.ts";

export const logFieldsOf = ({ deployment_id, revision_id, instance_id }: InstanceRow) => ({
  deployment_id,
  revision_id,
  instance_id,
});

export async function watch(job: InstanceJob, context: DeploymentContext, signal: AbortSignal): Promise<void> {
  const ref = instanceRefOf(job.instance) as InstanceRef;
  while (!signal.aborted) {
    const condition = await callDriver(() => requireDriver(job.instance.driver, context).probe(ref));
    if (condition.state === "ended") return restartLater(job, context, condition.reason);
    await context.wait(context.settings.watch_ms, signal);
  }
}

export async function restart(job: InstanceJob, context: DeploymentContext, signal: AbortSignal): Promise<void> {
  await stopSlots(job.instance, context).use(signal, async () => {
    await stopByDriver(job.instance, context, 0);
    await restartLater(job, context, "the instance was stopped because it did not become ready again in time");
  });
}

/** Stops an instance. The row is deleted last, so no instance exists without a row. */
export async function stop(
  { instance, grace_ms }: JobOf<"stop">,
  context: DeploymentContext,
  signal: AbortSignal,
): Promise<void> {
  await stopSlots(instance, context).use(signal, async () => {
    await stopByDriver(instance, context, grace_ms);
    await context.commit((tx) => deleteInstance(tx, instance.instance_id));
    context.facts.attached.delete(instance.instance_id);
    context.log.info(logFieldsOf(instance), "instance stopped");
  });
}

/** Instances that use their grace period do not delay the starts of others. */
const stopSlots = ({ driver }: InstanceRow, context: DeploymentContext) => context.driverSlots(`${driver} stop`);

/** If the service died while it started the instance, the row has no handle, but the driver may list the instance. */
async function stopByDriver(instance: InstanceRow, context: DeploymentContext, grace_ms: number): Promise<void> {
  const { driver: kind, instance_id } = instance;
  const driver = requireDriver(kind, context);
  await callDriver(async () => {
    const ref = instanceRefOf(instance) ?? (await driver.list()).find((listed) => listed.instance_id === instance_id);
    if (ref) await driver.stop(ref, { grace_ms });
  });
}

/** Schedules a restart in the row. rollout/rollout-step.ts decides from the row whether the rollout fails. */
export async function restartLater(
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

export const belongsToRollout = ({ instance, revision }: Pick<InstanceJob, "instance" | "revision">): boolean =>
  revision.status === "DEPLOYING" && revision.deploying_at === instance.rollout;
