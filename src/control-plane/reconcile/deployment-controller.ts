import type { Tx } from "../../platform/database/database.ts";
import type { Semaphore } from "../../platform/lib/semaphore.ts";
import { Signal } from "../../platform/lib/signal.ts";
import { backOffMs } from "../drivers/driver.ts";
import { LogWriter } from "../logs.ts";
import { drainInstances, resetRestarts } from "../storage/instances.ts";
import { lockIfHeld, releaseDeployment } from "../storage/leases.ts";
import { insertLogLines } from "../storage/logs.ts";
import type { DeploymentRow } from "../storage/schema.ts";
import {
  applyTransition,
  commitTrafficSwitch,
  deleteDeployment,
  insertRolloutInstances,
  routeTo,
} from "./apply-step.ts";
import { type DeploymentState, fingerprint, readState, rolloutId } from "./deployment-state.ts";
import { planOf } from "./instance-spec.ts";
import { activate, awaitReady, build, ensure, pruneBuilds, removeResources, restart, stop, watch } from "./jobs.ts";
import { nextStep } from "./next-step.ts";
import {
  type DeploymentContext,
  DeploymentLeaseLostError,
  type ReconcilerContext,
  RetryableDriverError,
} from "./reconciler-context.ts";
import { type Facts, type Job, type JobFailure, keyOf, type ReconcileStep } from "./steps.ts";

interface RunningJob {
  readonly abort: AbortController;
  aborted: boolean;
  ended: Promise<void>;
}

interface DeploymentControllerOptions extends ReconcilerContext {
  buildSlots: Semaphore;
  driverSlots: Semaphore;
  /** Whether the lease is valid by the clock of this process. */
  isHeld(): boolean;
}

/**
 * Reconciles one deployment while this process holds its lease: reads the rows, applies the next step, and repeats. Its own state
 * can be derived again by the next controller.
 */
export class DeploymentController {
  readonly epoch: number;
  readonly #context: DeploymentContext;
  readonly #isHeld: () => boolean;
  readonly #signal: Signal;
  readonly #logs: LogWriter;
  readonly #jobs = new Map<string, RunningJob>();
  readonly #job_failures = new Map<string, JobFailure>();
  readonly #closing = new AbortController();
  #ended_jobs = 0;
  #held_since = 0;
  #uncommitted_switch: string | undefined;
  #routed_upstreams: string | undefined;
  #activated_rollout: number | undefined;
  #pruned_after: string | undefined;
  #route_closed = false;
  #resources_removed = false;
  #step_failures = 0;

