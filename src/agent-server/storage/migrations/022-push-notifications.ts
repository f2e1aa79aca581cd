import type { Migration } from "../../../platform/database/migrate.ts";

/**
 * Push notifications of A2A tasks: a run has any number of them besides its webhook, so the run is no longer the key of a delivery. `push`
 * is null for webhooks.
 */
export const pushNotifications: Migration = {
  name: "022-push-notifications",
  statements: ({ types }) => [
    "alter table runs add column push_configs text",
    "alter table webhook_deliveries rename to webhook_deliveries_019",
    `create table webhook_deliveries (
      delivery_id text not null, run_id text not null, tenant_id text not null, url text not null, origin text not null,
      payload text, push text, status text not null, attempts integer not null, next_at ${types.bigint},
      response_status integer, error text, queued_at ${types.bigint} not null, created_at ${types.bigint} not null,
      updated_at ${types.bigint} not null, constraint webhook_deliveries_key primary key (delivery_id))`,
    `insert into webhook_deliveries
      select run_id, run_id, tenant_id, url, origin, payload, null, status, attempts, next_at, response_status, error,
        queued_at, created_at, updated_at
      from webhook_deliveries_019`,
    // Also drops the indexes of 019-webhooks.
    "drop table webhook_deliveries_019",
    "create index webhook_deliveries_of_run on webhook_deliveries (run_id)",
    "create index webhook_deliveries_due on webhook_deliveries (next_at) where next_at is not null",
    "create index webhook_deliveries_ended on webhook_deliveries (updated_at) where next_at is null",
    "create index webhook_deliveries_of_workspace on webhook_deliveries (tenant_id, created_at, delivery_id)",
  ],
};
