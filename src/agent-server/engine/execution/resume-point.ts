import type { Database, Tx } from "../../../platform/database/database.ts";
import { languageMismatch } from "../../graph-catalog.ts";
import type { CheckpointData, Language, WriteKey } from "../../graph-hosts/checkpoint-requests.ts";
import type { RunKwargs, RunOrder } from "../../graph-hosts/host.ts";
import { findCheckpoint } from "../../storage/checkpoints/checkpoints.ts";
import { findWritesOfRun, hasConsumedResume } from "../../storage/checkpoints/run-writes.ts";
import type { StoredEvent } from "../../storage/event-reader.ts";
import { findLastOutput } from "../../storage/runs.ts";
import type { RunRow, ThreadRow } from "../../storage/schema.ts";
import { findThread } from "../../storage/threads.ts";
import { type DeltaBase, hasState } from "./event-encoder.ts";

/** Returns the first event of an attempt of a run. */
export const metadataEvent = ({ run_id, attempt }: Pick<RunRow, "run_id" | "attempt">, seq: number): StoredEvent => ({
  seq,
  event: "metadata",
  data: JSON.stringify({ run_id, attempt }),
});

/**
 * Whether the run's last event, `seq`, is the metadata event of this attempt. It was stored by this claim, or by an earlier claim that was
 * handed back.
 */
export const hasMetadataEvent = ({ attempt }: RunRow, seq: number): boolean => attempt === 1 && seq === 1;

export function orderOf({ run_id, epoch, attempt, thread_id, assistant_id, graph_id, kwargs }: RunRow): RunOrder {
  return { run_id, epoch, attempt, thread_id, assistant_id, graph_id, kwargs: JSON.parse(kwargs) as RunKwargs };
}

export interface ResumePoint {
  /** The thread's newest root checkpoint. Sent with the run, so that the host does not have to request it. */
  head: CheckpointData | null;
  /** Writes on the checkpoint that the run starts from, stored during previous claims of the run. */
  begun: WriteKey[];
  /** Whether a task has consumed a resume value during a previous claim, also in a subgraph, whose writes are on its own checkpoints. */
  resume_consumed: boolean;
  /** Output of the previous run. The first state event of most runs repeats it. */
  base: DeltaBase | undefined;
}

export async function loadResumePoint({ read }: Database, run: RunRow, { kwargs }: RunOrder): Promise<ResumePoint> {
  const { run_id, thread_id, epoch } = run;
  const head = (await findCheckpoint(read, { thread_id, checkpoint_ns: "" })) ?? null;
  if (!head) return { head, begun: [], resume_consumed: false, base: undefined };
  const last = kwargs.stream_mode.some(hasState) ? await findLastOutput(read, thread_id) : undefined;
  const checkpoint_id = String(kwargs.config.configurable?.checkpoint_id ?? head.checkpoint_id);
  const begun = epoch > 1 ? await findWritesOfRun(read, { run_id, thread_id, checkpoint_id }) : [];
  const resume_consumed = epoch > 1 && (await hasConsumedResume(read, { run_id, thread_id }));
  return {
    head,
    begun,
    resume_consumed,
    base: last?.output ? { run_id: last.run_id, output: last.output } : undefined,
  };
}

/** Format of LangGraph interrupt IDs. LangGraph treats a `resume` object as a map by interrupt ID if all of its keys match. */
const INTERRUPT_ID = /^[0-9a-f]{32}$/;

interface ResumeRefusal {
  error: { error: string; message: string };
  thread_status: ThreadRow["status"];
}

/** Returns the error of a run that cannot start, although it was accepted; undefined if it can. */
export const refusalOf = async (
  read: Tx,
  run: RunRow,
  { head, kwargs, language }: { head: CheckpointData | null; kwargs: RunKwargs; language: Language | undefined },
): Promise<ResumeRefusal | undefined> =>
  refusedLanguage(run, head, language) ??
  (await refusedCheckpoint(read, run, head, kwargs)) ??
  refusedResume(read, run, kwargs);

/** Returns the error of a run whose thread was written by a graph of the other language, after the run was accepted. */
function refusedLanguage(
  { graph_id }: RunRow,
  head: CheckpointData | null,
  language: Language | undefined,
): ResumeRefusal | undefined {
  if (!head?.language || !language || head.language === language) return undefined;
  const { message } = languageMismatch(head.language, graph_id, language);
  return { error: { error: "LanguageMismatchError", message }, thread_status: "error" };
}

/** Returns the error of a run whose starting checkpoint was removed after the run was accepted, by the rollback of the run that wrote it. */
async function refusedCheckpoint(
  read: Tx,
  { tenant_id, thread_id, run_id, epoch, temporary }: RunRow,
  head: CheckpointData | null,
  { config: { configurable = {} } }: RunKwargs,
): Promise<ResumeRefusal | undefined> {
  const { checkpoint_id, checkpoint_ns = "" } = configurable;
  // The thread of a stateless run has no earlier checkpoint, and its id is not checked when the run is accepted.
  if (typeof checkpoint_id !== "string" || checkpoint_id === "" || temporary) return undefined;
  // After a lost claim, the run continues from its own checkpoint.
  if (epoch > 1 && head && (JSON.parse(head.metadata) as { run_id?: string }).run_id === run_id) return undefined;
  if (await findCheckpoint(read, { thread_id, checkpoint_ns: String(checkpoint_ns), checkpoint_id })) return undefined;
  const thread = await findThread(read, tenant_id, thread_id);
  const message = `The checkpoint ${checkpoint_id} no longer exists: the run that wrote it was rolled back.`;
  return { error: { error: "CheckpointNotFoundError", message }, thread_status: thread?.idle_status ?? "error" };
}

/** Returns the error of a run with `strict_resume` that resumes interrupts that are not open; undefined if the run can start. */
async function refusedResume(
  read: Tx,
  { tenant_id, thread_id }: RunRow,
  { strict_resume, command }: RunKwargs,
): Promise<ResumeRefusal | undefined> {
  const answers = command?.resume;
  if (!strict_resume || typeof answers !== "object" || answers === null) return undefined;
  const ids = Object.keys(answers);
  if (!ids.every((id) => INTERRUPT_ID.test(id))) return undefined;
  const thread = await findThread(read, tenant_id, thread_id);
  const open = new Set(
    Object.values<{ id: string }[]>(JSON.parse(thread?.interrupts ?? "{}"))
      .flat()
      .map(({ id }) => id),
  );
  const unknown = ids.filter((id) => !open.has(id));
  if (!thread || unknown.length === 0) return undefined;
  const message = `The thread has no open interrupt with the ID ${unknown.slice(0, 3).join(" or ")}.`;
  return { error: { error: "UnknownInterruptError", message }, thread_status: thread.idle_status };
}
