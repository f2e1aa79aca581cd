import type { Database } from "../../platform/database/database.ts";
import type { CheckpointData, RunKwargs, RunOrder, WriteKey } from "../graph-hosts/host.ts";
import { findCheckpoint, findWritesOfRun } from "../storage/checkpoints.ts";
import type { StoredEvent } from "../storage/event-reader.ts";
import { findLastOutput } from "../storage/runs.ts";
import type { RunRow } from "../storage/schema.ts";
import { hasState, type OutputBase } from "./event-encoder.ts";

/** The event that begins each attempt of a run. */
export const metadataEvent = ({ run_id, attempt }: Pick<RunRow, "run_id" | "attempt">, seq: number): StoredEvent => ({
  seq,
  event: "metadata",
  data: JSON.stringify({ run_id, attempt }),
});

/**
 * Whether this attempt has been announced, and nothing been told since: by this claim, which saved the announcement with
 * itself, or by one before it that was handed back before the graph began.
 *
 * @param seq the last event of the run
 */
export const isAnnounced = ({ attempt }: RunRow, seq: number): boolean => attempt === 1 && seq === 1;

/** What a host is to execute. */
export function orderOf({ run_id, epoch, attempt, thread_id, assistant_id, graph_id, kwargs }: RunRow): RunOrder {
  return { run_id, epoch, attempt, thread_id, assistant_id, graph_id, kwargs: JSON.parse(kwargs) as RunKwargs };
}

/** Where a run starts from. */
export interface Beginning {
  /** The thread's newest root checkpoint, which saves the run its first question. */
  head: CheckpointData | null;
  /** What an earlier claim has written on the checkpoint that the run starts from. */
  begun: WriteKey[];
  /** The state that the run before it has left: mostly the first that this one tells. */
  last: OutputBase | undefined;
}

export async function beginningOf({ read }: Database, run: RunRow, { kwargs }: RunOrder): Promise<Beginning> {
  const { run_id, thread_id, epoch } = run;
  const head = (await findCheckpoint(read, { thread_id, checkpoint_ns: "" })) ?? null;
  if (!head) return { head, begun: [], last: undefined };
  const last = kwargs.stream_mode.some(hasState) ? await findLastOutput(read, thread_id) : undefined;
  const checkpoint_id = String(kwargs.config.configurable?.checkpoint_id ?? head.checkpoint_id);
  const begun = epoch > 1 ? await findWritesOfRun(read, { run_id, thread_id, checkpoint_id }) : [];
  return { head, begun, last: last?.output ? { run_id: last.run_id, output: last.output } : undefined };
}
