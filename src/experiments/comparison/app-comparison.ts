import type { Caller } from "../../platform/contract/caller.ts";
import { cutPreview } from "../../platform/contract/preview.ts";
import type { Database, Tx } from "../../platform/database/database.ts";
import { ApiError } from "../../platform/errors.ts";
import type {
  ComparedCell,
  ComparedRow,
  ComparedRows as ComparedRowsPage,
  ComparedRowsQuery,
  Distribution,
  DistributionsQuery,
} from "../contract/app-comparison.ts";
import { readFilters } from "../filter/parse.ts";
import { getDataset, readExperiments } from "../lookups.ts";
import { parseJson } from "../serialization/records.ts";
import { meanVector, runScores, secondsOf } from "../sessions/stats.ts";
import { describe } from "../statistics/describe.ts";
import { changesOf } from "../statistics/paired.ts";
import { listExampleIds, searchExampleIndexes, type VersionedExample } from "../storage/examples.ts";
import { feedbackAt, type ShownFeedback } from "../storage/feedback.ts";
import { lowerIsBetterKeys } from "../storage/feedback-configs.ts";
import { type RunWithOutputs, runsAt, searchRunKeys } from "../storage/runs.ts";
import type { DatasetRow, ExperimentRow } from "../storage/schema.ts";
import { EMPTY_VECTOR, listVectors, type VectorName } from "../storage/score-vectors.ts";
import {
  examplesByIndex,
  findDeletedIndexes,
  findExampleIndexes,
  intersect,
  numbersOf,
  sortIndexes,
} from "./example-indexes.ts";
import { contentsOfRuns, exampleOfRuns } from "./examples-with-runs.ts";

const MAX_ERROR_CHARS = 200;

/** The table of the compare page. It contains previews instead of full texts: a page of 100 × 10 cells is 0.4 MB instead of 6 MB. */
export const comparedRowsOperations = (database: Database) => ({
  async read(caller: Caller, dataset_id: string, body: ComparedRowsQuery): Promise<ComparedRowsPage> {
    const dataset = await getDataset(database.read, caller, dataset_id);
    const experiments = await readExperiments(database, caller, dataset.dataset_no, body.session_ids);
    for (const session_id of referencedSessions(body))
      if (!experiments.some(({ experiment_id }) => experiment_id === session_id))
        throw new ApiError("session_elsewhere", { session_id });
    const compared = { dataset, experiments, deleted: await findDeletedIndexes(database.read, dataset) };
    const all = await findExampleIndexes(database.read, caller, dataset, experiments, { filters: body.filters });
    const matching = await filterIndexes(database.read, compared, all, body);
    const indexes = body.order ? await sortBy(database.read, compared, matching, body.order) : matching;
    return {
      total: indexes.length,
      position:
        body.example_id === undefined ? null : await positionOf(database.read, compared, indexes, body.example_id),
      rows: await rowsAt(database.read, compared, indexes.slice(body.offset, body.offset + body.limit), body.preview),
    };
  },
});

const referencedSessions = ({ scores = [], change, failed = [], order }: ComparedRowsQuery): string[] => [
  ...scores.map(({ session_id }) => session_id),
  ...failed,
  ...[change, order].flatMap((reference) => reference?.session_id ?? []),
];

async function positionOf(
  tx: Tx,
  { dataset }: ComparedExperiments,
  indexes: number[],
  example_id: string,
): Promise<number | null> {
  const example = (await listExampleIds(tx, dataset.dataset_no)).find((known) => known.example_id === example_id);
  const position = example ? indexes.indexOf(example.example_index) : -1;
  return position === -1 ? null : position;
}

