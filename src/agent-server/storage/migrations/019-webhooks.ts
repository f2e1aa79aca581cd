import type { Migration } from "../../../platform/database/migrate.ts";

/** Webhook deliveries of ended runs. `next_at` is null for deliveries that have ended. */
export const webhooks: Migration = {
  name: "019-webhooks",
  statements: ({ types }) => [
    "alter table runs add column webhook text",
    `create table webhook_deliveries (
      run_id text not null primary key, tenant_id text not null, url text not null, origin text not null, payload text,
      status text not null, attempts integer not null, next_at ${types.bigint}, response_status integer, error text,
      queued_at ${types.bigint} not null, created_at ${types.bigint} not null, updated_at ${types.bigint} not null)`,
    "create index webhook_deliveries_due on webhook_deliveries (next_at) where next_at is not null",
    "create index webhook_deliveries_ended on webhook_deliveries (updated_at) where next_at is null",
    "create index webhook_deliveries_of_workspace on webhook_deliveries (tenant_id, created_at, run_id)",
  ],
};
