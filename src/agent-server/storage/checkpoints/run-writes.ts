import type { Tx } from "../../../platform/database/database.ts";
import type { WriteData } from "../../graph-hosts/checkpoint-requests.ts";

/** Returns the writes of a run on a root checkpoint. */
export const findWritesOfRun = (
  tx: Tx,
  { run_id, thread_id, checkpoint_id }: { run_id: string; thread_id: string; checkpoint_id: string },
): Promise<Pick<WriteData, "task_id" | "channel">[]> =>
  tx.all(
    tx.k
      .selectFrom("checkpoint_writes")
      .select(["task_id", "channel"])
      .where("thread_id", "=", thread_id)
      .where("checkpoint_ns", "=", "")
      .where("checkpoint_id", "=", checkpoint_id)
      .where("run_id", "=", run_id),
  );

/** Whether a run has stored a root checkpoint, or writes on it. */
export async function hasPartIn(
  tx: Tx,
  { run_id, thread_id }: { run_id: string; thread_id: string },
  checkpoint_id: string,
): Promise<boolean> {
  const query = tx.k
    .selectFrom("checkpoints")
    .select("run_id")
    .where("thread_id", "=", thread_id)
    .where("checkpoint_ns", "=", "")
    .where("checkpoint_id", "=", checkpoint_id);
  if ((await tx.first(query))?.run_id === run_id) return true;
  return (await findWritesOfRun(tx, { run_id, thread_id, checkpoint_id })).length > 0;
}

/** The task to which LangGraph assigns the writes of a command. */
const NULL_TASK = "00000000-0000-0000-0000-000000000000";

/** Whether a task has taken a resume value of the run. Until then, LangGraph stores the value for its null task. */
export async function hasConsumedResume(
  tx: Tx,
  { run_id, thread_id }: { run_id: string; thread_id: string },
): Promise<boolean> {
  const query = tx.k
    .selectFrom("checkpoint_writes")
    .select("idx")
    .where("thread_id", "=", thread_id)
    .where("run_id", "=", run_id)
    .where("channel", "=", "__resume__")
    .where("task_id", "<>", NULL_TASK);
  return (await tx.first(query.limit(1))) !== undefined;
}
