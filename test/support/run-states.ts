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
  { from: "running", to: "pending", because: "lost, or handed back" },
  { from: "running", to: "success", because: "the graph ended" },
  { from: "running", to: "interrupted", because: "cancelled, or paused" },
  { from: "running", to: "error", because: "the graph threw, or its host died three times" },
  { from: "running", to: "timeout", because: "took too long" },
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
  { from: "busy", to: "idle", because: "last run succeeded, was cancelled, or left no trace" },
  { from: "busy", to: "interrupted", because: "last run paused, or left no trace" },
  { from: "busy", to: "error", because: "last run failed or timed out, or left no trace" },
  { from: "interrupted", to: "idle", because: "state updated, nothing left to do" },
  { from: "error", to: "idle", because: "state updated, nothing left to do" },
  { from: "idle", to: "interrupted", because: "state updated, nodes left to do" },
  { from: "error", to: "interrupted", because: "state updated, nodes left to do" },
];
