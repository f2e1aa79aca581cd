import type { Generated } from "kysely";
import type { CancelAction, MultitaskStrategy, RunStatus, ThreadStatus } from "../contract/records.ts";
import type { Language } from "../graph-hosts/checkpoint-requests.ts";

declare module "../../platform/database/database.ts" {
  interface Schema {
    assistants: AssistantRow;
    assistant_versions: AssistantVersionRow;
    threads: ThreadRow;
    runs: RunTable;
    run_events: RunEventRow;
    checkpoints: CheckpointRow;
    checkpoint_values: CheckpointValueRow;
    checkpoint_writes: CheckpointWriteRow;
    active_rollout: ActiveRolloutRow;
    crons: CronRow;
    project_encryption: { id: number; since: number };
    store_embeddings: StoreEmbeddingRow;
    store_items: StoreItemRow;
    store_vectors: StoreVectorTable;
    trace_deletions: TraceDeletionRow;
    webhook_deliveries: WebhookDeliveryRow;
  }
}

export interface AssistantRow {
  assistant_id: string;
  tenant_id: string;
  graph_id: string;
  name: string;
  description: string | null;
  config: string;
  context: string;
  metadata: string;
  version: number;
  created_at: number;
  updated_at: number;
}

export type AssistantVersionRow = Omit<AssistantRow, "updated_at">;

export interface ThreadRow {
  thread_id: string;
  tenant_id: string;
  status: ThreadStatus;
  /** The thread's status while no run is active. */
  idle_status: ThreadStatus;
  metadata: string;
  config: string;
  /** State values after the last ended run or change of the state, as JSON; null until state has been written. */
  values: string | null;
  /** `{task_id: [interrupt]}` as JSON. */
  interrupts: string;
  error: string | null;
  /** 1 for the thread of a stateless run with `on_completion: delete`: not listed, and deleted when its run ends. */
  hidden: number;
  /** What happens when the time to live is over; null for a thread without one. */
  ttl_strategy: "delete" | "keep_latest" | null;
  /** Time to live after the last update. */
  ttl_ms: number | null;
  /** 1 after the old checkpoints were deleted, until a client changes the thread or it has a new state. */
  pruned: number;
  created_at: number;
  updated_at: number;
  state_updated_at: number;
}

interface RunTable extends Omit<RunRow, "seq"> {
  seq: Generated<number>;
}

export interface RunRow {
  /** Order of acceptance. Assigned under the thread's lock, so runs of a thread commit in this order. */
  seq: number;
  run_id: string;
  tenant_id: string;
  /** The caller's. Empty for runs of versions before 026-runs-of-users. */
  user_id: string;
  thread_id: string;
  assistant_id: string;
  graph_id: string;
  status: RunStatus;
  metadata: string;
  /** Input and settings, merged from assistant, thread and request, as JSON. */
  kwargs: string;
  multitask_strategy: MultitaskStrategy;
  /** Earliest start; orders the thread's queue. A retry does not change it. */
  start_at: number;
  /** Earliest claim: `start_at`, or later during a retry back-off. */
  run_after: number;
  /** Fencing token: increases at each claim and each return to the queue, and is never reset. Every write of a worker contains it. */
  epoch: number;
  /** Claims that count as attempts. A claim that was handed back does not count. */
  attempt: number;
  /** Attempts that ended because the graph host died. */
  crashes: number;
  worker_id: number | null;
  lease_until: number | null;
  /** The requested cancel action; null if no cancellation was requested. */
  cancel_action: CancelAction | null;
  cancel_reason: string | null;
  /** URL that is called when the run ends. */
  webhook: string | null;
  /** A list of {@link PushConfig} as JSON; null for none. */
  push_configs: string | null;
  /** Response body of wait and join, as JSON; null for an active run, and for a run that was cancelled before it started. */
  output: string | null;
  /** 1: the run's thread is deleted when the run ends. */
  temporary: number;
  /** A {@link ThreadSnapshot} as JSON, once the run has changed its thread's record. */
  thread_snapshot: string | null;
  /** `seq` of the last expired event. */
  expired_seq: number | null;
  created_at: number;
  updated_at: number;
  /** Time when a worker first claimed the run. The stream of a thread orders its runs by this time: they run one after the other. */
  started_at: number | null;
  ended_at: number | null;
}

export type RunKey = Pick<RunRow, "run_id" | "tenant_id">;

export type ThreadRunKey = RunKey & Pick<RunRow, "thread_id">;

/** The values of a thread's record that a run has replaced. */
export interface ThreadSnapshot {
  graph_id?: unknown;
  assistant_id?: unknown;
  updated_at: number;
  /** The `updated_at` value that the run set. If it is unchanged, the record has not changed since. */
  changed_at: number;
}

/** A receiver of the end of a run that is a task of an A2A client. */
export interface PushConfig {
  id: string;
  url: string;
  /** Sent to the receiver, which can check it. */
  token?: string;
  /** The header `Authorization` of the request. */
  authentication?: { scheme: string; credentials: string };
  /** Version of the protocol in which the end is reported. */
  version: "0.3" | "1.0";
}

