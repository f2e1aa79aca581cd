import { registerHooks } from "node:module";

/**
 * Loaded before the server (`node --import`): puts a call in front of named lines of its source, which kills the
 * process at the n-th passage. The server itself knows nothing of it; a line that is not found any more is an
 * error, so that a point cannot get lost.
 */
export const POINTS: Record<string, { file: string; before: string }> = {
  "after-insert": { file: "/src/agent-server/runs/runs.ts", before: "this.#context.engine.publishCancels(" },
  "after-claim": { file: "/src/agent-server/engine/worker.ts", before: "for (const run of runs) {" },
  "after-checkpoint": {
    file: "/src/agent-server/engine/execution/journal.ts",
    before: "if (events.length > 0) feed.publish(events);",
  },
  "after-delete": {
    file: "/src/agent-server/runs/runs.ts",
    before: "if (done) return this.#context.engine.deleteTraces();",
  },
  "after-new-key": { file: "/src/cli/keys.ts", before: "ring.reloadIfChanged();" },
  "in-reseal": { file: "/src/access/encryption/rotation.ts", before: "after = last.row_id;" },
  "before-key-removal": {
    file: "/src/cli/keys.ts",
    before: 'if (source.kind === "file") new KeyFile(source.path).remove(unused);',
  },
  "build-begins": {
    file: "/src/control-plane/rollout/rollout-jobs.ts",
    before: "const { artifact, commit_sha } = await buildArtifact(",
  },
  "build-is-made": {
    file: "/src/control-plane/drivers/process/build.ts",
    before: "await moveIntoPlace(source, buildFolder(folders, spec.deployment_id, artifact));",
  },
  "build-is-kept": {
    file: "/src/control-plane/rollout/rollout-jobs.ts",
    before: "const found = commit_sha === undefined",
  },
  "instance-is-wanted": {
    file: "/src/control-plane/rollout/rollout-jobs.ts",
    before: "const ref = await callDriver(() => requireDriver(",
  },
  "process-is-started": {
    file: "/src/control-plane/drivers/process/instances.ts",
    before: "await writeRecord(folders, { ...record, process: identity });",
  },
  "instance-is-started": {
    file: "/src/control-plane/rollout/rollout-jobs.ts",
    before: "const is_new = (await context.commit((tx) => recordStarted(",
  },
  "instance-is-ready": {
    file: "/src/control-plane/rollout/rollout-jobs.ts",
    before: "await context.commit((tx) => readyIfStarting(",
  },
  "traffic-is-switched": {
    file: "/src/control-plane/rollout/switch-traffic.ts",
    before: "if (!(await commitTrafficSwitch(",
  },
  "switch-is-committed": {
    file: "/src/control-plane/rollout/switch-traffic.ts",
    before: "facts.uncommitted_switch = undefined;",
  },
  "runs-are-taken-over": {
    file: "/src/control-plane/rollout/rollout-jobs.ts",
    before: "context.facts.activated_rollout = instance.rollout;",
  },
  "old-one-is-stopped": {
    file: "/src/control-plane/reconcile/instance-jobs.ts",
    before: "await context.commit((tx) => deleteInstance(",
  },
  "folders-are-removed": {
    file: "/src/control-plane/cleanup/deployment-removal.ts",
    before: "await callDriver(() => uploads.removeOf(",
  },
  "rows-are-left": {
    file: "/src/control-plane/reconcile/deployment-controller.ts",
    before: "await deleteDeployment(context);",
  },
  "tick-is-not-committed": {
    file: "/src/agent-server/crons/cron-scheduler.ts",
    before: "const delay_ms = now - cron.next_at;",
  },
  "tick-is-committed": {
    file: "/src/agent-server/crons/cron-scheduler.ts",
    before: "if (fired) engine.publishCancels(fired.cancels);",
  },
  "webhook-is-claimed": {
    file: "/src/agent-server/webhooks/webhook-deliveries.ts",
    before: "for (const delivery of claimed) {",
  },
  "webhook-is-sent": {
    file: "/src/agent-server/webhooks/webhook-deliveries.ts",
    before: 'await database.write((tx) => endDelivery(tx, delivery, { ...result, status: "delivered" }));',
  },
  "webhook-is-stored": {
    file: "/src/agent-server/webhooks/webhook-deliveries.ts",
    before: 'return log.info(fields, "webhook delivered");',
  },
  "before-settle": {
    file: "/src/agent-server/engine/settlement/settle.ts",
    before: "const ended = await database.write(",
  },
};

const point = POINTS[process.env.FAILPOINT ?? ""];
let left = Number(process.env.FAIL_AFTER ?? "1");

Object.assign(globalThis, {
  failpoint() {
    if (--left === 0) process.kill(process.pid, "SIGKILL");
  },
});

if (point) {
  registerHooks({
    load(url, context, next) {
      const loaded = next(url, context);
      if (!url.endsWith(point.file)) return loaded;
      const source = String(loaded.source);
      if (!source.includes(point.before)) throw new Error(`The failpoint's line "${point.before}" is not in ${url}.`);
      return { ...loaded, source: source.replace(point.before, `globalThis.failpoint(); ${point.before}`) };
    },
  });
}
