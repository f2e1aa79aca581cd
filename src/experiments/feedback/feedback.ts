import { randomUUID } from "node:crypto";
import type { Caller } from "../../platform/contract/caller.ts";
import { type Database, readNow, type Tx, writeUnique } from "../../platform/database/database.ts";
import { ApiError, InvalidRequestError } from "../../platform/errors.ts";
import { newId } from "../../platform/lib/ids.ts";
import { isoOfMilliseconds } from "../../platform/lib/times.ts";
import type {
  Feedback,
  FeedbackCreate,
  FeedbackInput,
  FeedbackQuery,
  FeedbackUpdate,
} from "../contract/feedback/feedback.ts";
import type { FeedbackToken, FeedbackTokenCreate, TokenFeedback } from "../contract/feedback/feedback-tokens.ts";
import { getExperiment } from "../lookups.ts";
import { toFeedback, toJson } from "../serialization/records.ts";
import { refreshKeyStats } from "../sessions/refresh-stats.ts";
import { findExperiment, lockExperiment, markStatsDirty } from "../storage/experiments.ts";
import {
  announceArrivals,
  awaitArrivals,
  deleteFeedback,
  deleteFeedbackOf,
  type FullFeedback,
  findFeedback,
  insertFeedback,
  listFeedback,
  takenFeedbackIds,
  updateFeedback,
} from "../storage/feedback.ts";
import { findToken, insertTokens, listTokens } from "../storage/feedback-tokens.ts";
import { rowKeysOf } from "../storage/runs.ts";
import type { FeedbackRow } from "../storage/schema.ts";
import type { FeedbackTokenRow } from "../storage/traces/trace-schema.ts";
import { sessionNumbersOf } from "../storage/traces/traces.ts";
import { insertMissingConfigs } from "./feedback-configs.ts";

type Workspace = Pick<Caller, "tenant_id">;