async function rowsAt(
  tx: Tx,
  { dataset, experiments }: ComparedExperiments,
  indexes: number[],
  preview: ComparedRowsQuery["preview"],
): Promise<ComparedRow[]> {
  if (indexes.length === 0) return [];
  const numbers = numbersOf(experiments);
  const examples = await examplesByIndex(tx, dataset.dataset_no, indexes);
  const cellKey = ({ experiment_no, example_index }: { experiment_no: number; example_index: number | null }) =>
    `${experiment_no} ${example_index}`;
  const found = await runsAt(tx, numbers, indexes, preview?.outputs !== undefined);
  const contentOf = await contentsOfRuns(tx, dataset.dataset_no, examples, found);
  const runs = Map.groupBy(found, cellKey);
  const feedback = Map.groupBy(await feedbackAt(tx, numbers, indexes), cellKey);
  return indexes.flatMap((example_index) => {
    const newest = examples.get(example_index);
    if (!newest) return [];
    const keys = numbers.map((experiment_no) => cellKey({ experiment_no, example_index }));
    const ofRow = keys.flatMap((key) => runs.get(key) ?? []);
    const example = exampleOfRuns(newest, ofRow, contentOf);
    const cells = keys.map((key) => cellOf(example, runs.get(key) ?? [], feedback.get(key) ?? [], preview?.outputs));
    const expected = parseJson(example.outputs);
    return {
      example_id: example.example_id,
      number: example_index + 1,
      inputs_preview: cutPreview(parseJson(example.inputs) ?? {}, "inputs", preview?.inputs),
      expected_preview: expected && cutPreview(expected, "outputs", preview?.outputs),
      cells,
    };
  });
}

function cellOf(
  { version }: VersionedExample,
  runs: RunWithOutputs[],
  feedback: ShownFeedback[],
  outputs_key: string | undefined,
): ComparedCell | null {
  const [first] = runs;
  if (!first) return null;
  const failed = runs.filter(({ error }) => error !== null);
  const timed = runs.filter(({ end_us }) => end_us !== null);
  const scores: Record<string, number> = {};
  const labels: Record<string, string> = {};
  for (const [key, rows] of Map.groupBy(feedback, ({ key }) => key)) {
    const [score] = meanVector(runScores(rows).map((score) => ({ ...score, example_index: 0 })));
    if (score !== undefined) scores[key] = score;
    const label = rows.find(({ value }) => value?.startsWith('"'))?.value;
    if (label) labels[key] = JSON.parse(label) as string;
  }
  return {
    runs: runs.length,
    errors: failed.length,
    error: failed[0]?.error?.slice(0, MAX_ERROR_CHARS).toWellFormed() ?? null,
    outputs_preview: outputsPreview(first, outputs_key),
    latency_s: timed.length === 0 ? null : timed.reduce((sum, run) => sum + secondsOf(run), 0) / timed.length,
    is_earlier_version: runs.some(({ example_version }) => example_version < version),
    scores,
    labels,
  };
}

/** The stored preview, or the value of a key of the outputs. */
function outputsPreview(run: RunWithOutputs, key: string | undefined): string | null {
  const outputs = key === undefined ? undefined : parseJson(run.outputs ?? null);
  return outputs ? cutPreview(outputs, "outputs", key) : run.outputs_preview;
}

/** The experiments of a comparison; the first is the baseline. */
interface ComparedExperiments {
  dataset: DatasetRow;
  experiments: ExperimentRow[];
  deleted: readonly number[];
}

/** Returns the example indexes that meet all conditions. Only `text` reads runs and examples; the other conditions read vectors. */
async function filterIndexes(
  tx: Tx,
  compared: ComparedExperiments,
  indexes: number[],
  { scores = [], change, failed, text }: ComparedRowsQuery,
): Promise<number[]> {
  let matching = indexes;
  for (const { session_id, key, min = -Infinity, max = Infinity } of scores) {
    const values = await loadVector(tx, compared, session_id, { kind: "score", key });
    // A missing score is NaN, which no range contains.
    matching = matching.filter((index) => (values[index] as number) >= min && (values[index] as number) <= max);
  }
  if (change) matching = intersect(matching, await changedExamples(tx, compared, change));
  if (failed) {
    const errors = await Promise.all(failed.map((id) => loadVector(tx, compared, id, { kind: "error", key: "" })));
    matching = matching.filter((index) => errors.some((values) => (values[index] as number) > 0));
  }
  if (text?.trim()) matching = intersect(matching, await searchText(tx, compared, text));
  return matching;
}

async function changedExamples(
  tx: Tx,
  compared: ComparedExperiments,
  { session_id, key, direction }: NonNullable<ComparedRowsQuery["change"]>,
): Promise<{ example_index: number }[]> {
  const baseline = compared.experiments[0] as ExperimentRow;
  const name = { kind: "score", key } as const;
  const from = await loadVector(tx, compared, baseline.experiment_id, name);
  const to = await loadVector(tx, compared, session_id, name);
  const lower = await lowerIsBetterKeys(tx, compared.dataset.tenant_id);
  const { improved, regressed } = changesOf(from, to, { lower_is_better: lower.has(key) });
  const changes = { changed: [...improved, ...regressed], better: improved, worse: regressed }[direction];
  return changes.map((example_index) => ({ example_index }));
}

