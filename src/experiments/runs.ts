import type { Caller } from "../platform/contract/caller.ts";
import type { Tx } from "../platform/database/database.ts";
import { ApiError } from "../platform/errors.ts";
import { isoOfMicroseconds } from "../platform/lib/times.ts";
import type { ExperimentsContext } from "./context.ts";
import type { ExperimentRun, RunQuery, RunStats, RunStatsQuery } from "./contract/runs.ts";
import type { RunQueryV2, RunV2 } from "./contract/v2.ts";
import { readFilters } from "./filter/read-filters.ts";
import { getDataset, getExperiment } from "./lookup.ts";
import { runOf, runV2Of, selectedV2 } from "./run-wire.ts";
import { feedbackStats, figuresOf } from "./stats.ts";
import { experimentsById, experimentsOfDataset } from "./storage/experiments.ts";
import { feedbackAt, type Judgement } from "./storage/feedback.ts";
import { type FullRun, findRun, placesOfRuns, type RunCursor, type RunSearch, searchRuns } from "./storage/runs.ts";
import { UNSAID } from "./wire.ts";

/** Most runs in a page of version 1: what the official clients expect. */
const PAGE = 100;

/** A page of runs, and where the next one begins. */
interface Page<R> {
  items: R[];
  next: string | null;
}

/** The runs of experiments, one by one. */
export class ExperimentRuns {
  readonly #context: ExperimentsContext;

  constructor(context: ExperimentsContext) {
    this.#context = context;
  }

  async query(caller: Caller, body: RunQuery) {
    const fields = body.select;
    const page = { descending: body.order === "desc", cursor: body.cursor, limit: Math.min(body.limit, PAGE) };
    const { items, next } = await this.#page(caller, await this.#search(caller, body), page, true);
    const all = items.map(([run, feedback]) => runOf(run, feedback));
    const wanted = new Set([...(fields ?? []), "id"]);
    const runs = fields ? all.map((run) => only(run, wanted)) : all;
    return { runs, cursors: { next, prev: null }, search_cursors: null, parsed_query: body.filter ?? null };
  }

  async read(caller: Caller, run_id: string): Promise<ExperimentRun> {
    const [run, feedback] = await this.#one(caller, run_id);
    return runOf(run, feedback);
  }

  async stats(caller: Caller, body: RunStatsQuery): Promise<RunStats> {
    const { read } = this.#context.database;
    const search = await this.#search(caller, body);
    const runs = search ? await placesOfRuns(read, caller.tenant_id, search) : [];
    const feedback = await feedbackOn(read, runs);
    const { last_run_start_us, ...figures } = figuresOf(runs);
    return {
      ...figures,
      ...UNSAID.first_tokens,
      ...UNSAID.tokens,
      median_tokens: null,
      last_run_start_time: last_run_start_us === null ? null : isoOfMicroseconds(last_run_start_us),
      feedback_stats: feedbackStats(feedback),
      run_facets: [],
    };
  }

  async queryV2(caller: Caller, body: RunQueryV2) {
    const search = await this.#searchV2(caller, body);
    const page = { descending: body.sort_order === "DESC", cursor: body.cursor, limit: body.page_size };
    const { items, next } = await this.#page(caller, search, page, needsPayloads(body.selects));
    return {
      items: items.map(([run, feedback]) => selectedV2(runV2Of(run, feedback), body.selects)),
      has_more: next !== null,
      ...(next !== null && { next_cursor: next }),
    };
  }

  async readV2(caller: Caller, run_id: string, project_id: string, selects?: string[]): Promise<Partial<RunV2>> {
    const [run, feedback] = await this.#one(caller, run_id);
    if (run.experiment_id !== project_id) throw new ApiError("run_not_found");
    return selectedV2(runV2Of(run, feedback), selects);
  }

