import type { Caller } from "../../platform/contract/caller.ts";
import type { Tx } from "../../platform/database/database.ts";
import { ApiError, InvalidRequestError } from "../../platform/errors.ts";
import { readFilters } from "../filter/parse.ts";
import { deletedExampleIndexes, examplesAt, listExampleIds } from "../storage/examples.ts";
import { searchRunKeys } from "../storage/runs.ts";
import type { DatasetRow, ExperimentRow } from "../storage/schema.ts";
import { listVectors, type VectorName } from "../storage/score-vectors.ts";
import { searchTracedRows } from "../storage/traces/trace-search.ts";

interface ComparisonFilter {
  /** Filter expressions by experiment id. */
  filters?: Record<string, string[]> | undefined;
  example_ids?: string[] | undefined;
  /** `loc` is the location of `by` in the request. */
  sort?: { by: string; descending: boolean; loc: string[] } | undefined;
}

/**
 * Returns the sorted indexes of the examples that have a run in at least one experiment, match the filters and are not deleted.
 * Rows of runs are read only for `filters`; the other data of runs is read from vectors.
 *
 * @throws ApiError when a filter is invalid or names an experiment outside the comparison
 * @throws InvalidRequestError when the sort key is unknown
 */
export async function findExampleIndexes(
  tx: Tx,
  caller: Caller,
  dataset: DatasetRow,
  experiments: ExperimentRow[],
  { filters = {}, example_ids, sort }: ComparisonFilter,
): Promise<number[]> {
  const deleted = await findDeletedIndexes(tx, dataset);
  let indexes = await indexesWithRuns(tx, dataset, experiments, deleted);
  if (example_ids) {
    const ids = new Set(example_ids);
    const selected = (await listExampleIds(tx, dataset.dataset_no)).filter(({ example_id }) => ids.has(example_id));
    indexes = intersect(indexes, selected);
  }
  for (const [session_id, expressions] of Object.entries(filters)) {
    const experiment = experiments.find(({ experiment_id }) => experiment_id === session_id.toLowerCase());
    if (!experiment) throw new ApiError("session_elsewhere", { session_id });
    const { experiment_no } = experiment;
    const search = { experiment_no: [experiment_no], filters: readFilters(expressions), only_uploaded: true };
    const uploaded = await searchRunKeys(tx, caller.tenant_id, search);
    const traced = await searchTracedRows(tx, caller.tenant_id, experiment_no, search.filters);
    indexes = intersect(indexes, [...uploaded, ...traced]);
  }
  return sort ? sortIndexes(indexes, await sortKey(tx, experiments, deleted, sort), sort.descending) : indexes;
}

/** Returns the indexes of deleted examples, ascending. Indexes are never reused, so `next_example_index` counts deleted examples, too. */
export const findDeletedIndexes = (
  tx: Tx,
  { dataset_no, next_example_index, example_count }: DatasetRow,
): Promise<number[]> =>
  next_example_index === example_count ? Promise.resolve([]) : deletedExampleIndexes(tx, dataset_no);

export function intersect(indexes: number[], rows: readonly { example_index: number }[]): number[] {
  const found = new Set(rows.map(({ example_index }) => example_index));
  return indexes.filter((index) => found.has(index));
}

/** Sorts indexes by value. Indexes without a value (NaN) come last in both directions. */
export function sortIndexes(indexes: number[], valueAt: (index: number) => number, descending: boolean): number[] {
  const values = new Map(indexes.map((index) => [index, valueAt(index)]));
  const at = (index: number) => values.get(index) as number;
  const hasValue = (index: number) => !Number.isNaN(at(index));
  const sign = descending ? -1 : 1;
  const sorted = indexes.filter(hasValue).sort((a, b) => sign * (at(a) - at(b)) || a - b);
  return [...sorted, ...indexes.filter((index) => !hasValue(index)).sort((a, b) => a - b)];
}

/**
 * Reads the error vectors, in which every run has a value. In latency vectors, pending runs have no value. If the first experiment has a
 * run of every example, its vector is enough.
 */
async function indexesWithRuns(
  tx: Tx,
  { example_count }: DatasetRow,
  experiments: ExperimentRow[],
  deleted: readonly number[],
): Promise<number[]> {
  const [first, ...others] = numbersOf(experiments);
  if (first === undefined) return [];
  const kind = "error";
  const vectors = await listVectors(tx, [first], { kind }, deleted);
  const indexes = indexesOf(vectors);
  if (indexes.length >= example_count || others.length === 0) return indexes;
  return indexesOf([...vectors, ...(await listVectors(tx, others, { kind }, deleted))]);
}

/** Returns the indexes at which at least one vector has a value, ascending. */
function indexesOf(vectors: readonly { values: Float64Array }[]): number[] {
  const length = Math.max(0, ...vectors.map(({ values }) => values.length));
  const indexes: number[] = [];
  for (let index = 0; index < length; index++)
    if (vectors.some(({ values }) => !Number.isNaN(values[index] ?? Number.NaN))) indexes.push(index);
  return indexes;
}

export const numbersOf = (experiments: ExperimentRow[]): number[] =>
  experiments.map(({ experiment_no }) => experiment_no);

export async function examplesByIndex(tx: Tx, dataset_no: number, indexes: number[]) {
  const examples = await examplesAt(tx, dataset_no, indexes);
  return new Map(examples.map((example) => [example.example_index, example]));
}

/**
 * Returns the sort value of an index: `feedback.{key}`, `latency` or `error` in the first experiment. With the prefix `delta.`, it is the
 * largest difference of any other experiment from the first, by absolute value.
 */
async function sortKey(
  tx: Tx,
  experiments: ExperimentRow[],
  deleted: readonly number[],
  { by, loc }: NonNullable<ComparisonFilter["sort"]>,
): Promise<(index: number) => number> {
  const isDelta = by.startsWith("delta.");
  const name = vectorName(isDelta ? by.slice("delta.".length) : by);
  if (!name) throw new InvalidRequestError([{ loc, msg: INVALID_SORT_KEY, type: "value_error", input: by }]);
  const numbers = numbersOf(experiments);
  const found = await listVectors(tx, numbers, { kind: name.kind, keys: [name.key] }, deleted);
  const vectors = numbers.map((no) => found.find(({ experiment_no }) => experiment_no === no)?.values);
  const valueIn = (experiment: number, index: number): number => vectors[experiment]?.[index] ?? Number.NaN;
  if (!isDelta) return (index) => valueIn(0, index);
  return (index) => {
    const deltas = numbers.slice(1).map((_, other) => valueIn(other + 1, index) - valueIn(0, index));
    const known = deltas.filter((delta) => !Number.isNaN(delta));
    return known.reduce((max, delta) => (Math.abs(delta) > Math.abs(max) ? delta : max), known[0] ?? Number.NaN);
  };
}

const INVALID_SORT_KEY =
  "Value error, must be 'latency', 'error' or 'feedback.{key}', optionally with the prefix 'delta.'";

function vectorName(by: string): VectorName | undefined {
  if (by === "latency" || by === "error") return { kind: by, key: "" };
  if (by.startsWith("feedback.")) return { kind: "score", key: by.slice("feedback.".length) };
  return undefined;
}
