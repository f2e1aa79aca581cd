import type { Caller } from "../../platform/contract/caller.ts";
import type { Tx } from "../../platform/database/database.ts";
import { ApiError } from "../../platform/errors.ts";
import type { FeedbackCreate } from "../contract/feedback.ts";
import { feedbackTarget, newFeedbackRow } from "../feedback/feedback.ts";
import { insertMissingConfigs } from "../feedback/feedback-configs.ts";
import {
  deleteFeedbackOf,
  feedbackOfRuns,
  insertFeedback,
  takenFeedbackIds,
  updateFeedback,
} from "../storage/feedback.ts";
import { rowKeysOf } from "../storage/runs.ts";
import type { RunDraft } from "./merge-run.ts";

/**
 * Stores the feedback of a request. Feedback with a known id is replaced, because a request may arrive again.
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
  const changed: number[] = [];
  for (const input of feedback)
    await attempt(`feedback.${input.id}`, async () => {
      const row = newFeedbackRow(caller.tenant_id, await feedbackTarget(tx, caller, input), input, now_ms);
      await deleteFeedbackOf(tx, caller.tenant_id, row.feedback_id);
      if ((await takenFeedbackIds(tx, [row.feedback_id])).length > 0)
        throw new ApiError("feedback_exists", row as never);
      await insertFeedback(tx, [row]);
      await insertMissingConfigs(tx, caller.tenant_id, [input]);
      changed.push(row.experiment_no);
    });
  return changed;
}

/**
 * Attaches feedback to the runs that it names: clients send feedback before its run, and a run becomes a row of its experiment when
 * it ends.
 *
 * @returns the numbers of the sessions that the feedback belonged to
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
    await updateFeedback(tx, feedback_id, { experiment_no: session, ...key });
    changed.push(experiment_no);
  }
  return changed;
}
