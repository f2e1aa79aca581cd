import type { Tx } from "../../platform/database/database.ts";
import { remove } from "../cleanup/delete-deployment.ts";
import { prune } from "../cleanup/old-builds.ts";
import { DeploymentLog } from "../deployment-log.ts";
import { leaveDeployment, lockIfHeld } from "../storage/leases.ts";
import { insertLogLines } from "../storage/logs.ts";
import type { DeploymentRow } from "../storage/schema.ts";
import * as acts from "./apply-step.ts";
import { backOff } from "./back-off.ts";
import { build } from "./build.ts";
import { type DeploymentState, fingerprint, readState, rolloutOf } from "./deployment-state.ts";
import { planOf } from "./instance-order.ts";
import { activate, ensure, gate, restart, stop, watch } from "./jobs.ts";
import { nextStep } from "./next-step.ts";
import { DriverTrouble, LeaseLost, type ReconcilerParts, type Work } from "./reconciler-context.ts";
import type { Slots } from "./semaphore.ts";
import { type Facts, type Job, keyOf, type Step, type Trouble } from "./steps.ts";
import { Bell } from "./wake-signal.ts";

interface RunningJob {
  readonly abort: AbortController;
  aborted: boolean;
  ended: Promise<void>;
}

export interface KeeperOptions extends ReconcilerParts {
  builders: Slots;
  hands: Slots;
  /** Whether the lease still holds by the clock of this process. */
  isHeld(): boolean;
}

/**
 * Keeps one deployment while this process holds it: looks what its rows say, takes the next step, and looks again. What it
 * remembers can all be found out anew by the next one.
 */
export class Keeper {
  readonly epoch: number;
  readonly #work: Work;
  readonly #isHeld: () => boolean;
  readonly #bell: Bell;
  readonly #log: DeploymentLog;
  #endedJobs = 0;
  readonly #jobs = new Map<string, RunningJob>();
  readonly #troubles = new Map<string, Trouble>();
  readonly #closing = new AbortController();
  #kept_since = 0;
  #switched: string | undefined;
  #routed: string | undefined;
  #activated: number | undefined;
  #pruned: string | undefined;
  #route_closed = false;
  #removed = false;
  #failures = 0;

