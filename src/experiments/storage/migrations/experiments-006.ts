import type { Migration } from "../../../platform/database/migrate.ts";

/** Adds prompts with their commits, and annotation queues with their items and reviews. */
export const promptsAndQueues: Migration = {
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
