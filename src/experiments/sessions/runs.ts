import type { Caller } from "../../platform/contract/caller.ts";
import type { Database, Tx } from "../../platform/database/database.ts";
import { ApiError } from "../../platform/errors.ts";
import { isoOfMicroseconds } from "../../platform/lib/times.ts";
import type { ExperimentRun, RunQuery, RunStats, RunStatsQuery } from "../contract/runs.ts";
import type { RunQueryV2, RunV2 } from "../contract/v2.ts";
import { selectFields } from "../serialization/records.ts";
import { selectV2Fields, toRun, toRunV2 } from "../serialization/run-records.ts";
import { toTracedRun, toTracedRunV2 } from "../serialization/trace-records.ts";
import { percentile } from "../statistics/describe.ts";
import { type FeedbackStatsInput, feedbackAt, feedbackOfRuns } from "../storage/feedback.ts";
import { type FullRun, findRun, type RunCursor, searchRunKeys, searchRuns } from "../storage/runs.ts";
import {
  attachmentsOf,
  type FullTraceRun,
  findTraceRun,
  runsBelow,
  searchTraceOutcomes,
  searchTraceRuns,
  type TraceOutcome,
} from "../storage/trace-search.ts";
import { type AttachmentInfo, findAttachment, readAttachment } from "../storage/traces.ts";
import { type AnyRunSearch, toSearch, toSearchV2 } from "./run-search.ts";
import { computeRunStats, feedbackStats, type RunOutcome } from "./stats.ts";

/** The official clients expect at most 100 runs in a page of version 1. */
const MAX_PAGE_SIZE = 100;

/** The Python client cannot read a run without them, whatever its caller selects. */
const ALWAYS_SELECTED = ["id", "name", "run_type", "start_time", "trace_id"];

/** The fields of version 2 that are not in the row of a run. They are most of its data. */
const PAYLOADS = new Set(["INPUTS", "OUTPUTS", "EVENTS", "EXTRA", "MANIFEST", "ERROR"]);

/** Runs of traces, and runs that were uploaded as the rows of an experiment. */
export const runOperations = ({ read }: Database) => ({
  async query(caller: Caller, body: RunQuery) {
    const fields = body.select;
    const limit = Math.min(body.limit, MAX_PAGE_SIZE);
    const page = { descending: body.order === "desc", cursor: body.cursor, limit, payloads: true };
    const { items, next } = await readPage(read, caller, await toSearch(read, caller, body), page);
    const all = items.map((found) =>
      found.kind === "uploaded" ? toRun(found.run, found.feedback) : toTracedRun(found.run, found.feedback),
    );
    const selected = new Set([...(fields ?? []), ...ALWAYS_SELECTED]);
    const runs = fields ? all.map((run) => selectFields(run, (name) => selected.has(name))) : all;
    return { runs, cursors: { next, prev: null }, search_cursors: null, parsed_query: body.filter ?? null };
  },

  /** @param base_url the address of this API as the client sees it, for the links to attachments */
  async read(caller: Caller, run_id: string, base_url: string): Promise<ExperimentRun> {
    const found = await findWithFeedback(read, caller, run_id);
    if (found.kind === "uploaded") return toRun(found.run, found.feedback);
    const attachments = (await attachmentsOf(read, found.run.run_no)).map(({ name, mime_type, token }) => [
      `attachment.${name}`,
      { presigned_url: `${base_url}/public/attachments/${token}`, mime_type },
    ]);
    const relatives = { below: await runsBelow(read, found.run), attachments: Object.fromEntries(attachments) };
    return toTracedRun(found.run, found.feedback, relatives);
  },

  async stats(caller: Caller, body: RunStatsQuery): Promise<RunStats> {
    const { uploaded, traced } = await toSearch(read, caller, body);
    const rows = uploaded ? await searchRunKeys(read, caller.tenant_id, uploaded) : [];
    const runs = await searchTraceOutcomes(read, caller.tenant_id, traced);
    const ids = runs.map(({ run_id }) => run_id);
    const feedback = [...(await feedbackOn(read, rows)), ...(await feedbackOfRuns(read, caller.tenant_id, ids))];
    const { last_run_start_us, ...stats } = computeRunStats([...rows, ...countedOnce(runs)]);
    return {
      ...stats,
      median_tokens: medianOf(runs.flatMap(({ tree_total_tokens }) => tree_total_tokens ?? [])),
      last_run_start_time: last_run_start_us === null ? null : isoOfMicroseconds(last_run_start_us),
      feedback_stats: feedbackStats(feedback),
      run_facets: [],
    };
  },

  async queryV2(caller: Caller, body: RunQueryV2) {
    const { sort_order, cursor, page_size, selects } = body;
    const payloads = (selects ?? []).some((field) => PAYLOADS.has(field));
    const page = { descending: sort_order === "DESC", cursor, limit: page_size, payloads };
    const { items, next } = await readPage(read, caller, await toSearchV2(read, caller, body), page);
    return {
      items: items.map((found) => selectV2Fields(toAnyRunV2(found), selects)),
      has_more: next !== null,
      ...(next !== null && { next_cursor: next }),
    };
  },

  async readV2(caller: Caller, run_id: string, project_id: string, selects?: string[]): Promise<Partial<RunV2>> {
    const found = await findWithFeedback(read, caller, run_id);
    if (found.run.experiment_id !== project_id) throw new ApiError("run_not_found");
    return selectV2Fields(toAnyRunV2(found), selects);
  },

  /**
   * The token in the address of an attachment grants access to it: the official clients fetch attachments without a key.
   *
   * @throws ApiError when the token is unknown, for example because the run was deleted
   */
  async findAttachment(token: string): Promise<AttachmentInfo> {
    const found = await findAttachment(read, token);
    if (!found) throw new ApiError("not_found");
    return found;
  },

  readAttachment: ({ run_no, name }: AttachmentInfo): Promise<Uint8Array> => readAttachment(read, run_no, name),
});

