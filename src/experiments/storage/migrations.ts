import type { Migration } from "../../platform/database/migrate.ts";

/** Creates the tables for datasets with examples, experiments with runs, and feedback. */
export const experiments: Migration = {
  name: "experiments-001",
  statements: ({ types }) => [
    `create table datasets (
      dataset_no ${types.sequence}, tenant_id text not null, dataset_id text not null, name text not null,
      description text, data_type text not null, externally_managed integer not null, inputs_schema text,
      outputs_schema text, transformations text, metadata text, baseline_experiment_id text, share_token text unique,
      shares_experiments integer not null,
      example_count integer not null, next_ord integer not null, next_test_run integer not null,
      created_at ${types.bigint} not null, modified_at ${types.bigint} not null,
      unique (tenant_id, dataset_id), unique (tenant_id, name))`,
    `create table examples (
      dataset_no ${types.bigint} not null, ord integer not null, tenant_id text not null, example_id text not null,
      row_id text not null, version integer not null, digest text not null, source_run_id text,
      deleted integer not null, created_at ${types.bigint} not null, modified_at ${types.bigint} not null,
      primary key (dataset_no, ord), unique (tenant_id, example_id), unique (dataset_no, row_id)) ${types.clustered}`,
    `create table example_versions (
      dataset_no ${types.bigint} not null, ord integer not null, version integer not null, inputs text not null,
      outputs text, metadata text, splits text not null, deleted integer not null,
      created_at ${types.bigint} not null, primary key (dataset_no, ord, version))`,
    `create table experiments (
      experiment_no ${types.sequence}, experiment_id text not null unique, tenant_id text not null,
      dataset_no ${types.bigint}, name text not null, description text, start_us ${types.bigint} not null,
      end_us ${types.bigint}, extra text, trace_tier text, default_dataset_id text, test_run_number integer,
      stats text not null, stats_version integer not null, created_at ${types.bigint} not null,
      unique (tenant_id, name))`,
    "create index experiments_of_dataset on experiments (dataset_no)",
    `create table experiment_runs (
      experiment_no ${types.bigint} not null, ord integer not null, repetition integer not null, run_id text not null unique,
      tenant_id text not null, example_version integer not null, name text not null,
      start_us ${types.bigint} not null, end_us ${types.bigint} not null, error text, metadata text,
      inputs_preview text not null, outputs_preview text,
      primary key (experiment_no, ord, repetition)) ${types.clustered}`,
    `create table experiment_outputs (
      experiment_no ${types.bigint} not null, ord integer not null, repetition integer not null, outputs text not null,
      primary key (experiment_no, ord, repetition))`,
    `create table feedback (
      feedback_id text primary key, tenant_id text not null, experiment_no ${types.bigint} not null, ord integer,
      repetition integer, key text not null, score double precision, value text, comment text, correction text,
      source text, extra text, feedback_group_id text, comparative_experiment_id text, is_error integer not null,
      created_us ${types.bigint} not null, modified_us ${types.bigint} not null)`,
    "create index feedback_of_run on feedback (experiment_no, ord, repetition)",
    `create table score_vectors (
      experiment_no ${types.bigint} not null, kind text not null, key text not null, data ${types.bytes} not null,
      primary key (experiment_no, kind, key))`,
    `create table feedback_configs (
      tenant_id text not null, feedback_key text not null, config text not null, is_lower_score_better integer,
      modified_at ${types.bigint} not null, primary key (tenant_id, feedback_key))`,
    `create table comparative_experiments (
      comparative_experiment_id text primary key, tenant_id text not null, dataset_no ${types.bigint} not null,
      name text, description text, extra text, experiment_ids text not null,
      created_at ${types.bigint} not null, modified_at ${types.bigint} not null)`,
    "create index comparative_experiments_of_dataset on comparative_experiments (dataset_no)",
  ],
};

const TABLES_OF_EXAMPLES = ["examples", "example_versions", "experiment_runs", "experiment_outputs", "feedback"];

/** Renames the column `ord`. Both databases also rename it in keys and indexes, and do not rewrite the rows. */
const exampleIndexes: Migration = {
  name: "experiments-002",
  statements: () => [
    ...TABLES_OF_EXAMPLES.map((table) => `alter table ${table} rename column ord to example_index`),
    "alter table datasets rename column next_ord to next_example_index",
  ],
};

