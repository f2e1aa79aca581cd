import type { RunStatus, ThreadStatus } from "../../src/agent-server/contract/records.ts";

/** A move between two states; null: there is no such row yet, or no more. */
export interface Transition<S> {
  from: S | null;
  to: S | null;
  because: string;
}

/**
 * Every move that a run can make. docs/run-states.md draws it, and test/http/run-states.test.ts sees that the database makes
 * all of these moves and no others.
 */
export const RUN_TRANSITIONS: readonly Transition<RunStatus>[] = [
  { from: null, to: "pending", because: "accepted" },
  { from: "pending", to: "running", because: "claimed" },
  { from: "pending", to: "interrupted", because: "cancelled" },
  { from: "pending", to: null, because: "rolled back" },
  { from: "running", to: "pending", because: "process lost, or run returned" },
  { from: "running", to: "success", because: "the graph finished" },
  { from: "running", to: "interrupted", because: "cancelled, or the graph paused" },
  { from: "running", to: "error", because: "the graph failed, or its host died three times" },
  { from: "running", to: "timeout", because: "time limit exceeded" },
  { from: "running", to: null, because: "rolled back" },
  { from: "success", to: null, because: "deleted" },
  { from: "interrupted", to: null, because: "deleted" },
  { from: "error", to: null, because: "deleted" },
  { from: "timeout", to: null, because: "deleted" },
];

/** Every move that a thread can make, besides its creation (as `idle`) and deletion. */
export const THREAD_TRANSITIONS: readonly Transition<ThreadStatus>[] = [
  { from: null, to: "idle", because: "created" },
  { from: "idle", to: "busy", because: "run accepted" },
  { from: "interrupted", to: "busy", because: "run accepted" },
  { from: "error", to: "busy", because: "run accepted" },
  { from: "busy", to: "idle", because: "last run succeeded or was cancelled, or previous status restored" },
  { from: "busy", to: "interrupted", because: "last run paused, or previous status restored" },
  { from: "busy", to: "error", because: "last run failed or timed out, or previous status restored" },
  { from: "interrupted", to: "idle", because: "state updated, no next nodes" },
  { from: "error", to: "idle", because: "state updated, no next nodes" },
  { from: "idle", to: "interrupted", because: "state updated, next nodes exist" },
  { from: "error", to: "interrupted", because: "state updated, next nodes exist" },
];