  constructor(deployment: DeploymentRow, options: DeploymentControllerOptions) {
    this.epoch = deployment.lease_epoch;
    this.#isHeld = options.isHeld;
    this.#signal = new Signal({ wait: options.wait });
    this.#logs = new LogWriter({
      wait: options.wait,
      write: (lines) => this.#fenced((tx) => insertLogLines(tx, lines)),
      onError: (error) => this.#onLogError(error),
    });
    this.#context = {
      ...options,
      deployment,
      lease: { deployment_id: deployment.deployment_id, epoch: deployment.lease_epoch },
      attached: new Set(),
      commit: (write) => this.#commit(write),
      appendLog: (kind, revision, line) => this.#logs.append(kind, revision, line),
      flushLogs: () => this.#logs.flush(),
      logsPersisted: () => this.#logs.persisted(),
    };
  }

  /** Makes the controller read its rows again. */
  notify(): void {
    this.#signal.notify();
  }

  /** Stops the controller; {@link run} ends soon after. Instances keep running. */
  close(): void {
    this.#closing.abort();
    for (const job of this.#jobs.values()) job.abort.abort();
    this.#signal.notify();
  }

  get #isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  /** Ends when the deployment was released or deleted, when the lease was lost, or after {@link close}. */
  async run(): Promise<void> {
    while (!this.#isClosed) {
      try {
        await this.#reconcile();
        this.#step_failures = 0;
      } catch (error) {
        await this.#onStepFailure(error);
      }
    }
    await this.#withinAbortTime(Promise.all([...this.#jobs.values()].map(({ ended }) => ended)));
    await this.#logs.close();
  }

  async #reconcile(): Promise<void> {
    const { database, lease, settings } = this.#context;
    const ended_jobs = this.#ended_jobs;
    const state = await readState(database.read, lease, settings);
    if (!state || !this.#isHeld()) throw new DeploymentLeaseLostError();
    // The rows may be older than the writes of a job that ended meanwhile, which would then start a second time.
    if (this.#ended_jobs !== ended_jobs) return;
    this.#held_since ||= state.now;
    const step = nextStep(state, this.#facts(), settings);
    if (step.do === "wait") await this.#signal.wait(step.ms);
    else await this.#apply(step, state);
  }

  async #apply(step: Exclude<ReconcileStep, { do: "wait" }>, state: DeploymentState): Promise<unknown> {
    const context = this.#context;
    switch (step.do) {
      case "transition":
        return applyTransition(step, context);
      case "insert instances":
        return insertRolloutInstances(step, context);
      case "switch":
        return this.#switchTraffic(step, state);
      case "drain": {
        const instance_ids = step.instances.map(({ instance_id }) => instance_id);
        return context.commit((tx) => drainInstances(tx, instance_ids, step.drain_ms));
      }
      case "reset restarts":
        return context.commit((tx) => resetRestarts(tx, step.instance));
      case "route":
        routeTo(step.upstreams, context);
        this.#routed_upstreams = fingerprint(step.upstreams);
        return;
      case "close route":
        context.router.deactivate(context.deployment.deployment_id);
        this.#route_closed = true;
        return;
      case "start job":
        return this.#startJob(step.job);
      case "abort job":
        return this.#abortJob(step.key);
      case "delete rows":
        await deleteDeployment(context);
        return this.close();
      case "release":
        return this.#release();
    }
  }

  /** From the first line on the switch cannot be undone: a commit that fails is tried again. */
  async #switchTraffic(step: Extract<ReconcileStep, { do: "switch" }>, state: DeploymentState): Promise<void> {
    routeTo(step.upstreams, this.#context);
    this.#uncommitted_switch = rolloutId(step.revision);
    this.#routed_upstreams = fingerprint(step.upstreams);
    if (!(await commitTrafficSwitch(step, state, this.#context))) this.#routed_upstreams = undefined;
    this.#uncommitted_switch = undefined;
  }

  /** Reads the state again under the lock of the row, so that a concurrent change of the deployment is not missed. */
  async #release(): Promise<void> {
    const { database, lease, settings } = this.#context;
    await this.#logs.flush();
    const is_released = await database.write(async (tx) => {
      const state = await readState(tx, lease, { ...settings, locked: true });
      if (!state || nextStep(state, this.#facts(), settings).do !== "release") return false;
      await releaseDeployment(tx, lease);
      return true;
    });
    if (is_released) this.close();
  }

  #startJob(job: Job): void {
    const key = keyOf(job);
    const abort = new AbortController();
    const running: RunningJob = { abort, aborted: false, ended: Promise.resolve() };
    this.#jobs.set(key, running);
    running.ended = this.#runJob(job, abort.signal)
      .then(
        () => void this.#job_failures.delete(key),
        (error) => this.#onJobFailure(key, error),
      )
      .finally(() => this.#onJobEnd(key, running));
  }

  #onJobEnd(key: string, running: RunningJob): void {
    if (this.#jobs.get(key) === running) this.#jobs.delete(key);
    this.#ended_jobs++;
    this.#signal.notify();
  }

  async #runJob(job: Job, signal: AbortSignal): Promise<void> {
    const context = this.#context;
    switch (job.kind) {
      case "build":
        return build(job, context, signal);
      case "ensure":
        return ensure(job, context, signal);
      case "readiness":
        return awaitReady(job, context, signal);
      case "watch":
        return watch(job, context, signal);
      case "restart":
        return restart(job, context, signal);
      case "stop":
        return stop(job, context, signal);
      case "activate":
        this.#activated_rollout = await activate(job, context);
        return;
      case "prune":
        await pruneBuilds(context);
        this.#pruned_after = job.after;
        return;
      case "remove":
        await removeResources(context);
        this.#resources_removed = true;
    }
  }

  /** A job that ignores its abort counts as ended after `abort_ms`. */
  #abortJob(key: string): void {
    const running = this.#jobs.get(key);
    if (!running) return;
    running.aborted = true;
    running.abort.abort();
    void this.#withinAbortTime(running.ended).then(() => this.#onJobEnd(key, running));
  }

  /** Other steps do not shorten the back-off before the retry. */
  #onJobFailure(key: string, error: unknown): void {
    if (error instanceof DeploymentLeaseLostError) this.close();
    if (this.#isClosed) return;
    const count = (this.#job_failures.get(key)?.count ?? 0) + (error instanceof RetryableDriverError ? 1 : 0);
    const { log, deployment } = this.#context;
    log.warn({ error, deployment_id: deployment.deployment_id, job: key, failures: count }, "deployment job failed");
    const failure = { count, backing_off: true };
    this.#job_failures.set(key, failure);
    void this.#context.wait(backOffMs(Math.max(1, count)), this.#closing.signal).then(() => {
      failure.backing_off = false;
      this.#signal.notify();
    });
  }

  async #onStepFailure(error: unknown): Promise<void> {
    if (error instanceof DeploymentLeaseLostError) this.close();
    if (this.#isClosed) return;
    const { log, deployment, wait } = this.#context;
    log.warn({ error, deployment_id: deployment.deployment_id }, "reconcile step failed");
    await wait(backOffMs(++this.#step_failures), this.#closing.signal);
  }

  #onLogError(error: unknown): void {
    if (error instanceof DeploymentLeaseLostError) this.close();
    if (this.#isClosed) return;
    const { log, deployment } = this.#context;
    log.warn({ error, deployment_id: deployment.deployment_id }, "deployment log write failed");
  }

  async #commit<T>(write: (tx: Tx) => Promise<T>): Promise<T> {
    const written = await this.#fenced(write);
    const { deployment_id } = this.#context.deployment;
    this.#context.database.hints.emit({ kind: "deployment", deployment_id });
    return written;
  }

  #fenced<T>(write: (tx: Tx) => Promise<T>): Promise<T> {
    const { database, lease } = this.#context;
    return database.write(async (tx) => {
      if (!(await lockIfHeld(tx, lease))) throw new DeploymentLeaseLostError();
      return write(tx);
    });
  }

  async #withinAbortTime(ended: Promise<unknown>): Promise<void> {
    const over = new AbortController();
    await Promise.race([ended, this.#context.wait(this.#context.settings.abort_ms, over.signal)]);
    over.abort();
  }

  #facts(): Facts {
    const { drivers, router, attached } = this.#context;
    return {
      jobs: this.#jobs,
      failures: this.#job_failures,
      attached,
      held_since: this.#held_since,
      uncommitted_switch: this.#uncommitted_switch,
      routed_upstreams: this.#routed_upstreams,
      activated_rollout: this.#activated_rollout,
      pruned_after: this.#pruned_after,
      route_closed: this.#route_closed,
      resources_removed: this.#resources_removed,
      inFlight: (instance_id) => router.inFlight(instance_id),
      plan: (revision) => planOf(revision, drivers.driverFor(revision.source)),
    };
  }
}
