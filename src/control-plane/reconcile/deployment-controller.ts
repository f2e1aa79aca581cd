import type { Tx } from "../../platform/database/database.ts";
import type { Semaphore } from "../../platform/lib/semaphore.ts";
import { Signal } from "../../platform/lib/signal.ts";
import { deleteDeployment } from "../cleanup/deployment-removal.ts";
import { backOffMs } from "../drivers/driver.ts";
import { LogWriter } from "../logs.ts";
import { apiKeyOf, planOf } from "../rollout/instance-spec.ts";
import { applyTransition, insertRolloutInstances, routeTo, switchTraffic } from "../rollout/switch-traffic.ts";
import { drainInstances, resetRestarts } from "../storage/instances.ts";
import { lockIfHeld, releaseDeployment } from "../storage/leases.ts";
import { insertLogLines } from "../storage/logs.ts";
import type { DeploymentRow, InstanceRow } from "../storage/schema.ts";
import { type DeploymentState, readState } from "./deployment-state.ts";
import { JobRunner, runJob } from "./job-runner.ts";
import { nextStep } from "./next-step.ts";
import { type DeploymentContext, DeploymentLeaseLostError, type ReconcilerContext } from "./reconciler-context.ts";
import type { Facts, ReconcileStep } from "./steps.ts";

interface DeploymentControllerOptions extends ReconcilerContext {
  buildSlots: Semaphore;
  driverSlots: DeploymentContext["driverSlots"];
  /** Whether the lease is still valid according to the clock of this process. */
  isHeld(): boolean;
}

/** Reconciles one deployment while this process holds its lease: reads the rows, applies the next step, and repeats. */
export class DeploymentController {
  readonly epoch: number;
  readonly #context: DeploymentContext;
  readonly #isHeld: () => boolean;
  readonly #signal: Signal;
  readonly #logs: LogWriter;
  readonly #jobs: JobRunner;
  readonly #closing = new AbortController();
  /** Abort controllers of the running trace collections, keyed by instance and handle. */
  readonly #collections = new Map<string, AbortController>();
  #step_failures = 0;

