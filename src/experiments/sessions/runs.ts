import type { Caller } from "../../platform/contract/caller.ts";
import type { Database, Tx } from "../../platform/database/database.ts";
import { ApiError } from "../../platform/errors.ts";
import { isoOfMicroseconds } from "../../platform/lib/times.ts";
import type { ExperimentRun, RunQuery, RunStats, RunStatsQuery } from "../contract/runs.ts";
import type { RunQueryV2, RunV2 } from "../contract/v2.ts";
import { readFilters } from "../filter/parse.ts";
import { getDataset, getExperiment } from "../lookups.ts";
import { selectFields, UNRECORDED } from "../serialization/records.ts";
import { selectV2Fields, toRun, toRunV2 } from "../serialization/run-records.ts";
import { experimentsById, experimentsOfDataset } from "../storage/experiments.ts";
import { type FeedbackStatsInput, feedbackAt } from "../storage/feedback.ts";
import { type FullRun, findRun, type RunCursor, type RunSearch, searchRunKeys, searchRuns } from "../storage/runs.ts";
import { computeRunStats, feedbackStats } from "./stats.ts";

/** The official clients expect at most 100 runs in a page of version 1. */
const MAX_PAGE_SIZE = 100;

export const runOperations = ({ read }: Database) => ({
  async query(caller: Caller, body: RunQuery) {
    const fields = body.select;
    const limit = Math.min(body.limit, MAX_PAGE_SIZE);
    const page = { descending: body.order === "desc", cursor: body.cursor, limit, payloads: true };
    const { items, next } = await readPage(read, caller, await toSearch(read, caller, body), page);
    const all = items.map(([run, feedback]) => toRun(run, feedback));
    const selected = new Set([...(fields ?? []), "id"]);
    const runs = fields ? all.map((run) => selectFields(run, (name) => selected.has(name))) : all;
    return { runs, cursors: { next, prev: null }, search_cursors: null, parsed_query: body.filter ?? null };
  },

  async read(caller: Caller, run_id: string): Promise<ExperimentRun> {
    const [run, feedback] = await findWithFeedback(read, caller, run_id);
    return toRun(run, feedback);
  },

  async stats(caller: Caller, body: RunStatsQuery): Promise<RunStats> {
    const search = await toSearch(read, caller, body);
    const runs = search ? await searchRunKeys(read, caller.tenant_id, search) : [];
    const feedback = await feedbackOn(read, runs);
    const { last_run_start_us, ...stats } = computeRunStats(runs);
    return {
      ...stats,
      ...UNRECORDED.first_tokens,
      ...UNRECORDED.tokens,
      median_tokens: null,
      last_run_start_time: last_run_start_us === null ? null : isoOfMicroseconds(last_run_start_us),
      feedback_stats: feedbackStats(feedback),
      run_facets: [],
    };
  },

  async queryV2(caller: Caller, body: RunQueryV2) {
    const { sort_order, cursor, page_size, selects } = body;
    // Inputs and outputs are most of the data of a run.
    const payloads = (selects ?? []).some((field) => field === "INPUTS" || field === "OUTPUTS");
    const page = { descending: sort_order === "DESC", cursor, limit: page_size, payloads };
    const { items, next } = await readPage(read, caller, await toSearchV2(read, caller, body), page);
    return {
      items: items.map(([run, feedback]) => selectV2Fields(toRunV2(run, feedback), selects)),
      has_more: next !== null,
      ...(next !== null && { next_cursor: next }),
    };
  },

  async readV2(caller: Caller, run_id: string, project_id: string, selects?: string[]): Promise<Partial<RunV2>> {
    const [run, feedback] = await findWithFeedback(read, caller, run_id);
    if (run.experiment_id !== project_id) throw new ApiError("run_not_found");
    return selectV2Fields(toRunV2(run, feedback), selects);
  },
});

async function findWithFeedback(
  read: Tx,
  { tenant_id }: Caller,
  run_id: string,
): Promise<[FullRun, FeedbackStatsInput[]]> {
  const run = await findRun(read, tenant_id, run_id);
  if (!run) throw new ApiError("run_not_found");
  return [run, await feedbackOn(read, [run])];
}

/** @param search undefined when no run can match */
async function readPage(
  read: Tx,
  { tenant_id }: Caller,
  search: RunSearch | undefined,
  page: { descending: boolean; cursor: string | undefined; limit: number; payloads: boolean },
): Promise<{ items: [FullRun, FeedbackStatsInput[]][]; next: string | null }> {
  if (!search) return { items: [], next: null };
  const after = page.cursor === undefined ? undefined : readCursor(page.cursor);
  const found = await searchRuns(read, tenant_id, search, { ...page, after, limit: page.limit + 1 });
  const runs = found.slice(0, page.limit);
  const feedback = Map.groupBy(await feedbackOn(read, runs), runKeyText);
  const last = found.length > page.limit ? runs.at(-1) : undefined;
  return { items: runs.map((run) => [run, feedback.get(runKeyText(run)) ?? []]), next: last ? cursorOf(last) : null };
}

/** Undefined when no run can match. */
async function toSearch(read: Tx, { tenant_id }: Caller, body: RunStatsQuery): Promise<RunSearch | undefined> {
  // All uploaded runs are roots of type chain, each in a separate trace.
  if (body.is_root === false || body.parent_run !== undefined) return undefined;
  if (body.run_type !== undefined && body.run_type !== "chain") return undefined;
  const experiments = body.session && (await experimentsById(read, tenant_id, body.session));
  return {
    experiment_no: experiments?.map(({ experiment_no }) => experiment_no),
    id: runIds(body.id, body.trace),
    example_id: body.reference_example,
    from_us: body.start_time,
    to_us: body.end_time,
    has_error: body.error,
    filters: readFilters([body.filter, body.trace_filter, body.tree_filter, body.search_filter], body.query),
  };
}

/** {@link toSearch} for version 2. */
async function toSearchV2(read: Tx, caller: Caller, body: RunQueryV2): Promise<RunSearch | undefined> {
  const { project_ids, reference_dataset_id } = body;
  if ((project_ids === undefined) === (reference_dataset_id === undefined))
    throw new ApiError("invalid_request", { reason: "Set exactly one of project_ids and reference_dataset_id." });
  if (body.is_root === false || (body.run_type !== undefined && body.run_type.toLowerCase() !== "chain"))
    return undefined;
  const experiments = project_ids
    ? await Promise.all(project_ids.map((id) => getExperiment(read, caller, id)))
    : await experimentsOfDataset(read, (await getDataset(read, caller, reference_dataset_id as string)).dataset_no);
  return {
    experiment_no: experiments.map(({ experiment_no }) => experiment_no),
    id: runIds(body.ids, body.trace_id),
    example_id: body.reference_examples,
    from_us: body.min_start_time,
    to_us: body.max_start_time,
    has_error: body.has_error,
    filters: readFilters([body.filter, body.trace_filter, body.tree_filter]),
  };
}

/** The id of the only run of a trace is the id of the trace. */
const runIds = (ids: string[] | undefined, trace: string | undefined): string[] | undefined =>
  trace === undefined ? ids : (ids ?? [trace]).filter((id) => id === trace);

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
