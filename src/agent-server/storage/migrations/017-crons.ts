import type { Migration } from "../../../platform/database/migrate.ts";

/** `next_at` is null for crons that are disabled or have ended. */
export const crons: Migration = {
  name: "017-crons",
  statements: ({ types }) => [
    `create table crons (
      cron_id text not null primary key, tenant_id text not null, assistant_id text not null, thread_id text,
      schedule text not null, timezone text, end_at ${types.bigint}, enabled integer not null, on_run_completed text,
      payload text not null, metadata text not null, user_id text not null, scopes text not null,
      next_at ${types.bigint}, created_at ${types.bigint} not null, updated_at ${types.bigint} not null)`,
    "create index crons_due on crons (next_at) where next_at is not null",
    "create index crons_of_workspace on crons (tenant_id, created_at)",
    "create index crons_of_thread on crons (thread_id) where thread_id is not null",
  ],
};
