import type { RunStatus, ThreadStatus } from "../contract/records.ts";
import type { AbortReason, HostOutcome } from "../graph-hosts/host.ts";

/** Attempts of a run that may end with the death of its graph host. */
export const MAX_CRASHES = 3;

/** Attempts of a run in all. Deaths of whole processes are not the run's fault as a rule, so there may be many. */
export const MAX_ATTEMPTS = 20;

/** What becomes of a run and its thread. */
export interface Verdict {
  status: RunStatus;
  thread_status: ThreadStatus;
  output: string;
  /** The last event of the stream, if one says how it ended. */
  event: [event: string, data: string] | undefined;
}

/** Decides how a run ends, from how it ended in its host and whether it was told to stop. */
export function verdictOn({ ended, output, error }: HostOutcome, stopping: AbortReason | undefined): Verdict {
  if (stopping === "timeout")
    return failure("timeout", { error: "TimeoutError", message: "The run took longer than it may." });
  // Whatever the graph did after a cancel was accepted does not count.
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
