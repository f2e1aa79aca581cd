import type { Caller } from "../../platform/contract/caller.ts";
import type { Database, Tx } from "../../platform/database/database.ts";
import type { DeltaQuery, DeltaStreamQuery } from "../contract/comparison.ts";
import { getDataset, readExperiments } from "../lookups.ts";
import { changesOf } from "../statistics/paired.ts";
import { listExampleIds } from "../storage/examples.ts";
import { lowerIsBetterKeys } from "../storage/feedback-configs.ts";
import type { ExperimentRow } from "../storage/schema.ts";
import { EMPTY_VECTOR, listVectors } from "../storage/score-vectors.ts";
import { findDeletedIndexes, findExampleIndexes, numbersOf } from "./example-indexes.ts";

/** The improved and regressed examples by experiment id. */
export type Deltas = Record<string, { improved_examples: string[]; regressed_examples: string[] }>;

export const deltaOperations = (database: Database) => ({
  async read(caller: Caller, dataset_id: string, body: DeltaQuery): Promise<{ feedback_deltas: Deltas }> {
    const key = body.feedback_key;
    const { [key]: deltas = {} } = await deltasByKey(database, caller, dataset_id, { ...body, feedback_keys: [key] });
    const page = (ids: string[]) => ids.slice(body.offset, body.offset + body.limit);
    const entries = Object.entries(deltas).map(([id, { improved_examples, regressed_examples }]) => [
      id,
      { improved_examples: page(improved_examples), regressed_examples: page(regressed_examples) },
    ]);
    return { feedback_deltas: Object.fromEntries(entries) };
  },

  stream(caller: Caller, dataset_id: string, body: DeltaStreamQuery): Promise<Record<string, Deltas>> {
    return deltasByKey(database, caller, dataset_id, body);
  },
});

async function deltasByKey(
  database: Database,
  caller: Caller,
  dataset_id: string,
  body: DeltaStreamQuery,
): Promise<Record<string, Deltas>> {
  const { read } = database;
  const dataset = await getDataset(read, caller, dataset_id);
  const experiments = await readExperiments(database, caller, dataset.dataset_no, [
    body.baseline_session_id,
    ...body.comparison_session_ids,
  ]);
  const ids = await exampleIdsByIndex(read, dataset.dataset_no);
  const included = body.filters && new Set(await findExampleIndexes(read, caller, dataset, experiments, body));
  const lower = await lowerIsBetterKeys(read, caller.tenant_id);
  const scores = await loadScores(read, experiments, body.feedback_keys, await findDeletedIndexes(read, dataset));
  const [baseline, ...others] = experiments as [ExperimentRow, ...ExperimentRow[]];
  const exampleIds = (indexes: number[]) =>
    indexes.flatMap((example_index) =>
      !included || included.has(example_index) ? (ids.get(example_index) ?? []) : [],
    );
  const ofKey = (key: string): Deltas =>
    Object.fromEntries(
      others.map((other) => {
        const options = { lower_is_better: lower.has(key) };
        const { improved, regressed } = changesOf(scores(baseline, key), scores(other, key), options);
        return [
          other.experiment_id,
          { improved_examples: exampleIds(improved), regressed_examples: exampleIds(regressed) },
        ];
      }),
    );
  return Object.fromEntries(body.feedback_keys.map((key) => [key, ofKey(key)]));
}

/** The ids of the examples that are not deleted, by example index. */
export async function exampleIdsByIndex(tx: Tx, dataset_no: number): Promise<Map<number, string>> {
  const examples = await listExampleIds(tx, dataset_no);
  return new Map(
    examples.flatMap(({ example_index, example_id, deleted }) => (deleted === 1 ? [] : [[example_index, example_id]])),
  );
}

/** Loads score vectors, without deleted examples. Returns a function that finds a vector, which is empty for a missing key. */
export async function loadScores(
  tx: Tx,
  experiments: ExperimentRow[],
  keys: string[] | undefined,
  deleted: readonly number[],
) {
  const vectors = await listVectors(tx, numbersOf(experiments), { kind: "score", keys }, deleted);
  const byName = new Map(vectors.map(({ experiment_no, key, values }) => [`${experiment_no} ${key}`, values]));
  return ({ experiment_no }: ExperimentRow, key: string): Float64Array =>
    byName.get(`${experiment_no} ${key}`) ?? EMPTY_VECTOR;
}
