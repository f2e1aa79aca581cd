import type { Caller } from "../../platform/contract/caller.ts";
import type { Database } from "../../platform/database/database.ts";
import { ApiError } from "../../platform/errors.ts";
import { isoOfMilliseconds } from "../../platform/lib/times.ts";
import { filterOf } from "../auth/grants.ts";
import type { WebhookDelivery, WebhookDeliveryQuery } from "../contract/webhooks.ts";
import { type ListedDelivery, listWebhookDeliveries, requeueDeliveries } from "../storage/webhooks.ts";

/** The webhooks of a workspace's runs. {@link WebhookSender} sends them. */
export class WebhookDeliveries {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async list(caller: Caller, query: WebhookDeliveryQuery): Promise<WebhookDelivery[]> {
    const access = filterOf(caller, "threads");
    return (await listWebhookDeliveries(this.#database.read, caller.tenant_id, { ...query, access })).map(toDelivery);
  }

  /** @throws ApiError webhook_not_found, webhook_delivered */
  async redeliver(caller: Caller, run_id: string): Promise<WebhookDelivery> {
    const { tenant_id } = caller;
    const access = filterOf(caller, "threads");
    const row = await this.#database.write(async (tx) => {
      const [found] = await listWebhookDeliveries(tx, tenant_id, { run_id, limit: 1, offset: 0, access });
      if (!found) throw new ApiError("webhook_not_found", { run_id });
      const [queued] = await requeueDeliveries(tx, { tenant_id, run_id });
      if (!queued) throw new ApiError("webhook_delivered", { run_id });
      return queued;
    });
    this.#database.hints.emit({ kind: "webhooks" });
    return toDelivery(row);
  }
}

const toDelivery = ({ tenant_id: _, next_at, created_at, updated_at, ...row }: ListedDelivery): WebhookDelivery => ({
  ...row,
  next_attempt_at: next_at === null ? null : isoOfMilliseconds(next_at),
  created_at: isoOfMilliseconds(created_at),
  updated_at: isoOfMilliseconds(updated_at),
});
