import { newId } from "../../platform/lib/ids.ts";
import type { Service } from "../../platform/lib/service.ts";
import { collectGarbage } from "../cleanup/orphaned-instances.ts";
import {
  claimDeployments,
  dropDeploymentLeases,
  mayClaimDeployments,
  releaseDeployments,
  renewDeploymentLeases,
} from "../storage/leases.ts";
import type { DeploymentRow } from "../storage/schema.ts";
import { Keeper } from "./deployment-controller.ts";
import type { ReconcilerParts } from "./reconciler-context.ts";
import { Slots } from "./semaphore.ts";
import { Bell } from "./wake-signal.ts";

/** Deployments taken at a time. */
const BATCH = 100;

/**
 * Takes the deployments that nobody holds and keeps each of them, until it needs nobody any more. Deployments with running
 * instances are held all the time: who holds them watches them.
 */
export class Reconciler implements Service {
  readonly #parts: ReconcilerParts;
  readonly #holder = newId();
  readonly #keepers = new Map<string, Keeper>();
  readonly #running = new Set<Promise<void>>();
  readonly #loops: Promise<void>[] = [];
  readonly #stopping = new AbortController();
  readonly #bell: Bell;
  readonly #builders: Slots;
  readonly #hands: Slots;
  #unlisten: () => void = () => undefined;
  /** When the leases were last known to hold. */
  #renewed_at = 0;

  constructor(parts: ReconcilerParts) {
    this.#parts = parts;
    this.#bell = new Bell(parts.wait);
    this.#builders = new Slots(parts.settings.builds);
    this.#hands = new Slots(parts.settings.at_work);
  }

  start(): void {
    const { database, settings } = this.#parts;
    this.#unlisten = database.hints.listen("deployment", ({ deployment_id }) => this.#hear(deployment_id));
    this.#loops.push(
      this.#look(),
      this.#every(settings.lease_ms / 3, "renewing leases", () => this.#renew()),
    );
    this.#loops.push(this.#every(settings.garbage_ms, "looking for garbage", () => collectGarbage(this.#parts)));
  }

  /** What drivers have started goes on, and is found again by the next process. Nothing is awaited for long. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#unlisten();
    this.#bell.ring();
    for (const keeper of this.#keepers.values()) keeper.close();
    const { database, log, settings, wait } = this.#parts;
    const over = new AbortController();
    await Promise.race([Promise.all([...this.#running, ...this.#loops]), wait(settings.abort_ms, over.signal)]);
    over.abort();
    await database
      .write((tx) => releaseDeployments(tx, this.#holder))
      .catch((error) => log.warn({ error }, "deployments could not be given back; others take them when they lapse"));
  }

  get #isStopped(): boolean {
    return this.#stopping.signal.aborted;
  }

  #hear(deployment_id: string): void {
    this.#keepers.get(deployment_id)?.poke();
    // One that is being left right now has to be taken anew.
    this.#bell.ring();
  }

  async #look(): Promise<void> {
    const { database, settings, log } = this.#parts;
    let isFirst = database.read.dialect.name === "sqlite";
    while (!this.#isStopped) {
      try {
        if (isFirst) await database.write((tx) => dropDeploymentLeases(tx));
        isFirst = false;
        await this.#claim();
      } catch (error) {
        if (!this.#isStopped) log.warn({ error }, "taking deployments failed");
      }
      await this.#bell.sleep(settings.poll_ms);
    }
  }

  async #claim(): Promise<void> {
    const { database, settings, clock } = this.#parts;
    while (!this.#isStopped && (await mayClaimDeployments(database.read))) {
      const asked_at = clock.now();
      const claim = { holder: this.#holder, lease_ms: settings.lease_ms, limit: BATCH };
      const claimed = await database.write((tx) => claimDeployments(tx, claim));
      for (const deployment of claimed) this.#keep(deployment, asked_at);
      if (claimed.length < BATCH) return;
    }
  }

  #keep(deployment: DeploymentRow, taken_at: number): void {
    const { deployment_id } = deployment;
    const keeper = new Keeper(deployment, {
      ...this.#parts,
      builders: this.#builders,
      hands: this.#hands,
      isHeld: () => this.#parts.clock.now() - Math.max(taken_at, this.#renewed_at) < this.#parts.settings.lease_ms,
    });
    // One that was here before has lost its lease and ends by itself.
    this.#keepers.get(deployment_id)?.close();
    this.#keepers.set(deployment_id, keeper);
    const running = keeper.run().then(() => {
      this.#running.delete(running);
      if (this.#keepers.get(deployment_id) === keeper) this.#keepers.delete(deployment_id);
    });
    this.#running.add(running);
  }

  /** Renews what is held. What is not among the answers belongs to somebody else by now. */
  async #renew(): Promise<void> {
    const keepers = [...this.#keepers];
    if (keepers.length === 0) return;
    const { database, settings, clock } = this.#parts;
    const asked_at = clock.now();
    const deployment_ids = keepers.map(([deployment_id]) => deployment_id);
    const renewal = { holder: this.#holder, lease_ms: settings.lease_ms, deployment_ids };
    const held = await database.write((tx) => renewDeploymentLeases(tx, renewal));
    this.#renewed_at = asked_at;
    const epochs = new Map(held.map(({ deployment_id, lease_epoch }) => [deployment_id, lease_epoch]));
    for (const [deployment_id, keeper] of keepers) {
      if (epochs.get(deployment_id) !== keeper.epoch) keeper.close();
    }
  }

  async #every(ms: number, what: string, work: () => Promise<unknown>): Promise<void> {
    const { wait, log } = this.#parts;
    while (!this.#isStopped) {
      await work().catch((error) => {
        if (!this.#isStopped) log.warn({ error }, `${what} failed`);
      });
      await wait(ms, this.#stopping.signal);
    }
  }
}
