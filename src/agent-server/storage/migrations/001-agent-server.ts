import type { Migration } from "../../../platform/database/migrate.ts";

/** Assistants, threads, runs with their events, and checkpoints. */
export const agentServer: Migration = {
  name: "001-agent-server",
  statements: ({ types, name }) => [
    ...(name === "postgres" ? POSTGRES_FUNCTIONS : []),
    `create table assistants (
      assistant_id text primary key, tenant_id text not null, graph_id text not null, name text not null,
      description text, config text not null, context text not null, metadata text not null,
      version integer not null, created_at ${types.bigint} not null, updated_at ${types.bigint} not null)`,
    "create index assistants_by_graph on assistants (tenant_id, graph_id)",
    `create table assistant_versions (
      assistant_id text not null, version integer not null, tenant_id text not null, graph_id text not null,
      name text not null, description text, config text not null, context text not null, metadata text not null,
      created_at ${types.bigint} not null, primary key (assistant_id, version)) ${types.clustered}`,
    `create table threads (
      thread_id text primary key, tenant_id text not null, status text not null, rest_status text not null,
      metadata text not null, config text not null, "values" text, interrupts text not null, error text, hidden integer not null,
      created_at ${types.bigint} not null, updated_at ${types.bigint} not null,
      state_updated_at ${types.bigint} not null) ${types.clustered}`,
    "create index threads_by_update on threads (tenant_id, updated_at)",
    `create table runs (
      seq ${types.sequence}, run_id text not null unique, tenant_id text not null, thread_id text not null,
      assistant_id text not null, graph_id text not null, status text not null, metadata text not null,
      kwargs text not null, multitask_strategy text not null,
      start_at ${types.bigint} not null, run_after ${types.bigint} not null, epoch ${types.bigint} not null,
      attempt integer not null, crashes integer not null, worker_id ${types.bigint}, lease_until ${types.bigint},
      cancel_action text, cancel_reason text, output text, temporary integer not null,
      created_at ${types.bigint} not null, updated_at ${types.bigint} not null, ended_at ${types.bigint})`,
    "create index runs_by_thread on runs (thread_id, seq)",
    // The queue. The unique index ensures that a thread runs one run at a time.
    "create index runs_queue on runs (start_at, seq) where status = 'pending'",
    "create index runs_queue_of_thread on runs (thread_id, start_at, seq) where status = 'pending'",
    "create unique index runs_one_running_per_thread on runs (thread_id) where status = 'running'",
    "create index runs_ended on runs (ended_at) where ended_at is not null",
    `create table run_events (
      run_id text not null, seq integer not null, tenant_id text not null, event text not null, data text not null,
      created_at ${types.bigint} not null, primary key (run_id, seq)) ${types.clustered}`,
    `create table checkpoints (
      thread_id text not null, checkpoint_ns text not null, checkpoint_id text not null, tenant_id text not null,
      parent_checkpoint_id text, run_id text, epoch ${types.bigint} not null, checkpoint text not null,
      metadata text not null, created_at ${types.bigint} not null,
      primary key (thread_id, checkpoint_ns, checkpoint_id)) ${types.clustered}`,
    `create table checkpoint_values (
      thread_id text not null, checkpoint_ns text not null, channel text not null, version text not null,
      tenant_id text not null, run_id text, type text not null, value text not null,
      primary key (thread_id, checkpoint_ns, version, channel)) ${types.clustered}`,
    `create table checkpoint_writes (
      thread_id text not null, checkpoint_ns text not null, checkpoint_id text not null, task_id text not null,
      idx integer not null, tenant_id text not null, run_id text, channel text not null, type text not null,
      value text not null,
      primary key (thread_id, checkpoint_ns, checkpoint_id, task_id, idx)) ${types.clustered}`,
  ],
};

/** On SQLite the same two functions are registered on each connection (sqlite.ts). */
const POSTGRES_FUNCTIONS = [
  `create function now_ms() returns bigint language sql volatile parallel safe
    as 'select (extract(epoch from clock_timestamp()) * 1000)::bigint'`,
  `create function json_contains(whole text, part text) returns boolean language sql immutable parallel safe
    as 'select whole::jsonb @> part::jsonb'`,
];
