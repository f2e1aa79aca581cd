import type { Migration } from "../../../platform/database/migrate.ts";

/** The queue of each workspace: a claim must not scan all runs of one workspace to find those of another. */
export const queuesOfWorkspaces: Migration = {
  name: "012-queues-of-workspaces",
  statements: () => [
    "create index runs_queue_of_workspace on runs (tenant_id, start_at, seq) where status = 'pending'",
  ],
};

/** Gives two columns descriptive names: the snapshot of a thread before a run, and the status of a thread without active runs. */
export const columnNames: Migration = {
  name: "013-column-names",
  statements: () => [
    "alter table runs rename column thread_before to thread_snapshot",
    "alter table threads rename column rest_status to idle_status",
  ],
};

/**
 * Gives the table of migration 007 a descriptive name. Instances of an earlier version may serve while those of a new revision migrate the
 * database that they share. The statements of the earlier version that claim runs use the former name, so a view keeps it readable.
 */
export const activeRollout: Migration = {
  name: "015-active-rollout",
  statements: ({ name }) => [
    "alter table claimant rename to active_rollout",
    ...(name === "postgres"
      ? [
          "alter table active_rollout rename constraint claimant_key to active_rollout_key",
          "alter table active_rollout rename constraint claimant_is_one to active_rollout_is_one",
        ]
      : []),
    "create view claimant as select id, rollout, since from active_rollout",
  ],
};

/** Requests to delete the traces of deleted runs. The traces may be in another database. */
export const traceDeletions: Migration = {
  name: "016-trace-deletions",
  statements: ({ types }) => [
    `create table trace_deletions (
      run_id text not null primary key, tenant_id text not null, created_at ${types.bigint} not null,
      done integer not null)`,
  ],
};

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

/**
 * `namespace` has a dot after each label, so that a prefix is one range of the key. Both databases sort it by bytes. The
 * vectors of an item belong to its current value: each write replaces them with vectors that have new values of `vector_no`.
 */
export const store: Migration = {
  name: "018-store",
  statements({ name, types }) {
    const text = name === "postgres" ? 'text collate "C" not null' : "text not null";
    return [
      `create table store_items (
        tenant_id ${text}, namespace ${text}, key ${text}, value text not null, created_at ${types.bigint} not null,
        updated_at ${types.bigint} not null, ttl_ms ${types.bigint}, expires_at ${types.bigint},
        primary key (tenant_id, namespace, key)) ${types.clustered}`,
      "create index store_items_by_update on store_items (tenant_id, updated_at, namespace, key)",
      "create index store_items_expiring on store_items (expires_at) where expires_at is not null",
      `create table store_vectors (
        vector_no ${types.sequence}, tenant_id ${text}, namespace ${text}, key ${text}, vector ${types.bytes} not null)`,
      "create index store_vectors_of_item on store_vectors (tenant_id, namespace, key)",
      "create index store_vectors_of_workspace on store_vectors (tenant_id, vector_no)",
    ];
  },
};

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

/** The creator of a cron, if it is a user of the project's authentication handler. */
export const cronUsers: Migration = {
  name: "020-cron-users",
  statements: () => ["alter table crons add column auth_user text"],
};

/** Times to live of threads. They count from the last update of a thread. */
export const threadTtl: Migration = {
  name: "021-thread-ttl",
  statements: ({ types }) => [
    "alter table threads add column ttl_strategy text",
    `alter table threads add column ttl_ms ${types.bigint}`,
    // 1 after the sweeper has pruned the thread, until a client changes the thread or it has a new state.
    "alter table threads add column pruned integer not null default 0",
    "create index threads_expiring on threads ((updated_at + ttl_ms)) where ttl_ms is not null and pruned = 0",
  ],
};

/**
 * Push notifications of A2A tasks: a run has any number of them besides its webhook, so the run is no longer the key of a delivery. `push`
 * is null for webhooks.
 */
export const pushNotifications: Migration = {
  name: "022-push-notifications",
  statements: ({ types }) => [
    "alter table runs add column push_configs text",
    "alter table webhook_deliveries rename to webhook_deliveries_019",
    `create table webhook_deliveries (
      delivery_id text not null, run_id text not null, tenant_id text not null, url text not null, origin text not null,
      payload text, push text, status text not null, attempts integer not null, next_at ${types.bigint},
      response_status integer, error text, queued_at ${types.bigint} not null, created_at ${types.bigint} not null,
      updated_at ${types.bigint} not null, constraint webhook_deliveries_key primary key (delivery_id))`,
    `insert into webhook_deliveries
      select run_id, run_id, tenant_id, url, origin, payload, null, status, attempts, next_at, response_status, error,
        queued_at, created_at, updated_at
      from webhook_deliveries_019`,
    // Also drops the indexes of 019-webhooks.
    "drop table webhook_deliveries_019",
    "create index webhook_deliveries_of_run on webhook_deliveries (run_id)",
    "create index webhook_deliveries_due on webhook_deliveries (next_at) where next_at is not null",
    "create index webhook_deliveries_ended on webhook_deliveries (updated_at) where next_at is null",
    "create index webhook_deliveries_of_workspace on webhook_deliveries (tenant_id, created_at, delivery_id)",
  ],
};

/** The language of the graph that wrote a checkpoint: LangGraph serializes values differently in each. */
export const checkpointLanguage: Migration = {
  name: "024-checkpoint-language",
  statements: () => ["alter table checkpoints add column language text not null default 'js'"],
};

/** Has a row once values were encrypted by the project's handlers: without the handlers, the service must not read them. */
export const projectEncryption: Migration = {
  name: "025-project-encryption",
  statements: ({ types }) => [
    `create table project_encryption (id integer not null primary key, since ${types.bigint} not null)`,
  ],
};

/** The user of each run, for the limits of users. The index has it too: a claim skips the queued runs of users at their limit. */
export const runsOfUsers: Migration = {
  name: "026-runs-of-users",
  statements: () => [
    "alter table runs add column user_id text not null default ''",
    "drop index runs_queue_of_workspace",
    "create index runs_queue_of_workspace on runs (tenant_id, start_at, seq, user_id) where status = 'pending'",
  ],
};

/** Before a run is deleted, the events that are deltas of its output are looked up. */
export const eventBases: Migration = {
  name: "027-event-bases",
  statements: () => ["create index run_events_base on run_events (base_run_id) where base_run_id is not null"],
};
