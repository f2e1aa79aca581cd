import type { Caller } from "../platform/contract/caller.ts";
import { readNow, type Tx } from "../platform/database/database.ts";
import { writeUnique } from "../platform/database/write-unique.ts";
import { ApiError, InvalidRequestError } from "../platform/errors.ts";
import type { ExperimentsContext } from "./context.ts";
import type { Feedback, FeedbackCreate, FeedbackQuery, FeedbackUpdate } from "./contract/feedback.ts";
import { rememberConfigs } from "./feedback-configs.ts";
import { newFeedbackRow } from "./feedback-row.ts";
import { getExperiment } from "./lookup.ts";
import { renewKey } from "./renew-stats.ts";
import { lockExperiment, setStats } from "./storage/experiments.ts";
import {
  deleteFeedback,
  type FullFeedback,
  findFeedback,
  insertFeedback,
  listFeedback,
  takenFeedbackIds,
  updateFeedback,
} from "./storage/feedback.ts";
import { findRun } from "./storage/runs.ts";
import type { FeedbackRow } from "./storage/schema.ts";
import { feedbackOf, textOf } from "./wire.ts";

/** Scores and remarks. Each change renews the statistics of its key in the same transaction. */
export class FeedbackRules {
  readonly #context: ExperimentsContext;

  constructor(context: ExperimentsContext) {
    this.#context = context;
  }

  async list(caller: Caller, query: FeedbackQuery): Promise<Feedback[]> {
    const filter = {
      ...query,
      run_id: query.run,
      experiment_id: query.session,
      from_us: query.min_created_at,
      to_us: query.max_created_at,
    };
    return (await listFeedback(this.#context.database.read, caller.tenant_id, filter, query)).map(onWire);
  }

  async read(caller: Caller, feedback_id: string): Promise<Feedback> {
    return onWire(await getFeedback(this.#context.database.read, caller, feedback_id));
  }

  /** On a run when one is named, else on the experiment. */
  async create(caller: Caller, body: FeedbackCreate): Promise<Feedback> {
    return writeUnique(this.#context.database, async (tx) => {
      const row = newFeedbackRow(caller.tenant_id, await placeOf(tx, caller, body), body, await readNow(tx));
      if (!(await lockExperiment(tx, row.experiment_no))) throw new ApiError("session_not_found");
      if ((await takenFeedbackIds(tx, [row.feedback_id])).length > 0)
        throw new ApiError("feedback_exists", row as never);
      await insertFeedback(tx, [row]);
      await rememberConfigs(tx, caller.tenant_id, [body]);
      await setStats(tx, row.experiment_no, await renewKey(tx, row.experiment_no, row.key));
      return onWire(await getFeedback(tx, caller, row.feedback_id));
    });
  }

  async update(caller: Caller, feedback_id: string, body: FeedbackUpdate): Promise<Feedback> {
    return this.#context.database.write(async (tx) => {
      const { experiment_no, key } = await holdFeedback(tx, caller, feedback_id);
      const changes: Partial<FeedbackRow> = { modified_us: (await readNow(tx)) * 1000 };
      if (body.score !== undefined) changes.score = body.score;
      if (body.value !== undefined) changes.value = textOf(body.value);
      if (body.comment !== undefined) changes.comment = body.comment;
      if (body.correction !== undefined) changes.correction = textOf(body.correction);
      await updateFeedback(tx, feedback_id, changes);
      await rememberConfigs(tx, caller.tenant_id, [{ ...body, key }]);
      await setStats(tx, experiment_no, await renewKey(tx, experiment_no, key));
      return onWire(await getFeedback(tx, caller, feedback_id));
    });
  }

  async delete(caller: Caller, feedback_id: string): Promise<void> {
    await this.#context.database.write(async (tx) => {
      const { experiment_no, key } = await holdFeedback(tx, caller, feedback_id);
      await deleteFeedback(tx, feedback_id);
      await setStats(tx, experiment_no, await renewKey(tx, experiment_no, key));
    });
  }
}

const onWire = (row: FullFeedback): Feedback => feedbackOf(row, row);

async function getFeedback(tx: Tx, { tenant_id }: Caller, feedback_id: string): Promise<FullFeedback> {
  const found = await findFeedback(tx, tenant_id, feedback_id);
  if (!found) throw new ApiError("feedback_not_found");
  return found;
}

/** The same, its experiment held. Read again: both may have been removed until it was. */
async function holdFeedback(tx: Tx, caller: Caller, feedback_id: string): Promise<FullFeedback> {
  const { experiment_no } = await getFeedback(tx, caller, feedback_id);
  await lockExperiment(tx, experiment_no);
  return getFeedback(tx, caller, feedback_id);
}

async function placeOf(
  tx: Tx,
  caller: Caller,
  body: FeedbackCreate,
): Promise<Pick<FeedbackRow, "experiment_no" | "ord" | "repetition">> {
  const run_id = body.run_id ?? body.trace_id;
  if (run_id === undefined) {
    if (body.session_id === undefined) {
      const msg = "Value error, run_id must be given, or session_id for feedback on an experiment";
      throw new InvalidRequestError([{ loc: ["body"], msg, type: "value_error" }]);
    }
    const { experiment_no } = await getExperiment(tx, caller, body.session_id);
    return { experiment_no, ord: null, repetition: null };
  }
  const run = await findRun(tx, caller.tenant_id, run_id);
  if (!run) throw new ApiError("run_not_found");
  return { experiment_no: run.experiment_no, ord: run.ord, repetition: run.repetition };
}
