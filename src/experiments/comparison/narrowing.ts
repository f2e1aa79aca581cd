import type { Tx } from "../../platform/database/database.ts";
import type { ComparedRowsQuery } from "../contract/app-comparison.ts";
import { readFilters } from "../filter/read-filters.ts";
import { changesOf } from "../statistics/changes.ts";
import { placesOfText } from "../storage/examples.ts";
import { lowerIsBetter } from "../storage/feedback-configs.ts";
import { placesOfRuns } from "../storage/runs.ts";
import type { DatasetRow, ExperimentRow, ScoreVectorRow } from "../storage/schema.ts";
import { vectorsOf } from "../storage/vectors.ts";
import { kept, sortedBy } from "./places.ts";

const NOTHING = new Float64Array();

/** What is compared: the baseline first. Places that were removed from the dataset have no scores. */
export interface Compared {
  dataset: DatasetRow;
  experiments: ExperimentRow[];
  removed: readonly number[];
}

type Narrow = Pick<ComparedRowsQuery, "scores" | "change" | "failed" | "text">;

/** Those of the places that meet all conditions. All but the search for words is read from vectors. */
export async function narrowed(tx: Tx, compared: Compared, places: number[], narrow: Narrow): Promise<number[]> {
  let some = places;
  const { scores = [], change, failed, text } = narrow;
  for (const { session_id, key, min = -Infinity, max = Infinity } of scores) {
    const values = await vectorOf(tx, compared, session_id, { kind: "score", key });
    // A missing score is NaN, which is in no range.
    some = some.filter((ord) => (values[ord] as number) >= min && (values[ord] as number) <= max);
  }
  if (change) some = kept(some, await changed(tx, compared, change));
  if (failed) {
    const errors = await Promise.all(failed.map((id) => vectorOf(tx, compared, id, { kind: "error", key: "" })));
    some = some.filter((ord) => errors.some((values) => (values[ord] as number) > 0));
  }
  if (text?.trim()) some = kept(some, await found(tx, compared, text));
  return some;
}

async function changed(
  tx: Tx,
  compared: Compared,
  { session_id, key, direction }: NonNullable<Narrow["change"]>,
): Promise<number[]> {
  const baseline = compared.experiments[0] as ExperimentRow;
  const name = { kind: "score", key } as const;
  const from = await vectorOf(tx, compared, baseline.experiment_id, name);
  const to = await vectorOf(tx, compared, session_id, name);
  const lower = await lowerIsBetter(tx, compared.dataset.tenant_id);
  const { improved, regressed } = changesOf(from, to, { lower_is_better: lower.has(key) });
  if (direction === "changed") return [...improved, ...regressed];
  return direction === "better" ? improved : regressed;
}

/** Where all words stand in one run, or in the example: what it asks, what it expects, its metadata. */
async function found(tx: Tx, { dataset, experiments }: Compared, text: string): Promise<number[]> {
  const filters = readFilters([], text);
  const experiment_no = experiments.map((experiment) => experiment.experiment_no);
  const runs = await placesOfRuns(tx, dataset.tenant_id, { experiment_no, filters });
  const examples = await placesOfText(tx, dataset.dataset_no, filters);
  return [...runs, ...examples].map(({ ord }) => ord);
}

/** The places in the order that was asked for; those without a value come last, whichever way the others go. */
export async function ordered(
  tx: Tx,
  compared: Compared,
  places: number[],
  { by, key = "", session_id, delta, descending }: NonNullable<ComparedRowsQuery["order"]>,
): Promise<number[]> {
  const name = by === "score" ? ({ kind: by, key } as const) : ({ kind: by, key: "" } as const);
  const values = await vectorOf(tx, compared, session_id, name);
  const baseline = compared.experiments[0] as ExperimentRow;
  const from = delta ? await vectorOf(tx, compared, baseline.experiment_id, name) : undefined;
  const at = (ord: number) => (values[ord] ?? Number.NaN) - (from ? (from[ord] ?? Number.NaN) : 0);
  return sortedBy(places, at, descending);
}

/** Empty where the experiment has nothing of that name. */
async function vectorOf(
  tx: Tx,
  { experiments, removed }: Compared,
  session_id: string,
  { kind, key }: Pick<ScoreVectorRow, "kind" | "key">,
): Promise<Float64Array> {
  const experiment = experiments.find(({ experiment_id }) => experiment_id === session_id);
  if (!experiment) return NOTHING;
  const [found] = await vectorsOf(tx, [experiment.experiment_no], { kind, keys: [key] }, removed);
  return found?.values ?? NOTHING;
}
