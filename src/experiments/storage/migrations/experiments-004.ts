import type { Migration } from "../../../platform/database/migrate.ts";

/** Adds shares of runs, model prices of workspaces, tokens for feedback without an API key, and the retention of traces. */
export const traceReading: Migration = {
  name: "experiments-004",
  statements: ({ types }) => [
    `create table run_shares (
      share_token text not null primary key, tenant_id text not null, run_id text not null,
      created_at ${types.bigint} not null, unique (tenant_id, run_id))`,
    `create table model_prices (
      price_id text not null primary key, tenant_id text not null, entry text not null, identity text not null,
      created_at ${types.bigint} not null, unique (tenant_id, identity))`,
    `create table feedback_tokens (
      token text not null primary key, tenant_id text not null, run_id text not null, feedback_id text,
      feedback_key text not null, expires_at ${types.bigint} not null, created_at ${types.bigint} not null)`,
    "create index feedback_tokens_of_run on feedback_tokens (tenant_id, run_id)",
    "alter table feedback add column extends_retention integer not null default 1",
    `create index trace_threads on trace_runs (experiment_no, thread_id, start_us, run_id)
      where is_root = 1 and thread_id is not null`,
    "create index trace_roots_by_name on trace_runs (experiment_no, name, start_us, run_id) where is_root = 1",
    `create index trace_failures on trace_runs (experiment_no, start_us, run_id)
      where is_root = 1 and error is not null`,
  ],
};