export interface RunEventRow {
  run_id: string;
  tenant_id: string;
  /** 1, 2, 3 ... within the run, over all its attempts. The event's id in streams. */
  seq: number;
  event: string;
  /** JSON text; with a base, the text that the base does not contain. */
  data: string;
  /** `seq` of the delta base, an event of the same run; 0: the base is the output of the run `base_run_id`. */
  base_seq: number | null;
  base_run_id: string | null;
  /** Parts that are copied from the base ({@link TextDelta}). */
  copies: string | null;
  created_at: number;
}

export interface CheckpointRow {
  thread_id: string;
  checkpoint_ns: string;
  checkpoint_id: string;
  tenant_id: string;
  parent_checkpoint_id: string | null;
  /** The run that wrote the checkpoint; null for a state update. */
  run_id: string | null;
  epoch: number;
  /** The checkpoint without its channel values, as JSON. */
  checkpoint: string;
  metadata: string;
  /** The language of the graph. */
  language: Language;
  created_at: number;
}

/** A channel's value, stored once per version. Versions are unique, so rolled-back and forked runs do not collide. */
export interface CheckpointValueRow {
  thread_id: string;
  checkpoint_ns: string;
  channel: string;
  version: string;
  tenant_id: string;
  run_id: string | null;
  /** `json`, `bytes`, or `empty` for a channel without a value. */
  type: string;
  /** JSON text; base64 for bytes. */
  value: string;
}

export interface CheckpointWriteRow {
  thread_id: string;
  checkpoint_ns: string;
  checkpoint_id: string;
  task_id: string;
  /** Orders the task's writes among those of its step; empty if LangGraph gives no path. */
  task_path: string;
  /** Position among the task's writes; negative for errors, interrupts and resume values, where the newest is valid. */
  idx: number;
  /** The `seq` of the writing run if `idx` is negative, else 0. The highest layer is valid, so a rollback restores the layer below. */
  layer: number;
  tenant_id: string;
  run_id: string | null;
  channel: string;
  type: string;
  value: string;
}

/** A deleted run whose trace is to be deleted. */
export interface TraceDeletionRow {
  run_id: string;
  tenant_id: string;
  created_at: number;
  /** 1 after the first deletion. It is repeated once. */
  done: number;
}

/** The rollout of a deployment whose instances execute runs. Empty in a database that belongs to one service. */
export interface ActiveRolloutRow {
  /** Always 1. */
  id: number;
  rollout: number;
  since: number;
}

export interface CronRow {
  cron_id: string;
  tenant_id: string;
  assistant_id: string;
  thread_id: string | null;
  schedule: string;
  timezone: string | null;
  end_at: number | null;
  enabled: 0 | 1;
  on_run_completed: "delete" | "keep" | null;
  /** The request fields of the cron's runs, as JSON. */
  payload: string;
  metadata: string;
  /** The caller that created the cron. Its runs have this user and these scopes. */
  user_id: string;
  scopes: string;
  /** The creator as a user of the project's authentication handler, as JSON; null for other callers. */
  auth_user: string | null;
  /** The next tick; null if the cron is disabled or has ended. */
  next_at: number | null;
  created_at: number;
  updated_at: number;
}

/** A request that reports the end of a run: to its webhook, or to one of its {@link PushConfig}s. */
export interface WebhookDeliveryRow {
  /** Sent as `webhook-id`. It is the id of the run for its webhook. */
  delivery_id: string;
  run_id: string;
  tenant_id: string;
  url: string;
  /** The origin of the URL. */
  origin: string;
  /** The body without `webhook_sent_at`, or the output of the run for a push notification, as JSON; null once it is delivered. */
  payload: string | null;
  /** `{config, task}` of a push notification as JSON, from which its request is created; null for a webhook. */
  push: string | null;
  status: "pending" | "delivered" | "failed";
  attempts: number;
  /** Earliest time of the next request; while a process sends the delivery, the end of its lease. Null once the delivery has ended. */
  next_at: number | null;
  response_status: number | null;
  error: string | null;
  /** Time at which the delivery was last queued. The limit on the duration of retries counts from it. */
  queued_at: number;
  created_at: number;
  updated_at: number;
}

/** An item is unreadable from `expires_at` on, even if its row still exists. */
export interface StoreItemRow {
  tenant_id: string;
  /** The labels, each followed by a dot. */
  namespace: string;
  key: string;
  /** JSON. */
  value: string;
  created_at: number;
  updated_at: number;
  /** Time to live after a write, and after a read that refreshes it. */
  ttl_ms: number | null;
  expires_at: number | null;
}

interface StoreVectorTable extends Omit<StoreVectorRow, "vector_no"> {
  vector_no: Generated<number>;
}

/** A copy of a vector for pgvector. The table exists only on Postgres with this extension; see storage/store/vectors.ts. */
export interface StoreEmbeddingRow extends Pick<StoreVectorRow, "vector_no" | "tenant_id" | "namespace"> {
  dims: number;
  /** In the binary format of pgvector. */
  embedding: Uint8Array;
}

/** The embedding of one text of an item. */
export interface StoreVectorRow extends Pick<StoreItemRow, "tenant_id" | "namespace" | "key"> {
  vector_no: number;
  /** A normalized vector of 32-bit floating-point numbers, little-endian. */
  vector: Uint8Array;
}
