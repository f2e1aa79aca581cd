import type { Caller } from "../../platform/contract/caller.ts";
import type { Database, Tx } from "../../platform/database/database.ts";
import { ApiError } from "../../platform/errors.ts";
import { percentile } from "../../platform/lib/percentile.ts";
import { isoOfMicroseconds } from "../../platform/lib/times.ts";
import { openAttachmentLink } from "../attachment-links.ts";
import type { ExperimentRun, RunQuery, RunStats, RunStatsQuery } from "../contract/runs.ts";
import type { RunQueryV2, RunV2 } from "../contract/v2/runs.ts";
import { attachmentUrl, selectFields, toAttachmentUrls } from "../serialization/records.ts";
import {
  dottedOrder,
  type NameV2,
  runV2,
  selectedNames,
  toRun,
  UPLOADED_RUN_V2,
} from "../serialization/run-records.ts";
import { type RunRelatives, TRACED_RUN_V2, toTracedRun } from "../serialization/trace-records.ts";
import { type FeedbackStatsInput, feedbackAt, feedbackOfRuns } from "../storage/feedback.ts";
import { type FullRun, findRun, type RunPosition, searchRunKeys, searchRuns } from "../storage/runs.ts";
import { sumOutcomes } from "../storage/traces/outcome-sums.ts";
import {
  attachmentsOf,
  type FullTraceRun,
  feedbackOfMatching,
  findTraceRun,
  outcomesOf,
  runsBelow,
  searchTraceRuns,
  type TraceOutcome,
} from "../storage/traces/trace-search.ts";
import {
  type AttachmentInfo,
  attachmentsBySecret,
  MAX_ERROR_CHARS,
  payloadsOf,
  readAttachment,
} from "../storage/traces/traces.ts";
import { readPosition, writePosition } from "./run-cursor.ts";
import { type AnyRunSearch, toSearch, toSearchV2 } from "./run-search.ts";
import { computeRunStats, feedbackStats, type RunOutcome } from "./stats.ts";

/** The official clients expect at most 100 runs per page in version 1 of the API. */
const MAX_PAGE_SIZE = 100;

/** Returned even if they are not selected, because the Python client cannot read a run without them. */
const ALWAYS_SELECTED = ["id", "name", "run_type", "start_time", "trace_id"];

/** Fields that are not in the row of a run, in capitals. They contain most of its data. */
const PAYLOADS = new Set(["INPUTS", "OUTPUTS", "EVENTS", "EXTRA", "MANIFEST", "SERIALIZED"]);

type Workspace = Pick<Caller, "tenant_id">;

/** Operations on traced runs, and on runs that were uploaded as rows of an experiment. */
export const runOperations = ({ read }: Database) => ({
  /** @param base_url the address of this API as the client sees it, for the links to attachments */
  async query(caller: Caller, body: RunQuery, base_url: string) {
    return queryPage(read, caller, await toSearch(read, caller, body), body, { urlOf: attachmentUrl(base_url) });
  },

  /** @param base_url the address of this API as the client sees it, for the links to attachments */
  async read(caller: Caller, run_id: string, base_url: string): Promise<ExperimentRun> {
    const found = await findWithFeedback(read, caller, run_id);
    return fullRun(read, found, attachmentUrl(base_url));
  },

  async stats(caller: Caller, body: RunStatsQuery): Promise<RunStats> {
    const { uploaded, traced } = await toSearch(read, caller, body);
    const rows = uploaded ? await searchRunKeys(read, caller.tenant_id, uploaded) : [];
    const outcomes = traced && outcomesOf(read, caller.tenant_id, traced);
    // The database sums root runs. Other runs may be nested in each other, so their usage is summed here, each part once.
    const runs = !outcomes || traced.is_root === true ? [] : ((await read.all(outcomes)) as TraceOutcome[]);
    const roots =
      outcomes && traced.is_root === true ? await sumOutcomes(read, outcomes, { with_tokens: true }) : undefined;
    const tokens = roots?.tokens ?? Float64Array.from(runs.flatMap(({ tree_total_tokens }) => tree_total_tokens ?? []));
    const feedback = await feedbackOn(read, rows);
    if (traced) feedback.push(...((await feedbackOfMatching(read, caller.tenant_id, traced)) as typeof feedback));
    const { last_run_start_us, ...stats } = computeRunStats([...rows, ...countedOnce(runs)], roots);
    return {
      ...stats,
      median_tokens: percentile(tokens.sort(), 50),
      last_run_start_time: last_run_start_us === null ? null : isoOfMicroseconds(last_run_start_us),
      feedback_stats: feedbackStats(feedback),
      run_facets: [],
    };
  },

  /** @param base_url the address of the server, for the links to shared runs */
  async queryV2(caller: Caller, body: RunQueryV2, base_url: string) {
    const { sort_order, cursor, page_size, selects } = body;
    const payloads = (selects ?? []).some((field) => PAYLOADS.has(field));
    const feedback = (selects ?? []).includes("FEEDBACK_STATS");
    const page = { descending: sort_order === "DESC", cursor, limit: page_size, payloads, feedback };
    const { items, next } = await readPage(read, caller, await toSearchV2(read, caller, body), page);
    const names = selectedNames(selects);
    return {
      items: await toAnyRunsV2(read, items, base_url, names),
      has_more: next !== null,
      ...(next !== null && { next_cursor: next }),
    };
  },

  async readV2(
    caller: Caller,
    run_id: string,
    { project_id, selects }: { project_id: string; selects?: string[] | undefined },
    base_url: string,
  ): Promise<Partial<RunV2>> {
    const found = await findWithFeedback(read, caller, run_id);
    if (found.run.experiment_id !== project_id) throw new ApiError("run_not_found");
    const [run] = await toAnyRunsV2(read, [found], base_url, selectedNames(selects));
    return run as Partial<RunV2>;
  },

  /**
   * The link in the address of an attachment grants access to it: the official clients fetch attachments without a key.
   *
   * @throws ApiError when the link is wrong or has expired, or the run was deleted
   */
  async findAttachment(link: string): Promise<AttachmentInfo> {
    const found = await openAttachmentLink(link, Date.now(), (id) => attachmentsBySecret(read, id));
    if (!found) throw new ApiError("not_found");
    return { run_no: found.run_no, name: found.name, mime_type: found.mime_type };
  },

  readAttachment: ({ run_no, name }: AttachmentInfo): Promise<Uint8Array> => readAttachment(read, run_no, name),
});

