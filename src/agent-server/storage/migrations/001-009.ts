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

/**
 * Stores what a rollback restores: the thread's record before a run, and layers of writes. Also stores the last expired event of a run, for
 * the `gap` event that late readers receive, and the start time of a run, which orders the thread's stream.
 */
export const rollback: Migration = {
  name: "002-rollback",
  statements: ({ types }) => [
    "alter table runs add column thread_before text",
    "alter table runs add column expired_seq integer",
    `alter table runs add column started_at ${types.bigint}`,
    "alter table run_events add column base_seq integer",
    "alter table run_events add column base_run_id text",
    "alter table run_events add column prefix integer",
    "alter table run_events add column suffix integer",
    // Partial index: ended runs are kept, so a sweep over all of them would become slower over time.
    "drop index runs_ended",
    "create index runs_to_expire on runs (ended_at) where ended_at is not null and expired_seq is null",
    "create index runs_temporary on runs (ended_at) where temporary = 1",
    "alter table checkpoint_writes rename to checkpoint_writes_001",
    `create table checkpoint_writes (
      thread_id text not null, checkpoint_ns text not null, checkpoint_id text not null, task_id text not null,
      idx integer not null, layer ${types.bigint} not null, tenant_id text not null, run_id text, channel text not null,
      type text not null, value text not null,
      constraint checkpoint_writes_key primary key (thread_id, checkpoint_ns, checkpoint_id, task_id, idx, layer)) ${types.clustered}`,
    `insert into checkpoint_writes
      select thread_id, checkpoint_ns, checkpoint_id, task_id, idx, 0, tenant_id, run_id, channel, type, value
      from checkpoint_writes_001`,
    "drop table checkpoint_writes_001",
  ],
};

/**
 * Delta events consist of any number of copies instead of a prefix and a suffix. Existing delta events, which would have expired within an
 * hour, become gap events.
 */
export const eventCopies: Migration = {
  name: "003-event-copies",
  statements: () => [
    `update run_events set event = 'gap', base_seq = null, base_run_id = null,
      data = '{"run_id":"' || run_id || '","after":' || (seq - 1) || ',"until":' || seq ||
        ',"reason":"This event was stored by an older version."}'
      where base_seq is not null`,
    "alter table run_events drop column prefix",
    "alter table run_events drop column suffix",
    "alter table run_events add column copies text",
  ],
};

/**
 * Assistant ids are unique within a workspace: a graph's default assistant has the same id in all workspaces, because clients compute it
 * from the graph's name.
 */
export const assistantsOfWorkspaces: Migration = {
  name: "005-assistants-of-workspaces",
  statements: ({ types }) => [
    "alter table assistants rename to assistants_001",
    `create table assistants (
      assistant_id text not null, tenant_id text not null, graph_id text not null,
      name text not null, description text, config text not null, context text not null, metadata text not null,
      version integer not null, created_at ${types.bigint} not null, updated_at ${types.bigint} not null,
      constraint assistants_key primary key (tenant_id, assistant_id))`,
    `insert into assistants
      select assistant_id, tenant_id, graph_id, name, description, config, context, metadata, version, created_at, updated_at
      from assistants_001`,
    // Also drops the index assistants_by_graph.
    "drop table assistants_001",
    "create index assistants_by_graph on assistants (tenant_id, graph_id)",
    "alter table assistant_versions rename to assistant_versions_001",
    `create table assistant_versions (
      assistant_id text not null, version integer not null, tenant_id text not null, graph_id text not null,
      name text not null, description text, config text not null, context text not null, metadata text not null,
      created_at ${types.bigint} not null,
      constraint assistant_versions_key primary key (tenant_id, assistant_id, version)) ${types.clustered}`,
    `insert into assistant_versions
      select assistant_id, version, tenant_id, graph_id, name, description, config, context, metadata, created_at
      from assistant_versions_001`,
    "drop table assistant_versions_001",
  ],
};

/** The active rollout among those whose instances share the database of a deployment. At most one row. */
export const executingRollout: Migration = {
  name: "007-claimant",
  statements: ({ types }) => [
    `create table claimant (
      id integer not null, rollout ${types.bigint} not null, since ${types.bigint} not null,
      constraint claimant_key primary key (id), constraint claimant_is_one check (id = 1))`,
  ],
};

/** Indexes of a workspace's runs: by acceptance for lists over all threads, and by end for counts by minute. */
export const runsOfWorkspaces: Migration = {
  name: "008-runs-of-workspaces",
  statements: () => [
    "create index runs_of_workspace on runs (tenant_id, created_at, seq)",
    // Active runs have a null ended_at. A covering index: counts without an access filter read no rows.
    "create index runs_by_end on runs (tenant_id, ended_at, started_at, created_at)",
  ],
};

/** Newer versions of LangGraph rebuild channel values from writes, in the order of their tasks' paths. */
export const taskPaths: Migration = {
  name: "009-task-paths",
  statements: () => ["alter table checkpoint_writes add column task_path text not null default ''"],
};
