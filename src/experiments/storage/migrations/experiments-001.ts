import type { Migration } from "../../../platform/database/migrate.ts";

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