/** Operations on scores and comments. Each change updates the statistics, or marks them as outdated, in the same transaction. */
export const feedbackOperations = (database: Database) => ({
  async list(caller: Caller, query: FeedbackQuery): Promise<Feedback[]> {
    return (await listFeedback(database.read, caller.tenant_id, query)).map(toFeedback);
  },

  async read(caller: Caller, feedback_id: string): Promise<Feedback> {
    return toFeedback(await getFeedback(database.read, caller, feedback_id));
  },

  async create(caller: Caller, body: FeedbackCreate): Promise<Feedback> {
    return writeUnique(database, async (tx) => {
      const row = await storeFeedback(tx, caller, body, { replaces: "same" });
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

/**
 * @param replaces which existing feedback of the workspace is replaced if it has the same id: any, or only that on the same run or session
 * with the same key, because a client may repeat a request whose response it has not received
 * @throws ApiError when the id is taken or the session is unknown; InvalidRequestError when neither a run nor a session is given
 */
async function storeFeedback(
  tx: Tx,
  caller: Workspace,
  body: FeedbackCreate,
  { replaces }: { replaces: "same" | "any" },
): Promise<FeedbackRow> {
  const row = newFeedbackRow(caller.tenant_id, await lockTarget(tx, caller, body), body, await readNow(tx));
  const [taken] = await takenFeedbackIds(tx, [row.feedback_id]);
  if (taken) {
    const mayReplace = taken.tenant_id === row.tenant_id && (replaces === "any" || isSameFeedback(taken, row));
    if (!mayReplace) throw new ApiError("feedback_exists", { feedback_id: row.feedback_id });
    await deleteFeedbackOf(tx, caller.tenant_id, row.feedback_id);
    if (body.created_at === undefined) row.created_us = taken.created_us;
  }
  await insertFeedback(tx, [row]);
  await insertMissingConfigs(tx, caller.tenant_id, [body]);
  await refreshFor(tx, { ...row, traced_run_id: row.run_id });
  return row;
}

/** Locks the session of the target. While this waits for a lock, the run can be stored, or move to another session. */
async function lockTarget(tx: Tx, caller: Workspace, body: FeedbackCreate): Promise<FeedbackTarget> {
  await lockArrivals(tx, caller, [body], new Set());
  const find = async () => feedbackTarget(tx, caller, body, await runsOfFeedback(tx, caller, [body]));
  for (let target = await find(), locked = 0; ; target = await find()) {
    if (target.experiment_no === locked) return target;
    if (!(await lockExperiment(tx, target.experiment_no))) throw new ApiError("session_not_found");
    locked = target.experiment_no;
  }
}

/** Whether both are about the same run or session and have the same key. The session of a run may have changed. */
function isSameFeedback(a: FeedbackRow, b: FeedbackRow): boolean {
  if (a.key !== b.key || a.run_id !== b.run_id) return false;
  if (a.run_id !== null) return true;
  return a.experiment_no === b.experiment_no && a.example_index === b.example_index && a.repetition === b.repetition;
}

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
 * Updates the statistics of the key at once, except for feedback on a traced run: then the next read computes the statistics, because
 * `evaluate()` sends the feedback on each run separately.
 */
async function refreshFor(
  tx: Tx,
  { experiment_no, key, traced_run_id }: Pick<FullFeedback, "experiment_no" | "key" | "traced_run_id">,
): Promise<void> {
  if (experiment_no === 0) return;
  if (traced_run_id === null) await refreshKeyStats(tx, experiment_no, key);
  else await markStatsDirty(tx, [experiment_no]);
}

/** Returns the id of the run that the feedback is about. */
const runOf = ({ run_id, trace_id }: FeedbackCreate): string | undefined => run_id ?? trace_id;

/** Looks up the runs of feedback by id: `rows` contains the keys of experiment rows, and `traced` the sessions of traced runs. */
export async function runsOfFeedback(tx: Tx, { tenant_id }: Workspace, feedback: readonly FeedbackCreate[]) {
  const ids = [...new Set(feedback.flatMap((body) => runOf(body) ?? []))];
  return { rows: await rowKeysOf(tx, tenant_id, ids), traced: await sessionNumbersOf(tx, tenant_id, ids) };
}

/**
 * Called before runs and feedback are stored, and before other locks: a transaction that waits for others must not hold what these need.
 *
 * @param posted ids of the runs that the transaction stores
 */
export async function lockArrivals(
  tx: Tx,
  caller: Workspace,
  feedback: readonly FeedbackCreate[],
  posted: ReadonlySet<string>,
): Promise<void> {
  const others = feedback.filter((body) => !posted.has(runOf(body) ?? ""));
  const { rows, traced } = await runsOfFeedback(tx, caller, others);
  const isKnown = (id: string | undefined) => id === undefined || rows.has(id) || traced.has(id);
  if (!others.every((body) => isKnown(runOf(body)))) await awaitArrivals(tx, caller.tenant_id);
  else if (posted.size > 0) await announceArrivals(tx, caller.tenant_id);
}

/**
 * The run or the session that feedback is about. The run may be unknown, because clients may send feedback before the run.
 *
 * @throws InvalidRequestError when neither a run nor a session is given; ApiError when no run is given and the session is unknown
 */
export async function feedbackTarget(
  tx: Tx,
  caller: Workspace,
  body: FeedbackCreate,
  { rows, traced }: Awaited<ReturnType<typeof runsOfFeedback>>,
): Promise<FeedbackTarget> {
  const run_id = runOf(body);
  if (run_id === undefined) {
    if (body.session_id === undefined) {
      const msg = "Value error, run_id is missing; for feedback on an experiment, set session_id instead";
      throw new InvalidRequestError([{ loc: ["body"], msg, type: "value_error" }]);
    }
    const { experiment_no } = await getExperiment(tx, caller, body.session_id);
    return { experiment_no, run_id: null, example_index: null, repetition: null };
  }
  const row = rows.get(run_id);
  if (row) return { ...row, run_id: traced.has(run_id) ? run_id : null };
  const isKnown = traced.has(run_id) || body.session_id === undefined;
  const session = isKnown ? undefined : await findExperiment(tx, caller.tenant_id, body.session_id as string);
  const experiment_no = traced.get(run_id) ?? session?.experiment_no ?? 0;
  return { experiment_no, run_id, example_index: null, repetition: null };
}

/** @param now the current time in milliseconds, which replaces missing times */
export function newFeedbackRow(
  tenant_id: string,
  target: FeedbackTarget,
  input: FeedbackInput & Pick<FeedbackCreate, "extend_trace_retention">,
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
    extends_retention: input.extend_trace_retention === false ? 0 : 1,
    created_us: input.created_at ?? now_us,
    modified_us: input.modified_at ?? input.created_at ?? now_us,
  };
}

const DEFAULT_TOKEN_MS = 3 * 3_600_000;
const MAX_TOKEN_MS = 3_650 * 86_400_000;

/** Operations on tokens that let web pages send feedback on a run without an API key. */
export const feedbackTokenOperations = (database: Database) => ({
  /** @param base_url the address of this API as the client sees it */
  async create(
    { tenant_id }: Caller,
    body: FeedbackTokenCreate | FeedbackTokenCreate[],
    base_url: string,
  ): Promise<FeedbackToken | FeedbackToken[]> {
    const inputs = [body].flat();
    const rows = await database.write(async (tx) => {
      const now = await readNow(tx);
      const created = inputs.map((input) => ({
        // The token grants access: it must be random, not a time-ordered id.
        token: randomUUID(),
        tenant_id,
        run_id: input.run_id,
        feedback_id: input.id ?? null,
        feedback_key: input.feedback_key,
        expires_at: expiryOf(input, now),
        created_at: now,
      }));
      await insertTokens(tx, created);
      const configs = inputs.map(({ feedback_key: key, feedback_config }) => ({ key, feedback_config }));
      await insertMissingConfigs(tx, tenant_id, configs);
      return created;
    });
    const tokens = rows.map((row) => toToken(row, base_url));
    return Array.isArray(body) ? tokens : (tokens[0] as FeedbackToken);
  },

  async list(
    { tenant_id }: Caller,
    query: { run_id: string; limit: number; offset: number },
    base_url: string,
  ): Promise<FeedbackToken[]> {
    return (await listTokens(database.read, tenant_id, query)).map((row) => toToken(row, base_url));
  },

  /** @throws ApiError when the token is unknown or has expired */
  async send(token: string, { metadata, ...values }: TokenFeedback): Promise<{ message: string }> {
    await writeUnique(database, async (tx) => {
      const row = await findToken(tx, token);
      if (!row) throw new ApiError("feedback_token_not_found");
      const { tenant_id, run_id, feedback_id, feedback_key: key } = row;
      const feedback_source = { type: "api", metadata };
      const body = { ...values, run_id, key, feedback_source, ...(feedback_id !== null && { id: feedback_id }) };
      await storeFeedback(tx, { tenant_id }, body, { replaces: "any" });
    });
    return { message: "Feedback stored" };
  },
});

function expiryOf({ expires_at, expires_in }: FeedbackTokenCreate, now: number): number {
  const { days, hours, minutes } = expires_in ?? { days: 0, hours: 0, minutes: DEFAULT_TOKEN_MS / 60_000 };
  const length = ((days * 24 + hours) * 60 + minutes) * 60_000;
  const expiry = Math.round(expires_at === undefined ? now + length : expires_at / 1000);
  if (expiry > now && expiry <= now + MAX_TOKEN_MS) return expiry;
  const msg = "Value error, the expiration time must be in the future and at most 3650 days from now";
  throw new InvalidRequestError([{ loc: ["body"], msg, type: "value_error" }]);
}

const toToken = ({ token, expires_at }: FeedbackTokenRow, base_url: string): FeedbackToken => ({
  id: token,
  url: `${base_url}/feedback/tokens/${token}`,
  expires_at: isoOfMilliseconds(expires_at),
});