/**
 * Adds traced runs. Clients choose the ids of runs, so `experiment_runs.run_id` becomes unique within its workspace instead of globally:
 * SQLite needs a new table for that. `feedback.experiment_no` is 0 while the run of the feedback is unknown.
 */
const traces: Migration = {
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

/** Adds shares of runs, model prices of workspaces, tokens for feedback without an API key, and the retention of traces. */
const traceReading: Migration = {
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

/**
 * Adds tags of dataset versions and attachments of examples. An attachment belongs to the example versions from `from_version` up
 * to, but not including, `until_version`, so that a new version of an example does not copy the bytes.
 */
const datasetVersions: Migration = {
  name: "experiments-005",
  statements: ({ types }) => [
    `create table dataset_tags (
      dataset_no ${types.bigint} not null, tag text not null, version_at ${types.bigint} not null,
      primary key (dataset_no, tag))`,
    `create table example_attachments (
      dataset_no ${types.bigint} not null, example_index integer not null, name text not null,
      from_version integer not null, until_version integer, mime_type text not null, token text not null unique,
      data ${types.bytes} not null, primary key (dataset_no, example_index, name, from_version))`,
  ],
};

/** Adds prompts with their commits, and annotation queues with their items and reviews. */
const promptsAndQueues: Migration = {
  name: "experiments-006",
  statements: ({ types }) => [
    `create table prompts (
      prompt_no ${types.sequence}, tenant_id text not null, prompt_id text not null, name text not null, description text,
      readme text, tags text not null, is_archived integer not null, created_at ${types.bigint} not null,
      updated_at ${types.bigint} not null, unique (tenant_id, name))`,
    `create table prompt_commits (
      commit_no ${types.sequence}, prompt_no ${types.bigint} not null, commit_id text not null, commit_hash text not null,
      parent_no ${types.bigint}, manifest text not null, manifest_sha text not null, description text,
      created_at ${types.bigint} not null, unique (prompt_no, commit_hash))`,
    `create table prompt_tags (
      prompt_no ${types.bigint} not null, name text not null, commit_no ${types.bigint} not null,
      created_at ${types.bigint} not null, updated_at ${types.bigint} not null, primary key (prompt_no, name))`,
    `create table prompt_likes (
      prompt_no ${types.bigint} not null, user_id text not null, primary key (prompt_no, user_id))`,
    `create table annotation_queues (
      queue_no ${types.sequence}, tenant_id text not null, queue_id text not null, name text not null, description text,
      rubric_instructions text, rubric_items text, default_dataset_id text, num_reviewers_per_item integer not null,
      metadata text, created_at ${types.bigint} not null, updated_at ${types.bigint} not null, unique (tenant_id, queue_id))`,
    `create table annotation_queue_items (
      item_no ${types.sequence}, queue_no ${types.bigint} not null, tenant_id text not null, item_id text not null,
      run_id text not null, source_proposed_example_id text, added_us ${types.bigint} not null,
      last_reviewed_us ${types.bigint}, unique (queue_no, run_id))`,
    "create unique index annotation_queue_items_by_id on annotation_queue_items (tenant_id, item_id)",
    "create index annotation_queue_items_of_run on annotation_queue_items (tenant_id, run_id)",
    `create table annotation_queue_reviews (
      item_no ${types.bigint} not null, user_id text not null, status text, added_us ${types.bigint},
      completed_us ${types.bigint}, primary key (item_no, user_id))`,
  ],
};

/**
 * Adds the parent to the index of traces, to find the children of a run. Copies `experiment_runs.end_us` to a new column that can be
 * null: SQLite cannot remove `not null` from a column.
 */
const pendingRows: Migration = {
  name: "experiments-009",
  statements: ({ types }) => [
    "drop index trace_runs_of_trace",
    "create index trace_runs_of_trace on trace_runs (tenant_id, trace_id, parent_run_id)",
    `alter table experiment_runs add column ended_us ${types.bigint}`,
    "update experiment_runs set ended_us = end_us",
    "alter table experiment_runs drop column end_us",
    "alter table experiment_runs rename column ended_us to end_us",
  ],
};

/** The migrations of the experiments, in their order. A published migration never changes. */
export const EXPERIMENT_MIGRATIONS = [
  experiments,
  exampleIndexes,
  traces,
  traceReading,
  datasetVersions,
  promptsAndQueues,
  pendingRows,
] as const;
