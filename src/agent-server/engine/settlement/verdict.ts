import type { RunStatus, ThreadStatus } from "../../contract/records.ts";
import type { AbortReason, HostOutcome } from "../../graph-hosts/host.ts";

/** Attempts of a run that may end with the death of its graph host. */
export const MAX_CRASHES = 3;

/** Attempts of a run in all. The death of a whole process is rarely caused by the run, so the limit is high. */
export const MAX_ATTEMPTS = 20;

/** The final status of a run and of its thread. */
export interface Verdict {
  status: RunStatus;
  thread_status: ThreadStatus;
  output: string;
  /** Last event of the stream, if the run ends with one. */
  event: [event: string, data: string] | undefined;
}

/** Decides the final status from the outcome in the graph host and the reason for which the run was stopped, if any. */
export function verdictOn({ ended, output, error }: HostOutcome, stopping: AbortReason | undefined): Verdict {
  if (stopping === "timeout")
    return failure("timeout", { error: "TimeoutError", message: "The run took longer than it may." });
  // An accepted cancel overrides the outcome of the graph.
  if (stopping === "cancelled" || ended === "aborted")
    return { status: "interrupted", thread_status: "idle", output, event: undefined };
  if (ended === "error") return failure("error", error ?? { error: "Error", message: "The run failed." });
  if (ended === "interrupted") return { status: "interrupted", thread_status: "interrupted", output, event: undefined };
  return { status: "success", thread_status: "idle", output, event: undefined };
}

function failure(status: "error" | "timeout", error: { error: string; message: string }): Verdict {
  const text = JSON.stringify(error);
  return { status, thread_status: "error", output: `{"__error__":${text}}`, event: ["error", text] };
}
