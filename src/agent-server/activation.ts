import { DEFAULT_TENANT } from "../platform/contract/caller.ts";
import type { Database } from "../platform/database/database.ts";
import type { DefaultAssistants } from "./assistants/default-assistants.ts";
import { activateRolloutIfNewer, mayClaimAsRollout } from "./storage/claims/claims.ts";

interface ActivationOptions {
  database: Database;
  default_assistants: DefaultAssistants;
  /** Undefined outside a deployment, where no other rollout uses the database. */
  rollout: number | undefined;
}

/**
 * Activates the rollout of this instance. During a rollout, instances of the old and the new revision share a database, and only instances
 * of the active rollout execute runs and synchronize default assistants.
 */
export class Activation {
  readonly #options: ActivationOptions;

  constructor(options: ActivationOptions) {
    this.#options = options;
  }

  /** Synchronizes default assistants at startup, unless another rollout is active. */
  async start(): Promise<void> {
    const { database, rollout } = this.#options;
    if (rollout === undefined || (await mayClaimAsRollout(database.read, rollout))) await this.#syncDefaults();
  }

  /**
   * After activation, instances of older rollouts claim no new runs; their active runs continue. Does nothing if a
   * newer rollout is active.
   */
  async activate(): Promise<void> {
    const { database, rollout } = this.#options;
    if (rollout === undefined) return;
    await database.write((tx) => activateRolloutIfNewer(tx, rollout));
    if (!(await mayClaimAsRollout(database.read, rollout))) return;
    database.hints.emit({ kind: "runs" });
    await this.#syncDefaults();
  }

  async #syncDefaults(): Promise<void> {
    await this.#options.default_assistants.renew();
    await this.#options.default_assistants.ensure(DEFAULT_TENANT);
  }
}
