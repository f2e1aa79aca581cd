import type { Generated } from "kysely";
import type { CancelAction, MultitaskStrategy, RunStatus, ThreadStatus } from "../contract/records.ts";

/** The tables of the agent server. */
declare module "../../platform/database/schema.ts" {
  interface Schema {
    assistants: AssistantRow;
    assistant_versions: AssistantVersionRow;
    threads: ThreadRow;
    runs: RunTable;
    run_events: RunEventRow;
    checkpoints: CheckpointRow;
    checkpoint_values: CheckpointValueRow;
    checkpoint_writes: CheckpointWriteRow;
    claimant: ClaimantRow;
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
  /** What the status is when no run is pending or running. */
  rest_status: ThreadStatus;
  metadata: string;
  config: string;
  /** State values after the last step, as JSON; null until a run or an update has written state. */
  values: string | null;
  /** `{task_id: [interrupt]}` as JSON. */
  interrupts: string;
  error: string | null;
  /** 1 for the thread of a stateless run: in no list, and gone when its run has ended. */
  hidden: number;
  created_at: number;
  updated_at: number;
  state_updated_at: number;
}

interface RunTable extends Omit<RunRow, "seq"> {
  seq: Generated<number>;
}

export interface RunRow {
  /** Order of acceptance. Given out under the lock of the thread, so it is also the order of commits there. */
  seq: number;
  run_id: string;
  tenant_id: string;
  thread_id: string;
  assistant_id: string;
  graph_id: string;
  status: RunStatus;
  metadata: string;
  /** What was asked for, with assistant, thread and request merged: all that a graph host needs. JSON. */
  kwargs: string;
  multitask_strategy: MultitaskStrategy;
  /** The time from which the run may start; its place in the thread's queue. Never changes. */
  start_at: number;
  /** Not claimed before this time: `start_at`, or later while a retry backs off. */
  run_after: number;
  /** Fencing token: plus one at each claim, never reset. Every write of a worker names it. */
  epoch: number;
  /** Claims that were not handed back. */
  attempt: number;
  /** Attempts that ended because the graph host died. */
  crashes: number;
  worker_id: number | null;
  lease_until: number | null;
  /** The durable intent to stop. */
  cancel_action: CancelAction | null;
  cancel_reason: string | null;
  /** The answer of wait and join, as JSON; null until the run has ended. */
  output: string | null;
  /** 1: the run's thread goes when the run ends. */
  temporary: number;
  /** A ThreadBefore as JSON, once the run has changed its thread's record. */
  thread_before: string | null;
  /** The last of its events, once they have expired. */
  expired_seq: number | null;
  created_at: number;
  updated_at: number;
  /** Its first claim. Runs of a thread start one after the other. */
  started_at: number | null;
  ended_at: number | null;
}

/** What a run found in its thread's record before it put its own there. */
export interface ThreadBefore {
  graph_id?: unknown;
  assistant_id?: unknown;
  updated_at: number;
  /** The `updated_at` that the run gave it: while it stands, nobody else has changed the record. */
  changed_at: number;
}

export interface RunEventRow {
  run_id: string;
  tenant_id: string;
  /** 1, 2, 3 ... within the run, over all its attempts. The event's id on the wire. */
  seq: number;
  event: string;
  /** JSON text; with a base what that does not have. */
  data: string;
  /** The event of the same run whose data this one changes; 0: it changes the output of another run. */
  base_seq: number | null;
  base_run_id: string | null;
  /** What of the base it has, and where ({@link TextDelta}). */
  copies: string | null;
  created_at: number;
}

export interface CheckpointRow {
  thread_id: string;
  checkpoint_ns: string;
  checkpoint_id: string;
  tenant_id: string;
  parent_checkpoint_id: string | null;
  /** The run that wrote it; null for a state update. */
  run_id: string | null;
  epoch: number;
  /** The checkpoint without its channel values, as JSON. */
  checkpoint: string;
  metadata: string;
  created_at: number;
}

/** A channel's value, stored once per version. Versions are unique, so a rolled-back or forked run never meets another's. */
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
  /** Where LangGraph applies the task's writes among those of its step; empty where it names no place. */
  task_path: string;
  /** Position among the task's writes; below 0 for errors, interrupts and resume values, of which the newest counts. */
  idx: number;
  /** For `idx` below 0 the `seq` of the run that wrote it, else 0: a later run's write covers an earlier one's, and uncovers it when it is rolled back. */
  layer: number;
  tenant_id: string;
  run_id: string | null;
  channel: string;
  type: string;
  value: string;
}

/** The roll-out of a deployment whose instances execute runs; empty where nobody shares the database. */
export interface ClaimantRow {
  /** 1: there is one row. */
  id: number;
  rollout: number;
  since: number;
}