  constructor(deployment: DeploymentRow, options: DeploymentControllerOptions) {
    const { wait, settings, drivers, router } = options;
    this.epoch = deployment.lease_epoch;
    this.#isHeld = options.isHeld;
    this.#signal = new Signal({ wait });
    this.#logs = new LogWriter({
      wait,
      write: (lines) => this.#fenced((tx) => insertLogLines(tx, lines)),
      onError: (error) => this.#onFailure("deployment log write failed", error),
    });
    this.#jobs = new JobRunner({
      run: (job, signal) => runJob(job, this.#context, signal),
      onFailure: (error, fields, isRepeated) =>
        this.#onFailure(isRepeated ? undefined : "deployment job failed", error, fields),
      onChange: this.#signal.notify,
      wait,
      abort_ms: settings.abort_ms,
    });
    const facts: Facts = {
      jobs: this.#jobs.running,
      failures: this.#jobs.failures,
      attached: new Set(),
      held_since: 0,
      uncommitted_switch: undefined,
      routed_upstreams: undefined,
      activated_rollout: undefined,
      pruned_after: undefined,
      route_closed: false,
      resources_removed: false,
      inFlight: (instance_id) => router.inFlight(instance_id),
      plan: (revision) => planOf(revision, drivers.driverFor(revision)),
    };
    this.#context = {
      ...options,
      deployment,
      lease: { deployment_id: deployment.deployment_id, epoch: deployment.lease_epoch },
      facts,
      commit: (write) => this.#commit(write),
      appendLog: (kind, revision, line) => this.#logs.append(kind, revision, line),
      flushLogs: () => this.#logs.flush(),
      logsPersisted: () => this.#logs.persisted(),
    };
  }

  /** Makes the controller read the rows again. */
  notify(): void {
    this.#signal.notify();
  }

  /** Stops the controller; {@link run} ends soon after. Instances keep running. */
  close(): void {
    this.#closing.abort();
    this.#jobs.abortAll();
    this.#collectTraces([]);
    this.#signal.notify();
  }

  get #isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  /** Resolves when the deployment has been released or deleted, when the lease is lost, or after {@link close}. */
  async run(): Promise<void> {
    while (!this.#isClosed) {
      try {
        await this.#reconcile();
        this.#step_failures = 0;
      } catch (error) {
        if (this.#onFailure("reconcile step failed", error))
          await this.#context.wait(backOffMs(++this.#step_failures), this.#closing.signal);
      }
    }
    await this.#jobs.settled();
    await this.#logs.close();
  }

  async #reconcile(): Promise<void> {
    const { database, lease, settings, facts } = this.#context;
    const { ended_count } = this.#jobs;
    const state = await readState(database.read, lease, settings);
    if (!state || !this.#isHeld()) throw new DeploymentLeaseLostError();
    // The rows may be older than the writes of a job that has just ended. Based on these rows, the job would start again.
    if (this.#jobs.ended_count !== ended_count) return;
    facts.held_since ||= state.now;
    this.#collectTraces(
      state.instances.filter((instance) => instance.state === "ready" || instance.state === "draining"),
    );
    const step = nextStep(state, facts, settings);
    if (step.do === "wait") await this.#signal.wait(step.ms);
    else await this.#apply(step, state);
  }

  /** Collects the traces of exactly these instances. The caller includes draining instances, because they may still be executing runs. */
  #collectTraces(instances: readonly InstanceRow[]): void {
    const { collectTraces } = this.#context;
    const wanted = new Map(instances.map((instance) => [`${instance.instance_id} ${instance.handle}`, instance]));
    for (const [key, abort] of this.#collections) {
      if (wanted.has(key)) continue;
      abort.abort();
      this.#collections.delete(key);
    }
    for (const [key, instance] of wanted) {
      if (this.#collections.has(key) || instance.address === null) continue;
      const api_key = apiKeyOf(instance, this.#context);
      if (api_key === undefined) continue;
      const abort = new AbortController();
      void collectTraces({ ...instance, address: instance.address, api_key }, abort.signal);
      this.#collections.set(key, abort);
    }
  }

  async #apply(step: Exclude<ReconcileStep, { do: "wait" }>, state: DeploymentState): Promise<unknown> {
    const context = this.#context;
    switch (step.do) {
      case "transition":
        return applyTransition(step, context);
      case "insert instances":
        return insertRolloutInstances(step, context);
      case "switch":
        return switchTraffic(step, state, context);
      case "drain": {
        const instance_ids = step.instances.map(({ instance_id }) => instance_id);
        return context.commit((tx) => drainInstances(tx, instance_ids, step.drain_ms));
      }
      case "reset restarts":
        return context.commit((tx) => resetRestarts(tx, step.instance));
      case "route":
        return routeTo(step.upstreams, context);
      case "close route":
        context.router.deactivate(context.deployment.deployment_id);
        context.facts.route_closed = true;
        return;
      case "start job":
        return this.#jobs.start(step.job);
      case "abort job":
        return this.#jobs.abort(step.key);
      case "delete rows":
        await deleteDeployment(context);
        return this.close();
      case "release":
        return this.#release();
    }
  }

  /** Reads the state again under the lock of the row, so that a concurrent change of the deployment is not missed. */
  async #release(): Promise<void> {
    const { database, lease, settings, facts } = this.#context;
    await this.#logs.flush();
    const is_released = await database.write(async (tx) => {
      const state = await readState(tx, lease, { ...settings, locked: true });
      if (!state || nextStep(state, facts, settings).do !== "release") return false;
      await releaseDeployment(tx, lease);
      return true;
    });
    if (is_released) this.close();
  }

  /**
   * Closes the controller if its lease was lost. Logs other failures, except one without an `event`: a listener that is not connected fails
   * each job every second. Returns false if the controller is closed.
   */
  #onFailure(event: string | undefined, error: unknown, fields: object = {}): boolean {
    if (error instanceof DeploymentLeaseLostError) this.close();
    if (this.#isClosed) return false;
    const { log, lease } = this.#context;
    if (event !== undefined) log.warn({ error, deployment_id: lease.deployment_id, ...fields }, event);
    return true;
  }

  async #commit<T>(write: (tx: Tx) => Promise<T>): Promise<T> {
    const written = await this.#fenced(write);
    const { database, lease } = this.#context;
    database.hints.emit({ kind: "deployment", deployment_id: lease.deployment_id });
    return written;
  }

  #fenced<T>(write: (tx: Tx) => Promise<T>): Promise<T> {
    const { database, lease } = this.#context;
    return database.write(async (tx) => {
      if (!(await lockIfHeld(tx, lease))) throw new DeploymentLeaseLostError();
      return write(tx);
    });
  }
}