export type FoundRun =
  | { kind: "uploaded"; run: FullRun; feedback: readonly FeedbackStatsInput[] }
  | { kind: "traced"; run: FullTraceRun; feedback: readonly FeedbackStatsInput[] };

export async function findWithFeedback(read: Tx, { tenant_id }: Workspace, run_id: string): Promise<FoundRun> {
  const traced = await findTraceRun(read, tenant_id, run_id);
  if (traced) return { kind: "traced", run: traced, feedback: await feedbackOfRuns(read, tenant_id, [run_id]) };
  const run = await findRun(read, tenant_id, run_id);
  if (!run) throw new ApiError("run_not_found");
  return { kind: "uploaded", run, feedback: await feedbackOn(read, [run]) };
}

interface PageOptions {
  descending: boolean;
  cursor: string | undefined;
  limit: number;
  payloads: boolean;
  /** Whether to read the feedback. Default: true. */
  feedback?: boolean;
}

/** Reads a page of uploaded and traced runs, merged by start time and position in the tree. */
export async function readPage(
  read: Tx,
  { tenant_id }: Workspace,
  { uploaded, traced }: AnyRunSearch,
  { cursor, limit, feedback = true, ...options }: PageOptions,
): Promise<{ items: FoundRun[]; next: string | null }> {
  const page = { ...options, after: cursor === undefined ? undefined : readPosition(cursor), limit: limit + 1 };
  const rows = uploaded ? await searchRuns(read, tenant_id, uploaded, page) : [];
  const runs = traced ? await searchTraceRuns(read, tenant_id, traced, page) : [];
  if (!page.payloads) await readFullErrors(read, runs);
  const found = inOrder([...rows, ...runs], options.descending).slice(0, limit);
  const ofRows = Map.groupBy(feedback ? await feedbackOn(read, rows) : [], runKeyText);
  const ids = feedback ? runs.map(({ run_id }) => run_id) : [];
  const ofRuns = Map.groupBy(await feedbackOfRuns(read, tenant_id, ids), ({ run_id }) => run_id);
  const items = found.map((run): FoundRun => {
    if ("run_no" in run) return { kind: "traced", run, feedback: ofRuns.get(run.run_id) ?? [] };
    return { kind: "uploaded", run, feedback: ofRows.get(runKeyText(run)) ?? [] };
  });
  const last = rows.length + runs.length > limit ? found.at(-1) : undefined;
  return { items, next: last ? writePosition(positionOf(last)) : null };
}

/** Reads the full text of truncated errors from the payloads, because rows contain only the beginning. */
async function readFullErrors(read: Tx, runs: FullTraceRun[]): Promise<void> {
  const cut = runs.filter(({ error }) => error !== null && error.length >= MAX_ERROR_CHARS);
  const payloads = await payloadsOf(
    read,
    cut.map(({ run_no }) => run_no),
  );
  const errors = new Map(payloads.map(({ run_no, error }) => [run_no, error]));
  for (const run of cut) run.full_error = errors.get(run.run_no) ?? null;
}

function inOrder(runs: (FullRun | FullTraceRun)[], descending: boolean): (FullRun | FullTraceRun)[] {
  const sign = descending ? -1 : 1;
  return runs
    .map((run) => ({ run, ...positionOf(run) }))
    .sort((a, b) => sign * (a.start_us - b.start_us || (a.dotted_order < b.dotted_order ? -1 : 1)))
    .map(({ run }) => run);
}