/** Finds examples with all words in one run, or in the inputs, expected outputs and metadata of the example. */
async function searchText(
  tx: Tx,
  { dataset, experiments }: ComparedExperiments,
  text: string,
): Promise<{ example_index: number }[]> {
  const filters = readFilters([], text);
  const runs = await searchRunKeys(tx, dataset.tenant_id, { experiment_no: numbersOf(experiments), filters });
  return [...runs, ...(await searchExampleIndexes(tx, dataset.dataset_no, filters))];
}

async function sortBy(
  tx: Tx,
  compared: ComparedExperiments,
  indexes: number[],
  { by, key = "", session_id, delta, descending }: NonNullable<ComparedRowsQuery["order"]>,
): Promise<number[]> {
  const name = by === "score" ? ({ kind: by, key } as const) : ({ kind: by, key: "" } as const);
  const values = await loadVector(tx, compared, session_id, name);
  const baseline = compared.experiments[0] as ExperimentRow;
  const from = delta ? await loadVector(tx, compared, baseline.experiment_id, name) : undefined;
  const valueAt = (index: number) => (values[index] ?? Number.NaN) - (from ? (from[index] ?? Number.NaN) : 0);
  return sortIndexes(indexes, valueAt, descending);
}

/** Returns an empty vector if the experiment has no vector with this name. */
async function loadVector(
  tx: Tx,
  { experiments, deleted }: ComparedExperiments,
  session_id: string,
  { kind, key }: VectorName,
): Promise<Float64Array> {
  const experiment = experiments.find(({ experiment_id }) => experiment_id === session_id);
  if (!experiment) return EMPTY_VECTOR;
  const [found] = await listVectors(tx, [experiment.experiment_no], { kind, keys: [key] }, deleted);
  return found?.values ?? EMPTY_VECTOR;
}

const BINS = 10;

/** Histograms of the scores of experiments. An example with several runs counts once, with its mean. */
export const distributionOperations = (database: Database) => ({
  async read(caller: Caller, dataset_id: string, { session_ids }: DistributionsQuery): Promise<Distribution[]> {
    const dataset = await getDataset(database.read, caller, dataset_id);
    const experiments = await readExperiments(database, caller, dataset.dataset_no, session_ids);
    const numbers = numbersOf(experiments);
    const vectors = await listVectors(
      database.read,
      numbers,
      { kind: "score" },
      await findDeletedIndexes(database.read, dataset),
    );
    const byKey = Map.groupBy(vectors, ({ key }) => key);
    return [...byKey.keys()].sort().flatMap((key) => {
      const ofKey = new Map(byKey.get(key)?.map(({ experiment_no, values }) => [experiment_no, values]));
      const ordered = numbers.map((no) => ofKey.get(no) ?? EMPTY_VECTOR);
      return distributionOf(key, ordered);
    });
  },
});

/** Returns one distribution, or none if no experiment has a score. A missing score is NaN. */
function distributionOf(key: string, vectors: Float64Array[]): Distribution[] {
  const all = vectors.map(describe).filter(({ n }) => n > 0);
  if (all.length === 0) return [];
  const low = Math.min(...all.map(({ min }) => min as number));
  const high = Math.max(...all.map(({ max }) => max as number));
  const is_binary = vectors.every((values) =>
    values.every((value) => value === 0 || value === 1 || Number.isNaN(value)),
  );
  // The range of binary scores is 0 to 1, even if only one of the values occurs.
  const [from, to] = is_binary ? [0, 1] : [low, high];
  return [{ key, low: from, high: to, is_binary, counts: vectors.map((values) => countsOf(values, from, to)) }];
}

function countsOf(values: Float64Array, low: number, high: number): number[] {
  const counts = new Array<number>(BINS).fill(0);
  for (const value of values) {
    if (Number.isNaN(value)) continue;
    // Equal values are all in the first bin.
    const bin = high === low ? 0 : Math.min(BINS - 1, Math.floor(((value - low) / (high - low)) * BINS));
    counts[bin] = (counts[bin] as number) + 1;
  }
  return counts;
}
