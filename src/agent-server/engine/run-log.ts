import type { RunRow } from "../storage/schema.ts";

export type LoggedRun = Pick<
  RunRow,
  | "run_id"
  | "thread_id"
  | "assistant_id"
  | "tenant_id"
  | "epoch"
  | "attempt"
  | "started_at"
  | "webhook"
  | "push_configs"
>;

/** Log fields that identify a run. Logs use the name `workspace_id` for the tenant ID. */
export const runFields = ({ run_id, thread_id, assistant_id, tenant_id }: LoggedRun) => ({
  run_id,
  thread_id,
  assistant_id,
  workspace_id: tenant_id,
});

/** Milliseconds since the first claim of a run, by the clock of this process; 0 for a run that was never claimed. */
export const durationOf = ({ started_at }: LoggedRun): number =>
  started_at === null ? 0 : Math.max(0, Date.now() - started_at);
