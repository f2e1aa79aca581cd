import type { CancelAction } from "../../../../src/agent-server/contract/records.ts";
import { api } from "../../api/request.ts";
import { type RunKey, runPath } from "./queries.ts";

export const CANCEL_ACTIONS = [
  { action: "interrupt", label: "Interrupt", hint: "Stops the run and keeps its completed steps." },
  { action: "rollback", label: "Roll back", hint: "Stops the run, then deletes the run and all its steps." },
] as const satisfies readonly { action: CancelAction; label: string; hint: string }[];

export const cancelRun = (run: RunKey, action: CancelAction): Promise<void> =>
  api.post(`${runPath(run)}/cancel`, undefined, { query: { action } });

/** Cancels all runs in the workspace with the given status. `all` selects pending and running runs. */
export const cancelByStatus = (status: "pending" | "running" | "all", action: CancelAction): Promise<void> =>
  api.post("/runs/cancel", { status }, { query: { action } });

/**
 * Sends one request per thread. If one of a thread's runs has already ended, no run of this thread is cancelled, and the error is thrown
 * after the requests for the other threads.
 */
export async function cancelRuns(runs: readonly RunKey[], action: CancelAction): Promise<void> {
  const requests = [...Map.groupBy(runs, (run) => run.thread_id)].map(([thread_id, own]) =>
    api.post("/runs/cancel", { thread_id, run_ids: own.map(({ run_id }) => run_id) }, { query: { action } }),
  );
  const failed = (await Promise.allSettled(requests)).find(({ status }) => status === "rejected");
  if (failed?.status === "rejected") throw failed.reason;
}
