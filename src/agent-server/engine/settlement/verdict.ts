import type { RunStatus, ThreadStatus } from "../../contract/records.ts";
import type { AbortReason, HostOutcome } from "../../graph-hosts/host.ts";

/** A run fails after its graph host has crashed this many times. */
export const MAX_CRASHES = 3;

/** Maximum attempts of a run. From the third on, a run cannot end the process of the service, so the limit is high. */
export const MAX_ATTEMPTS = 20;

/** From this attempt on, a run has a host of its own, because it may have ended the processes that executed it. */
export const ISOLATED_FROM = 3;

export interface Verdict {
  status: RunStatus;
  thread_status: ThreadStatus;
  output: string;
  /** Last event of the stream, if the run ends with one. */
  event: [event: string, data: string] | undefined;
}

/** @param stopping the reason why the run was stopped; undefined if it was not stopped */
export function verdictOn({ ended, output, error }: HostOutcome, stopping: AbortReason | undefined): Verdict {
  if (stopping === "timeout")
    return failure("timeout", {
      error: "TimeoutError",
      message: "The run exceeded the time limit for one attempt (BG_JOB_TIMEOUT_SECS).",
    });
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