type FoundRun =
  | { kind: "uploaded"; run: FullRun; feedback: FeedbackStatsInput[] }
  | { kind: "traced"; run: FullTraceRun; feedback: FeedbackStatsInput[] };

async function findWithFeedback(read: Tx, { tenant_id }: Caller, run_id: string): Promise<FoundRun> {
  const traced = await findTraceRun(read, tenant_id, run_id);
  if (traced) return { kind: "traced", run: traced, feedback: await feedbackOfRuns(read, tenant_id, [run_id]) };
  const run = await findRun(read, tenant_id, run_id);
  if (!run) throw new ApiError("run_not_found");
  return { kind: "uploaded", run, feedback: await feedbackOn(read, [run]) };
}

/** A page of both kinds of runs, merged by start and id. */
async function readPage(
  read: Tx,
  { tenant_id }: Caller,
  { uploaded, traced }: AnyRunSearch,
  { cursor, limit, ...options }: { descending: boolean; cursor: string | undefined; limit: number; payloads: boolean },
): Promise<{ items: FoundRun[]; next: string | null }> {
  const page = { ...options, after: cursor === undefined ? undefined : readCursor(cursor), limit: limit + 1 };
  const rows = uploaded ? await searchRuns(read, tenant_id, uploaded, page) : [];
  const runs = await searchTraceRuns(read, tenant_id, traced, page);
  const found = inOrder([...rows, ...runs], options.descending).slice(0, limit);
  const ofRows = Map.groupBy(await feedbackOn(read, rows), runKeyText);
  const ids = runs.map(({ run_id }) => run_id);
  const ofRuns = Map.groupBy(await feedbackOfRuns(read, tenant_id, ids), ({ run_id }) => run_id);
  const items = found.map((run): FoundRun => {
    if ("run_no" in run) return { kind: "traced", run, feedback: ofRuns.get(run.run_id) ?? [] };
    return { kind: "uploaded", run, feedback: ofRows.get(runKeyText(run)) ?? [] };
  });
  const last = rows.length + runs.length > limit ? found.at(-1) : undefined;
  return { items, next: last ? cursorOf(last) : null };
}

function inOrder<Run extends RunCursor>(runs: Run[], descending: boolean): Run[] {
  const sign = descending ? -1 : 1;
  return runs.sort((a, b) => sign * (a.start_us - b.start_us || (a.run_id < b.run_id ? -1 : 1)));
}

const toAnyRunV2 = (found: FoundRun): RunV2 =>
  found.kind === "uploaded" ? toRunV2(found.run, found.feedback) : toTracedRunV2(found.run, found.feedback);

/** The tokens and costs of a run include those below it: a run counts without them if a run above it is counted. */
function countedOnce(runs: TraceOutcome[]): RunOutcome[] {
  const ids = new Set(runs.map(({ run_id }) => run_id));
  return runs.map((run) => {
    const above = run.dotted_order.split(".").slice(0, -1);
    if (!above.some((segment) => ids.has(segment.slice(-36)))) return run;
    const { start_us, end_us, error, tree_first_token_us } = run;
    return { start_us, end_us, error, tree_first_token_us };
  });
}

const medianOf = (values: number[]): number | null => percentile(Float64Array.from(values).sort(), 50);

type FeedbackRunKey = { experiment_no: number; example_index: number | null; repetition: number | null };

export const runKeyText = ({ experiment_no, example_index, repetition }: FeedbackRunKey): string =>
  `${experiment_no}/${example_index}/${repetition}`;

async function feedbackOn(tx: Tx, runs: readonly FeedbackRunKey[]): Promise<(FeedbackStatsInput & FeedbackRunKey)[]> {
  const keys = new Set(runs.map(runKeyText));
  const experiments = [...new Set(runs.map(({ experiment_no }) => experiment_no))];
  const example_indexes = [...new Set(runs.map(({ example_index }) => example_index as number))];
  if (example_indexes.length === 0) return [];
  return (await feedbackAt(tx, experiments, example_indexes)).filter((feedback) => keys.has(runKeyText(feedback)));
}

const cursorOf = ({ start_us, run_id }: RunCursor): string =>
  Buffer.from(JSON.stringify([start_us, run_id])).toString("base64url");

function readCursor(cursor: string): RunCursor {
  try {
    const [start_us, run_id] = JSON.parse(Buffer.from(cursor, "base64url").toString());
    if (Number.isSafeInteger(start_us) && typeof run_id === "string") return { start_us, run_id };
  } catch {
    // The error below reports it.
  }
  throw new ApiError("bad_cursor");
}
