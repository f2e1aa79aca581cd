import { DEFAULT_TENANT } from "../platform/contract/caller.ts";
import type { Database } from "../platform/database/database.ts";
import type { DefaultAssistants } from "./default-assistants.ts";
import { makeClaimantIfNewer, mayClaimAs } from "./storage/claimant.ts";

interface ActivationOptions {
  database: Database;
  default_assistants: DefaultAssistants;
  /** Undefined: this is no instance of a deployment, and nobody else has its database. */
  rollout: number | undefined;
}

/**
 * During a roll-out the instances of the old revision and of the new one share the database of their deployment. Those of one
 * roll-out execute its runs and keep its default assistants in step with the graphs: until they are activated, new ones stand by.
 */
export class Activation {
  readonly #options: ActivationOptions;

  constructor(options: ActivationOptions) {
    this.#options = options;
  }

  /** At the start: one that was activated before, or does not have to be, goes about its work. */
  async begin(): Promise<void> {
    const { database, rollout } = this.#options;
    if (rollout === undefined || (await mayClaimAs(database.read, rollout))) await this.#renewDefaults();
  }

  /**
   * From the return of this call on, instances of this roll-out take runs and those of older ones take none any more; what those
   * execute ends there. Safe to repeat; nothing happens when a newer roll-out was first.
   */
  async activate(): Promise<void> {
    const { database, rollout } = this.#options;
    if (rollout === undefined) return;
    await database.write((tx) => makeClaimantIfNewer(tx, rollout));
    if (!(await mayClaimAs(database.read, rollout))) return;
    database.hints.emit({ kind: "runs" });
    await this.#renewDefaults();
  }

  async #renewDefaults(): Promise<void> {
    await this.#options.default_assistants.renew();
    await this.#options.default_assistants.meet(DEFAULT_TENANT);
  }
}
