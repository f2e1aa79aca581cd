import type { BackgroundService } from "../../platform/lib/background-service.ts";
import { newId } from "../../platform/lib/ids.ts";
import { Semaphore } from "../../platform/lib/semaphore.ts";
import { Signal } from "../../platform/lib/signal.ts";
import { stopOrphanedInstances } from "../cleanup/garbage-collection.ts";
import {
  claimDeployments,
  dropDeploymentLeases,
  hasClaimableDeployment,
  releaseAllDeployments,
  renewDeploymentLeases,
} from "../storage/leases.ts";
import type { DeploymentRow } from "../storage/schema.ts";
import { DeploymentController } from "./deployment-controller.ts";
import { type ReconcilerContext, settledWithin } from "./reconciler-context.ts";

/** Maximum number of deployments per claim. */
const BATCH = 100;

/**
 * Claims deployments without a lease, and runs a controller for each until the deployment is released. A deployment with running
 * instances is not released, because the holder of the lease watches the instances.
 */
export class Reconciler implements BackgroundService {
  readonly #context: ReconcilerContext;
  readonly #holder = newId();
  readonly #controllers = new Map<string, DeploymentController>();
  readonly #running = new Set<Promise<void>>();
  readonly #loops: Promise<void>[] = [];
  readonly #stopping = new AbortController();
  readonly #signal: Signal;
  readonly #buildSlots: Semaphore;
  readonly #driverSlots = new Map<string, Semaphore>();
  #unlisten: () => void = () => undefined;
  /** Time at which the last successful renewal of the leases was requested. */
  #renewed_at = 0;

  constructor(context: ReconcilerContext) {
    this.#context = context;
    this.#signal = new Signal({ wait: context.wait });
    this.#buildSlots = new Semaphore(context.settings.builds);
  }

  start(): void {
    const { database, settings } = this.#context;
    this.#unlisten = database.hints.listen("deployment", ({ deployment_id }) => this.#onHint(deployment_id));
    this.#loops.push(
      this.#claimLoop(),
      this.#every(settings.lease_ms / 3, "renew leases", () => this.#renew()),
      this.#every(settings.orphan_check_ms, "stop orphaned instances", () => stopOrphanedInstances(this.#context)),
    );
  }

  /** Stops the reconciler, and waits at most `abort_ms` for running work. Instances keep running, and the next process attaches to them. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#unlisten();
    this.#signal.notify();
    for (const controller of this.#controllers.values()) controller.close();
    const { database, log, settings, wait } = this.#context;
    await settledWithin(settings.abort_ms, Promise.all([...this.#running, ...this.#loops]), wait);
    // Leases that were not released expire after `lease_ms`.
    await database
      .write((tx) => releaseAllDeployments(tx, this.#holder))
      .catch((error) => log.warn({ error }, "releasing deployment leases failed"));
  }

  get #isStopped(): boolean {
    return this.#stopping.signal.aborted;
  }

  #slotsOf(kind: string): Semaphore {
    const slots = this.#driverSlots.get(kind) ?? new Semaphore(this.#context.settings.driver_slots);
    this.#driverSlots.set(kind, slots);
    return slots;
  }

  #onHint(deployment_id: string): void {
    this.#controllers.get(deployment_id)?.notify();
    // Wakes the claim loop, because the deployment may just have been released.
    this.#signal.notify();
  }

  async #claimLoop(): Promise<void> {
    const { database, settings, log } = this.#context;
    let isFirst = database.read.dialect.name === "sqlite";
    while (!this.#isStopped) {
      try {
        if (isFirst) await database.write((tx) => dropDeploymentLeases(tx));
        isFirst = false;
        await this.#claim();
      } catch (error) {
        if (!this.#isStopped) log.warn({ error }, "deployment claim failed");
      }
      await this.#signal.wait(settings.poll_ms);
    }
  }

  async #claim(): Promise<void> {
    const { database, settings, clock } = this.#context;
    while (!this.#isStopped && (await hasClaimableDeployment(database.read))) {
      const asked_at = clock.now();
      const claim = { holder: this.#holder, lease_ms: settings.lease_ms, limit: BATCH };
      const claimed = await database.write((tx) => claimDeployments(tx, claim));
      for (const deployment of claimed) this.#startController(deployment, asked_at);
      if (claimed.length < BATCH) return;
    }
  }

  #startController(deployment: DeploymentRow, claimed_at: number): void {
    const { deployment_id } = deployment;
    const { clock, settings } = this.#context;
    const controller = new DeploymentController(deployment, {
      ...this.#context,
      buildSlots: this.#buildSlots,
      driverSlots: (kind) => this.#slotsOf(kind),
      isHeld: () => clock.now() - Math.max(claimed_at, this.#renewed_at) < settings.lease_ms,
    });
    // An earlier controller of this deployment has lost its lease.
    this.#controllers.get(deployment_id)?.close();
    this.#controllers.set(deployment_id, controller);
    const running = controller.run().then(() => {
      this.#running.delete(running);
      if (this.#controllers.get(deployment_id) === controller) this.#controllers.delete(deployment_id);
    });
    this.#running.add(running);
  }

  async #renew(): Promise<void> {
    const controllers = [...this.#controllers];
    if (controllers.length === 0) return;
    const { database, settings, clock } = this.#context;
    const asked_at = clock.now();
    const deployment_ids = controllers.map(([deployment_id]) => deployment_id);
    const renewal = { holder: this.#holder, lease_ms: settings.lease_ms, deployment_ids };
    const held = await database.write((tx) => renewDeploymentLeases(tx, renewal));
    this.#renewed_at = asked_at;
    const epochs = new Map(held.map(({ deployment_id, lease_epoch }) => [deployment_id, lease_epoch]));
    for (const [deployment_id, controller] of controllers) {
      if (epochs.get(deployment_id) !== controller.epoch) controller.close();
    }
  }

  async #every(interval_ms: number, task: string, run: () => Promise<unknown>): Promise<void> {
    const { wait, log } = this.#context;
    while (!this.#isStopped) {
      await run().catch((error) => {
        if (!this.#isStopped) log.warn({ error, task }, "reconciler task failed");
      });
      await wait(interval_ms, this.#stopping.signal);
    }
  }
}
