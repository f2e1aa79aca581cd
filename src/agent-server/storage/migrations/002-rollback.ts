import type { Migration } from "../../../platform/database/migrate.ts";

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