  constructor(deployment: DeploymentRow, options: KeeperOptions) {
    this.epoch = deployment.lease_epoch;
    this.#isHeld = options.isHeld;
    this.#bell = new Bell(options.wait);
    this.#log = new DeploymentLog({
      wait: options.wait,
      write: (lines) => this.#fenced((tx) => insertLogLines(tx, lines)),
      onError: (error) => this.#onLogError(error),
    });
    this.#work = {
      ...options,
      deployment,
      lease: { deployment_id: deployment.deployment_id, epoch: deployment.lease_epoch },
      known: new Set(),
      commit: (write) => this.#commit(write),
      tell: (kind, revision, line) => this.#log.add(kind, revision, line),
      told: () => this.#log.flush(),
      kept: () => this.#log.kept(),
    };
  }

  /** Something may have changed. */
  poke(): void {
    this.#bell.ring();
  }

  /** Ends the keeping; {@link run} ends soon after. What drivers have started goes on. */
  close(): void {
    this.#closing.abort();
    for (const job of this.#jobs.values()) job.abort.abort();
    this.#bell.ring();
  }

  get #isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  /** Ends when the deployment needs nobody any more, is gone, or is lost to somebody else. */
  async run(): Promise<void> {
    while (!this.#isClosed) {
      try {
        await this.#look();
        this.#failures = 0;
      } catch (error) {
        await this.#onFailure(error);
      }
    }
    await this.#within(Promise.all([...this.#jobs.values()].map(({ ended }) => ended)));
    await this.#log.close();
  }

  async #look(): Promise<void> {
    const { database, lease, settings } = this.#work;
    const ended = this.#endedJobs;
    const state = await readState(database.read, lease, settings);
    if (!state || !this.#isHeld()) throw new LeaseLost();
    // These rows may be older than what the job has written, which would be begun again.
    if (this.#endedJobs !== ended) return;
    this.#kept_since ||= state.now;
    const step = nextStep(state, this.#facts(), settings);
    if (step.do === "rest") await this.#bell.sleep(step.ms);
    else await this.#take(step, state);
  }

  async #take(step: Exclude<Step, { do: "rest" }>, state: DeploymentState): Promise<unknown> {
    const work = this.#work;
    switch (step.do) {
      case "move":
        return acts.move(step, work);
      case "want":
        return acts.want(step, work);
      case "switch":
        return this.#switch(step, state);
      case "drain":
        return acts.drain(step, work);
      case "forget restarts":
        return acts.forget(step, work);
      case "route":
        acts.route(step.upstreams, work);
        this.#routed = fingerprint(step.upstreams);
        return;
      case "close route":
        work.router.deactivate(work.deployment.deployment_id);
        this.#route_closed = true;
        return;
      case "begin":
        return this.#begin(step.job);
      case "abort":
        return this.#abort(step.key);
      case "erase":
        await acts.erase(work);
        return this.close();
      case "leave":
        return this.#leave();
    }
  }

  /** From the first line on there is no way back: rows that could not be written are written again. */
  async #switch(step: Extract<Step, { do: "switch" }>, state: DeploymentState): Promise<void> {
    acts.route(step.fresh, this.#work);
    this.#switched = rolloutOf(step.revision);
    this.#routed = fingerprint(step.fresh);
    if (!(await acts.commitSwitch(step, state, this.#work))) this.#routed = undefined;
    this.#switched = undefined;
  }

  /** Only when nobody has asked for anything in the meantime: the row is held while its state is looked at again. */
  async #leave(): Promise<void> {
    const { database, lease, settings } = this.#work;
    await this.#log.flush();
    const left = await database.write(async (tx) => {
      const state = await readState(tx, lease, { ...settings, held: true });
      if (!state || nextStep(state, this.#facts(), settings).do !== "leave") return false;
      await leaveDeployment(tx, lease);
      return true;
    });
    if (left) this.close();
  }

  #begin(job: Job): void {
    const key = keyOf(job);
    const abort = new AbortController();
    const running: RunningJob = { abort, aborted: false, ended: Promise.resolve() };
    this.#jobs.set(key, running);
    running.ended = this.#perform(job, abort.signal)
      .then(
        () => void this.#troubles.delete(key),
        (error) => this.#onTrouble(key, error),
      )
      .finally(() => this.#ended(key, running));
  }

  #ended(key: string, running: RunningJob): void {
    if (this.#jobs.get(key) === running) this.#jobs.delete(key);
    this.#endedJobs++;
    this.#bell.ring();
  }

  async #perform(job: Job, signal: AbortSignal): Promise<void> {
    switch (job.kind) {
      case "build":
        return build(job, this.#work, signal);
      case "ensure":
        return ensure(job, this.#work, signal);
      case "gate":
        return gate(job, this.#work, signal);
      case "watch":
        return watch(job, this.#work, signal);
      case "restart":
        return restart(job, this.#work, signal);
      case "stop":
        return stop(job, this.#work, signal);
      case "activate":
        this.#activated = await activate(job, this.#work);
        return;
      case "prune":
        await prune(this.#work);
        this.#pruned = job.after;
        return;
      case "remove":
        await remove(this.#work);
        this.#removed = true;
    }
  }

  /** A job that does not end when it is told to is left to itself after a while. */
  #abort(key: string): void {
    const running = this.#jobs.get(key);
    if (!running) return;
    running.aborted = true;
    running.abort.abort();
    void this.#within(running.ended).then(() => this.#ended(key, running));
  }

  /** Tries again after a back-off, which the next step does not hurry. */
  #onTrouble(key: string, error: unknown): void {
    if (error instanceof LeaseLost) this.close();
    if (this.#isClosed) return;
    const failures = (this.#troubles.get(key)?.failures ?? 0) + (error instanceof DriverTrouble ? 1 : 0);
    const { log, deployment } = this.#work;
    log.warn({ error, deployment_id: deployment.deployment_id, job: key, failures }, "work on a deployment failed");
    const trouble = { failures, waits: true };
    this.#troubles.set(key, trouble);
    void this.#work.wait(backOff(Math.max(1, failures)), this.#closing.signal).then(() => {
      trouble.waits = false;
      this.#bell.ring();
    });
  }

  async #onFailure(error: unknown): Promise<void> {
    if (error instanceof LeaseLost) this.close();
    if (this.#isClosed) return;
    const { log, deployment, wait } = this.#work;
    log.warn({ error, deployment_id: deployment.deployment_id }, "a step of a deployment failed; it is taken again");
    await wait(backOff(++this.#failures), this.#closing.signal);
  }

  #onLogError(error: unknown): void {
    if (error instanceof LeaseLost) this.close();
    if (this.#isClosed) return;
    const { log, deployment } = this.#work;
    log.warn({ error, deployment_id: deployment.deployment_id }, "lines of a deployment could not be stored yet");
  }

  async #commit<T>(write: (tx: Tx) => Promise<T>): Promise<T> {
    const written = await this.#fenced(write);
    const { deployment_id } = this.#work.deployment;
    this.#work.database.hints.emit({ kind: "deployment", deployment_id });
    return written;
  }

  #fenced<T>(write: (tx: Tx) => Promise<T>): Promise<T> {
    const { database, lease } = this.#work;
    return database.write(async (tx) => {
      if (!(await lockIfHeld(tx, lease))) throw new LeaseLost();
      return write(tx);
    });
  }

  async #within(work: Promise<unknown>): Promise<void> {
    const over = new AbortController();
    await Promise.race([work, this.#work.wait(this.#work.settings.abort_ms, over.signal)]);
    over.abort();
  }

  #facts(): Facts {
    const { drivers, router, known } = this.#work;
    return {
      jobs: this.#jobs,
      troubles: this.#troubles,
      known,
      kept_since: this.#kept_since,
      switched: this.#switched,
      routed: this.#routed,
      activated: this.#activated,
      pruned: this.#pruned,
      route_closed: this.#route_closed,
      removed: this.#removed,
      inFlight: (instance_id) => router.inFlight(instance_id),
      plan: (revision) => planOf(revision, drivers.driverFor(revision.source)),
    };
  }
}
