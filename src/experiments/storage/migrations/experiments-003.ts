import type { Migration } from "../../../platform/database/migrate.ts";

/**
 * Adds traced runs. Clients choose the ids of runs, so `experiment_runs.run_id` becomes unique in its workspace instead of everywhere:
 * SQLite needs a new table for that. `feedback.experiment_no` is 0 while the run of the feedback is unknown.
 */
export const traces: Migration = {
  name: "experiments-003",
  statements: ({ types }) => [
    `create table trace_runs (
      run_no ${types.sequence}, tenant_id text not null, run_id text not null, experiment_no ${types.bigint} not null,
      trace_id text not null, parent_run_id text, dotted_order text not null, is_root integer not null,
      is_provisional integer not null, name text, run_type text not null, start_us ${types.bigint} not null,
      end_us ${types.bigint}, error text, tags text, metadata text, thread_id text, reference_example_id text,
      inputs_preview text, outputs_preview text, prompt_tokens ${types.bigint}, completion_tokens ${types.bigint},
      total_tokens ${types.bigint}, prompt_cost double precision, completion_cost double precision,
      total_cost double precision, usage_details text, first_token_us ${types.bigint},
      tree_prompt_tokens ${types.bigint}, tree_completion_tokens ${types.bigint}, tree_total_tokens ${types.bigint},
      tree_prompt_cost double precision, tree_completion_cost double precision, tree_total_cost double precision,
      tree_first_token_us ${types.bigint}, merge_state integer not null, unique (tenant_id, run_id))`,
    "create index trace_runs_of_trace on trace_runs (tenant_id, trace_id)",
    "create index trace_roots on trace_runs (experiment_no, start_us, run_id) where is_root = 1",
    "create index trace_runs_by_type on trace_runs (experiment_no, run_type, start_us)",
    "create index trace_runs_provisional on trace_runs (tenant_id, parent_run_id) where is_provisional = 1",
    `create table trace_payloads (
      run_no ${types.bigint} not null primary key, inputs text, outputs text, error text, events text, extra text,
      serialized text)`,
    `create table trace_attachments (
      run_no ${types.bigint} not null, name text not null, mime_type text not null, token text not null unique,
      data ${types.bytes} not null, primary key (run_no, name))`,
    "alter table feedback add column run_id text",
    "create index feedback_of_trace_run on feedback (tenant_id, run_id) where run_id is not null",
    "alter table experiments add column stats_dirty integer not null default 0",
    "create index experiments_dirty on experiments (tenant_id) where stats_dirty = 1",
    `create table experiment_runs_2 (
      experiment_no ${types.bigint} not null, example_index integer not null, repetition integer not null,
      run_id text not null, tenant_id text not null, example_version integer not null, name text not null,
      start_us ${types.bigint} not null, end_us ${types.bigint} not null, error text, metadata text,
      inputs_preview text not null, outputs_preview text, is_traced integer not null default 0,
      primary key (experiment_no, example_index, repetition), unique (tenant_id, run_id)) ${types.clustered}`,
    `insert into experiment_runs_2 (experiment_no, example_index, repetition, run_id, tenant_id, example_version, name,
       start_us, end_us, error, metadata, inputs_preview, outputs_preview)
     select experiment_no, example_index, repetition, run_id, tenant_id, example_version, name, start_us, end_us, error,
       metadata, inputs_preview, outputs_preview from experiment_runs`,
    "drop table experiment_runs",
    "alter table experiment_runs_2 rename to experiment_runs",
  ],
};
