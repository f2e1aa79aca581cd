import type { Caller } from "../../platform/contract/caller.ts";
import type { Tx } from "../../platform/database/database.ts";
import { ApiError, InvalidRequestError } from "../../platform/errors.ts";
import { readFilters } from "../filter/read-filters.ts";
import { placesOf } from "../storage/examples.ts";
import { placesOfRuns } from "../storage/runs.ts";
import type { DatasetRow, ExperimentRow, ScoreVectorRow } from "../storage/schema.ts";
import { vectorsOf } from "../storage/vectors.ts";
import { kept, sortedBy } from "./places.ts";
import { removedPlaces } from "./removed-places.ts";

export interface Showing {
  /** By experiment: an example is shown when it has a run that meets all of each. */
  filters?: Record<string, string[]> | undefined;
  example_ids?: string[] | undefined;
  /** `loc` says where the request says so. */
  sort?: { by: string; descending: boolean; loc: string[] } | undefined;
}

/**
 * The places of the examples that a comparison shows, in its order: those that any of the experiments has run, less those
 * that were removed or do not meet the filters. All from vectors; rows are read only where something is filtered.
 */
export async function placesToShow(
  tx: Tx,
  caller: Caller,
  dataset: DatasetRow,
  experiments: ExperimentRow[],
  { filters = {}, example_ids, sort }: Showing,
): Promise<number[]> {
  const removed = await removedPlaces(tx, dataset);
  let ords = await placesWithRuns(tx, experiments, removed);
  if (example_ids) {
    const wanted = new Set(example_ids);
    const some = (await placesOf(tx, dataset.dataset_no)).filter(({ example_id }) => wanted.has(example_id));
    ords = kept(
      ords,
      some.map(({ ord }) => ord),
    );
  }
  for (const [session_id, expressions] of Object.entries(filters)) {
    const experiment = experiments.find(({ experiment_id }) => experiment_id === session_id.toLowerCase());
    if (!experiment) throw new ApiError("session_elsewhere", { session_id });
    const search = { experiment_no: [experiment.experiment_no], filters: readFilters(expressions) };
    const found = await placesOfRuns(tx, caller.tenant_id, search);
    ords = kept(
      ords,
      found.map(({ ord }) => ord),
    );
  }
  return sort ? sortedBy(ords, await sortKey(tx, experiments, removed, sort), sort.descending) : ords;
}

/** Every run has a latency. */
async function placesWithRuns(tx: Tx, experiments: ExperimentRow[], removed: readonly number[]): Promise<number[]> {
  const vectors = await vectorsOf(tx, numbersOf(experiments), { kind: "latency" }, removed);
  const length = Math.max(0, ...vectors.map(({ values }) => values.length));
  const ords: number[] = [];
  for (let ord = 0; ord < length; ord++)
    if (vectors.some(({ values }) => !Number.isNaN(values[ord] ?? Number.NaN))) ords.push(ord);
  return ords;
}

const numbersOf = (experiments: ExperimentRow[]): number[] => experiments.map(({ experiment_no }) => experiment_no);

/**
 * What examples are sorted by: `feedback.{key}`, `latency` or `error` of the first experiment, or with `delta.` before it how
 * far the others are from the first, by the one that is farthest.
 */
async function sortKey(
  tx: Tx,
  experiments: ExperimentRow[],
  removed: readonly number[],
  { by, loc }: NonNullable<Showing["sort"]>,
): Promise<(ord: number) => number> {
  const isDelta = by.startsWith("delta.");
  const name = vectorNamed(isDelta ? by.slice("delta.".length) : by);
  if (!name) throw new InvalidRequestError([{ loc, msg: UNSORTABLE, type: "value_error", input: by }]);
  const numbers = numbersOf(experiments);
  const found = await vectorsOf(tx, numbers, { kind: name.kind, keys: [name.key] }, removed);
  const vectors = numbers.map((no) => found.find(({ experiment_no }) => experiment_no === no)?.values);
  const at = (index: number, ord: number): number => vectors[index]?.[ord] ?? Number.NaN;
  if (!isDelta) return (ord) => at(0, ord);
  return (ord) => {
    const deltas = numbers.slice(1).map((_, index) => at(index + 1, ord) - at(0, ord));
    const some = deltas.filter((delta) => !Number.isNaN(delta));
    return some.reduce((most, delta) => (Math.abs(delta) > Math.abs(most) ? delta : most), some[0] ?? Number.NaN);
  };
}

const UNSORTABLE = "Value error, must be latency, error or feedback.{key}, or one of them behind delta.";

function vectorNamed(by: string): Pick<ScoreVectorRow, "kind" | "key"> | undefined {
  if (by === "latency" || by === "error") return { kind: by, key: "" };
  if (by.startsWith("feedback.")) return { kind: "score", key: by.slice("feedback.".length) };
  return undefined;
}
