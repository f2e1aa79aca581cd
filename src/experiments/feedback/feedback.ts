import type { Caller } from "../../platform/contract/caller.ts";
import { type Database, readNow, type Tx, writeUnique } from "../../platform/database/database.ts";
import { ApiError, InvalidRequestError } from "../../platform/errors.ts";
import { newId } from "../../platform/lib/ids.ts";
import type { Feedback, FeedbackCreate, FeedbackInput, FeedbackQuery, FeedbackUpdate } from "../contract/feedback.ts";
import { getExperiment } from "../lookups.ts";
import { toFeedback, toJson } from "../serialization/records.ts";
import { refreshKeyStats } from "../sessions/refresh-stats.ts";
import { findExperiment, lockExperiment, markStatsDirty } from "../storage/experiments.ts";
import {
  deleteFeedback,
  type FullFeedback,
  findFeedback,
  insertFeedback,
  listFeedback,
  takenFeedbackIds,
  updateFeedback,
} from "../storage/feedback.ts";
import { rowKeysOf } from "../storage/runs.ts";
import type { FeedbackRow } from "../storage/schema.ts";
import { findTraceRuns } from "../storage/traces.ts";
import { insertMissingConfigs } from "./feedback-configs.ts";

/** Scores and comments. Each change updates the statistics of its key in the same transaction. */
export const feedbackOperations = (database: Database) => ({
  async list(caller: Caller, query: FeedbackQuery): Promise<Feedback[]> {
    return (await listFeedback(database.read, caller.tenant_id, query)).map(toFeedback);
  },

  async read(caller: Caller, feedback_id: string): Promise<Feedback> {
    return toFeedback(await getFeedback(database.read, caller, feedback_id));
  },

  async create(caller: Caller, body: FeedbackCreate): Promise<Feedback> {
    return writeUnique(database, async (tx) => {
      const row = newFeedbackRow(caller.tenant_id, await feedbackTarget(tx, caller, body), body, await readNow(tx));
      if (row.experiment_no !== 0 && !(await lockExperiment(tx, row.experiment_no)))
        throw new ApiError("session_not_found");
      if ((await takenFeedbackIds(tx, [row.feedback_id])).length > 0)
        throw new ApiError("feedback_exists", row as never);
      await insertFeedback(tx, [row]);
      await insertMissingConfigs(tx, caller.tenant_id, [body]);
      await refreshFor(tx, { ...row, traced_run_id: row.run_id });
      return toFeedback(await getFeedback(tx, caller, row.feedback_id));
    });
  },

  async update(caller: Caller, feedback_id: string, body: FeedbackUpdate): Promise<Feedback> {
    return database.write(async (tx) => {
      const before = await lockFeedback(tx, caller, feedback_id);
      const changes: Partial<FeedbackRow> = { modified_us: (await readNow(tx)) * 1000 };
      if (body.score !== undefined) changes.score = body.score;
      if (body.value !== undefined) changes.value = toJson(body.value);
      if (body.comment !== undefined) changes.comment = body.comment;
      if (body.correction !== undefined) changes.correction = toJson(body.correction);
      await updateFeedback(tx, feedback_id, changes);
      await insertMissingConfigs(tx, caller.tenant_id, [{ ...body, key: before.key }]);
      await refreshFor(tx, before);
      return toFeedback(await getFeedback(tx, caller, feedback_id));
    });
  },

  async delete(caller: Caller, feedback_id: string): Promise<void> {
    await database.write(async (tx) => {
      const deleted = await lockFeedback(tx, caller, feedback_id);
      await deleteFeedback(tx, feedback_id);
      await refreshFor(tx, deleted);
    });
  },
});

async function getFeedback(tx: Tx, { tenant_id }: Caller, feedback_id: string): Promise<FullFeedback> {
  const found = await findFeedback(tx, tenant_id, feedback_id);
  if (!found) throw new ApiError("feedback_not_found");
  return found;
}

/** Locks the experiment, then reads the feedback again: another transaction may have deleted both before the lock. */
async function lockFeedback(tx: Tx, caller: Caller, feedback_id: string): Promise<FullFeedback> {
  const { experiment_no } = await getFeedback(tx, caller, feedback_id);
  await lockExperiment(tx, experiment_no);
  return getFeedback(tx, caller, feedback_id);
}

type FeedbackTarget = Pick<FeedbackRow, "experiment_no" | "run_id" | "example_index" | "repetition">;

/**
 * Feedback on an uploaded run changes the statistics of its key at once. The statistics of traces are computed with the next read:
 * `evaluate()` sends feedback for each run.
 */
async function refreshFor(
  tx: Tx,
  { experiment_no, key, traced_run_id }: Pick<FullFeedback, "experiment_no" | "key" | "traced_run_id">,
): Promise<void> {
  if (experiment_no === 0) return;
  if (traced_run_id === null) await refreshKeyStats(tx, experiment_no, key);
  else await markStatsDirty(tx, [experiment_no]);
}

/**
 * The run or the session that feedback is about. The run may be unknown: clients send feedback before the run.
 *
 * @throws ApiError when neither a run nor a session is given, or the session is unknown
 */
export async function feedbackTarget(tx: Tx, caller: Caller, body: FeedbackCreate): Promise<FeedbackTarget> {
  const run_id = body.run_id ?? body.trace_id;
  if (run_id === undefined) {
    if (body.session_id === undefined) {
      const msg = "Value error, run_id must be given, or session_id for feedback on an experiment";
      throw new InvalidRequestError([{ loc: ["body"], msg, type: "value_error" }]);
    }
    const { experiment_no } = await getExperiment(tx, caller, body.session_id);
    return { experiment_no, run_id: null, example_index: null, repetition: null };
  }
  const row = (await rowKeysOf(tx, caller.tenant_id, [run_id])).get(run_id);
  const [traced] = await findTraceRuns(tx, caller.tenant_id, [run_id]);
  if (row) return { ...row, run_id: traced ? run_id : null };
  const session =
    body.session_id === undefined ? undefined : await findExperiment(tx, caller.tenant_id, body.session_id);
  const experiment_no = traced?.experiment_no ?? session?.experiment_no ?? 0;
  return { experiment_no, run_id, example_index: null, repetition: null };
}

/** @param now in milliseconds, the default of missing times */
export function newFeedbackRow(
  tenant_id: string,
  target: FeedbackTarget,
  input: FeedbackInput,
  now: number,
): FeedbackRow {
  const now_us = now * 1000;
  const { feedback_source } = input;
  return {
    feedback_id: input.id ?? newId(),
    tenant_id,
    ...target,
    key: input.key,
    score: input.score ?? null,
    value: toJson(input.value),
    comment: input.comment ?? null,
    correction: toJson(input.correction),
    source: JSON.stringify(feedback_source ? { metadata: null, ...feedback_source } : { type: "api", metadata: null }),
    extra: toJson(input.extra),
    feedback_group_id: input.feedback_group_id ?? null,
    comparative_experiment_id: input.comparative_experiment_id ?? null,
    is_error: input.error === true ? 1 : 0,
    created_us: input.created_at ?? now_us,
    modified_us: input.modified_at ?? input.created_at ?? now_us,
  };
}