const positionOf = (run: FullRun | FullTraceRun): RunPosition => ({
  start_us: run.start_us,
  dotted_order: "run_no" in run ? run.dotted_order : dottedOrder(run),
});

const toAnyRun = (found: FoundRun, relatives?: RunRelatives): ExperimentRun =>
  found.kind === "uploaded" ? toRun(found.run, found.feedback) : toTracedRun(found.run, found.feedback, relatives);

/** Returns the URL of an attachment of the run with this id. */
type AttachmentUrl = (attachment: { name: string; token: string }, run_id: string) => string;

export const toAnyRunV2 = (found: FoundRun, base_url: string, names: readonly NameV2[]): Partial<RunV2> =>
  found.kind === "uploaded"
    ? runV2(UPLOADED_RUN_V2, { ...found, base_url }, names)
    : runV2(TRACED_RUN_V2, { ...found, base_url }, names);

/** @param base_url the address of the server, for the links to attachments and shared runs */
export async function toAnyRunsV2(
  read: Tx,
  items: readonly FoundRun[],
  base_url: string,
  names: readonly NameV2[],
): Promise<Partial<RunV2>[]> {
  const runs = items.map((found) => toAnyRunV2(found, base_url, names));
  if (!names.includes("attachments")) return runs;
  const urlOf = attachmentUrl(`${base_url}/api/v1`);
  const attachments = await attachmentsOfRuns(read, items);
  return runs.map((run, index) => {
    const { run_id } = (items[index] as FoundRun).run;
    const urls = attachments.get(run_id)?.map((attachment) => [attachment.name, urlOf(attachment)]) ?? [];
    return { ...run, attachments: Object.fromEntries(urls) };
  });
}

/** The attachments of traced runs by run id. Runs without attachments are missing. */
async function attachmentsOfRuns(read: Tx, items: readonly FoundRun[]) {
  const traced = items.flatMap((found) => (found.kind === "traced" ? found.run : []));
  const ids = new Map(traced.map(({ run_no, run_id }) => [run_no, run_id]));
  return Map.groupBy(await attachmentsOf(read, [...ids.keys()]), ({ run_no }) => ids.get(run_no) as string);
}

/** A run with the ids of all runs below it, and with links to its attachments. */
export async function fullRun(read: Tx, found: FoundRun, urlOf: AttachmentUrl): Promise<ExperimentRun> {
  const below = found.kind === "traced" ? await runsBelow(read, found.run) : undefined;
  const [run] = await listedRuns(read, [found], urlOf, below);
  return run as ExperimentRun;
}

/** Runs with links to their attachments. */
export async function listedRuns(
  read: Tx,
  items: readonly FoundRun[],
  urlOf: AttachmentUrl,
  below?: RunRelatives["below"],
): Promise<ExperimentRun[]> {
  const attachments = await attachmentsOfRuns(read, items);
  return items.map((found) => {
    const { run_id } = found.run;
    const urls = toAttachmentUrls(attachments.get(run_id) ?? [], (attachment) => urlOf(attachment, run_id));
    return toAnyRun(found, { below, attachments: urls });
  });
}

interface QueryOptions {
  urlOf: AttachmentUrl;
  /** Changes each run before the fields are selected. */
  adapt?: (run: ExperimentRun) => ExperimentRun;
}

export async function queryPage(
  read: Tx,
  workspace: Workspace,
  search: AnyRunSearch,
  body: RunQuery,
  { urlOf, adapt = (run) => run }: QueryOptions,
) {
  const fields = body.select;
  const limit = Math.min(body.limit, MAX_PAGE_SIZE);
  const payloads = !fields || fields.some((field) => PAYLOADS.has(field.toUpperCase()));
  const feedback = !fields || fields.includes("feedback_stats");
  const page = { descending: body.order === "desc", cursor: body.cursor, limit, payloads, feedback };
  const { items, next } = await readPage(read, workspace, search, page);
  const needsAttachments = !fields || fields.includes("s3_urls");
  const all = needsAttachments ? await listedRuns(read, items, urlOf) : items.map((found) => toAnyRun(found));
  const adapted = all.map(adapt);
  const selected = new Set([...(fields ?? []), ...ALWAYS_SELECTED]);
  const runs = fields ? adapted.map((run) => selectFields(run, (name) => selected.has(name))) : adapted;
  return { runs, cursors: { next, prev: null }, search_cursors: null, parsed_query: body.filter ?? null };
}

/** The tokens and costs of a run include those of the runs below it. Therefore, they are omitted for a run below another counted run. */
function countedOnce(runs: TraceOutcome[]): RunOutcome[] {
  const ids = new Set(runs.map(({ run_id }) => run_id));
  return runs.map((run) => {
    const above = run.dotted_order.split(".").slice(0, -1);
    if (!above.some((segment) => ids.has(segment.slice(-36)))) return run;
    const { start_us, end_us, error, tree_first_token_us } = run;
    return { start_us, end_us, error, tree_first_token_us };
  });
}

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
