import type { Caller } from "../../platform/contract/caller.ts";
import type { Tx } from "../../platform/database/database.ts";
import { ApiError } from "../../platform/errors.ts";
import type { FeedbackCreate } from "../contract/feedback/feedback.ts";
import { feedbackTarget, newFeedbackRow, runsOfFeedback } from "../feedback/feedback.ts";
import { insertMissingConfigs } from "../feedback/feedback-configs.ts";
import {
  deleteFeedbackOf,
  feedbackOfRuns,
  insertFeedback,
  moveFeedback,
  takenFeedbackIds,
} from "../storage/feedback.ts";
import { rowKeysOf } from "../storage/runs.ts";
import type { FeedbackRow } from "../storage/schema.ts";
import type { RunDraft } from "./merge-run.ts";

/**
 * Stores the feedback of a request. Feedback with a known id is replaced, because clients may repeat a request.
 *
 * @returns the numbers of the sessions that have changed
 */
export async function storeFeedback(
  tx: Tx,
  caller: Caller,
  feedback: readonly FeedbackCreate[],
  now_ms: number,
  attempt: (id: string, work: () => Promise<void>) => Promise<void>,
): Promise<number[]> {
  if (feedback.length === 0) return [];
  const runs = await runsOfFeedback(tx, caller, feedback);
  const ids = feedback.flatMap(({ id }) => id ?? []);
  const taken = new Map((await takenFeedbackIds(tx, ids)).map((row) => [row.feedback_id, row.experiment_no]));
  const changed: number[] = [];
  /** By id. If several items have the same id, the last one is stored. */
  const rows = new Map<string, FeedbackRow>();
  for (const input of feedback)
    await attempt(`feedback.${input.id}`, async () => {
      const target = await feedbackTarget(tx, caller, input, runs);
      const row = newFeedbackRow(caller.tenant_id, target, input, now_ms);
      const replaced_in = taken.get(row.feedback_id);
      if (replaced_in !== undefined) {
        if ((await deleteFeedbackOf(tx, caller.tenant_id, row.feedback_id)) === 0)
          throw new ApiError("feedback_exists", { feedback_id: row.feedback_id });
        taken.delete(row.feedback_id);
        changed.push(replaced_in);
      }
      rows.set(row.feedback_id, row);
      changed.push(row.experiment_no);
    });
  await insertFeedback(tx, [...rows.values()]);
  await insertMissingConfigs(
    tx,
    caller.tenant_id,
    feedback.filter(({ id }) => id !== undefined && rows.has(id)),
  );
  return changed;
}

/**
 * Assigns stored feedback to runs that arrive after it, because clients may send feedback before the run.
 *
 * @returns the numbers of the sessions to which the reassigned feedback belonged before
 */
export async function attachFeedback(tx: Tx, tenant_id: string, drafts: RunDraft[]): Promise<number[]> {
  const runs = new Map(drafts.map(({ run }) => [run.run_id, run]));
  const waiting = await feedbackOfRuns(tx, tenant_id, [...runs.keys()]);
  if (waiting.length === 0) return [];
  const rows = await rowKeysOf(tx, tenant_id, [...new Set(waiting.map(({ run_id }) => run_id as string))]);
  const changed: number[] = [];
  for (const { feedback_id, run_id, experiment_no, example_index } of waiting) {
    const session = runs.get(run_id as string)?.experiment_no as number;
    const row = rows.get(run_id as string);
    if (session === experiment_no && (row?.example_index ?? null) === example_index) continue;
    const key = { example_index: row?.example_index ?? null, repetition: row?.repetition ?? null };
    await moveFeedback(tx, { feedback_id, experiment_no: session, ...key });
    changed.push(experiment_no);
  }
  return changed;
}
