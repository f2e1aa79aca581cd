import { sql } from "kysely";
import type { Tx } from "../../src/platform/database/database.ts";

export interface Violation {
  rule: string;
  rows: unknown[];
}

/** What must hold of the rows whenever nothing is running, however often the server was killed. */
const RULES: Record<string, string> = {
  "no run is pending or running": "select run_id, status from runs where status in ('pending', 'running')",
  "no thread is busy": "select thread_id from threads where status = 'busy'",
  "an ended run has its time and a claimed one its output": `select run_id, status from runs
     where ended_at is null or (status <> 'interrupted' and output is null)`,
  "events are numbered 1..n": `select run_id, count(*) as n, max(seq) as last from run_events
     group by run_id having count(*) <> max(seq) or min(seq) <> 1`,
  "a step of a run is committed once": `select run_id, checkpoint_ns, parent_checkpoint_id, count(*) as n from checkpoints
     where run_id is not null group by run_id, checkpoint_ns, parent_checkpoint_id having count(*) > 1`,
  // The IDs are ordered by time, on one machine.
  "no checkpoint of a run is later than one of a later claim": `select a.run_id, a.checkpoint_id from checkpoints a
     join checkpoints b on b.run_id = a.run_id and b.checkpoint_ns = a.checkpoint_ns
     where a.epoch < b.epoch and a.checkpoint_id > b.checkpoint_id`,
  "a checkpoint belongs to a thread":
    "select thread_id from checkpoints where thread_id not in (select thread_id from threads)",
  "a value belongs to a thread":
    "select thread_id from checkpoint_values where thread_id not in (select thread_id from threads)",
  // LangGraph files the update of a command under the null task of a checkpoint which, on a new thread, it never stores.
  "a write of a task belongs to a checkpoint": `select w.* from checkpoint_writes w
     where task_id <> '00000000-0000-0000-0000-000000000000' and not exists
     (select 1 from checkpoints c where c.thread_id = w.thread_id and c.checkpoint_ns = w.checkpoint_ns and c.checkpoint_id = w.checkpoint_id)`,
  "an assistant has its versions":
    "select assistant_id from assistants where assistant_id not in (select assistant_id from assistant_versions)",
  "an event belongs to a run": "select distinct run_id from run_events where run_id not in (select run_id from runs)",
};

/** The rules that the rows break. */
export async function violations(tx: Tx): Promise<Violation[]> {
  const broken: Violation[] = [];
  for (const [rule, query] of Object.entries(RULES)) {
    const rows = await tx.all(sql.raw(query).compile(tx.k));
    if (rows.length > 0) broken.push({ rule, rows: rows.slice(0, 5) });
  }
  return broken;
}