  async #one(caller: Caller, run_id: string): Promise<[FullRun, Judgement[]]> {
    const { read } = this.#context.database;
    const run = await findRun(read, caller.tenant_id, run_id);
    if (!run) throw new ApiError("run_not_found");
    return [run, await feedbackOn(read, [run])];
  }

  async #page(
    caller: Caller,
    search: RunSearch | undefined,
    { descending, cursor, limit }: { descending: boolean; cursor: string | undefined; limit: number },
    payloads: boolean,
  ): Promise<Page<[FullRun, Judgement[]]>> {
    if (!search) return { items: [], next: null };
    const { read } = this.#context.database;
    const after = cursor === undefined ? undefined : readCursor(cursor);
    const found = await searchRuns(read, caller.tenant_id, search, { descending, after, limit: limit + 1, payloads });
    const runs = found.slice(0, limit);
    const feedback = Map.groupBy(await feedbackOn(read, runs), placeKey);
    const last = found.length > limit ? runs.at(-1) : undefined;
    return { items: runs.map((run) => [run, feedback.get(placeKey(run)) ?? []]), next: last ? cursorOf(last) : null };
  }

  /** Undefined when nothing can match. */
  async #search(caller: Caller, body: RunStatsQuery): Promise<RunSearch | undefined> {
    // All uploaded runs are roots of type chain, each a trace of its own.
    if (body.is_root === false || body.parent_run !== undefined) return undefined;
    if (body.run_type !== undefined && body.run_type !== "chain") return undefined;
    const ids = body.trace === undefined ? body.id : (body.id ?? [body.trace]).filter((id) => id === body.trace);
    return {
      experiment_no: body.session ? await this.#numbers(caller, body.session) : undefined,
      id: ids,
      example_id: body.reference_example,
      from_us: body.start_time,
      to_us: body.end_time,
      has_error: body.error,
      filters: readFilters([body.filter, body.trace_filter, body.tree_filter, body.search_filter], body.query),
    };
  }

  async #searchV2(caller: Caller, body: RunQueryV2): Promise<RunSearch | undefined> {
    const { project_ids, reference_dataset_id } = body;
    if ((project_ids === undefined) === (reference_dataset_id === undefined))
      throw new ApiError("invalid_request", { reason: "Set exactly one of project_ids and reference_dataset_id." });
    if (body.is_root === false || (body.run_type !== undefined && body.run_type.toLowerCase() !== "chain"))
      return undefined;
    const { read } = this.#context.database;
    const experiments = project_ids
      ? await Promise.all(project_ids.map((id) => getExperiment(read, caller, id)))
      : await experimentsOfDataset(read, (await getDataset(read, caller, reference_dataset_id as string)).dataset_no);
    const { trace_id, ids } = body;
    return {
      experiment_no: experiments.map(({ experiment_no }) => experiment_no),
      id: trace_id === undefined ? ids : (ids ?? [trace_id]).filter((id) => id === trace_id),
      example_id: body.reference_examples,
      from_us: body.min_start_time,
      to_us: body.max_start_time,
      has_error: body.has_error,
      filters: readFilters([body.filter, body.trace_filter, body.tree_filter]),
    };
  }

  async #numbers({ tenant_id }: Caller, ids: string[]): Promise<number[]> {
    const found = await experimentsById(this.#context.database.read, tenant_id, ids);
    return found.map(({ experiment_no }) => experiment_no);
  }
}

/** Inputs and outputs are most of a run; previews do without them. */
const needsPayloads = (selects: string[] | undefined): boolean =>
  (selects ?? []).some((field) => field === "INPUTS" || field === "OUTPUTS");

const only = <T extends object>(record: T, fields: ReadonlySet<string>): Partial<T> =>
  Object.fromEntries(Object.entries(record).filter(([name]) => fields.has(name))) as Partial<T>;

type Place = { experiment_no: number; ord: number | null; repetition: number | null };

export const placeKey = ({ experiment_no, ord, repetition }: Place): string => `${experiment_no}/${ord}/${repetition}`;

/** The feedback on these runs. */
async function feedbackOn(tx: Tx, runs: readonly Place[]): Promise<(Judgement & Place)[]> {
  const places = new Set(runs.map(placeKey));
  const experiments = [...new Set(runs.map(({ experiment_no }) => experiment_no))];
  const ords = [...new Set(runs.map(({ ord }) => ord as number))];
  if (ords.length === 0) return [];
  return (await feedbackAt(tx, experiments, ords)).filter((feedback) => places.has(placeKey(feedback)));
}

/** Opaque to clients: the start and the id of the last run of a page. */
const cursorOf = ({ start_us, run_id }: RunCursor): string =>
  Buffer.from(JSON.stringify([start_us, run_id])).toString("base64url");

function readCursor(cursor: string): RunCursor {
  try {
    const [start_us, run_id] = JSON.parse(Buffer.from(cursor, "base64url").toString());
    if (Number.isSafeInteger(start_us) && typeof run_id === "string") return { start_us, run_id };
  } catch {
    // Said below.
  }
  throw new ApiError("bad_cursor");
}
