import type { Caller } from "../../platform/contract/caller.ts";
import type { Tx } from "../../platform/database/database.ts";
import type { ExperimentsContext } from "../context.ts";
import type { DeltaQuery, DeltaStreamQuery } from "../contract/comparison.ts";
import { getDataset, getExperimentsOf } from "../lookup.ts";
import { changesOf } from "../statistics/changes.ts";
import { placesOf } from "../storage/examples.ts";
import { lowerIsBetter } from "../storage/feedback-configs.ts";
import type { ExperimentRow } from "../storage/schema.ts";
import { vectorsOf } from "../storage/vectors.ts";
import { placesToShow } from "./places-to-show.ts";
import { removedPlaces } from "./removed-places.ts";

/** By experiment: which examples got better than in the baseline, and which worse. */
export type Deltas = Record<string, { improved_examples: string[]; regressed_examples: string[] }>;

const NOTHING = new Float64Array();

/** Improved and regressed examples, without statistics. */
export class FeedbackDeltas {
  readonly #context: ExperimentsContext;

  constructor(context: ExperimentsContext) {
    this.#context = context;
  }

  async read(caller: Caller, dataset_id: string, body: DeltaQuery): Promise<{ feedback_deltas: Deltas }> {
    const key = body.feedback_key;
    const { [key]: deltas = {} } = await this.#ofKeys(caller, dataset_id, { ...body, feedback_keys: [key] });
    const page = (ids: string[]) => ids.slice(body.offset, body.offset + body.limit);
    const entries = Object.entries(deltas).map(([id, { improved_examples, regressed_examples }]) => [
      id,
      { improved_examples: page(improved_examples), regressed_examples: page(regressed_examples) },
    ]);
    return { feedback_deltas: Object.fromEntries(entries) };
  }

  /** By key; the stream sends them one after the other. */
  stream(caller: Caller, dataset_id: string, body: DeltaStreamQuery): Promise<Record<string, Deltas>> {
    return this.#ofKeys(caller, dataset_id, body);
  }

  async #ofKeys(caller: Caller, dataset_id: string, body: DeltaStreamQuery): Promise<Record<string, Deltas>> {
    const { read } = this.#context.database;
    const dataset = await getDataset(read, caller, dataset_id);
    const experiments = await getExperimentsOf(read, caller, dataset.dataset_no, [
      body.baseline_session_id,
      ...body.comparison_session_ids,
    ]);
    const ids = await idsOfPlaces(read, dataset.dataset_no);
    const shown = body.filters && new Set(await placesToShow(read, caller, dataset, experiments, body));
    const lower = await lowerIsBetter(read, caller.tenant_id);
    const scores = await scoresOf(read, experiments, body.feedback_keys, await removedPlaces(read, dataset));
    const [baseline, ...others] = experiments as [ExperimentRow, ...ExperimentRow[]];
    const named = (places: number[]) => places.flatMap((ord) => (!shown || shown.has(ord) ? (ids.get(ord) ?? []) : []));
    const ofKey = (key: string): Deltas =>
      Object.fromEntries(
        others.map((other) => {
          const options = { lower_is_better: lower.has(key) };
          const { improved, regressed } = changesOf(scores(baseline, key), scores(other, key), options);
          return [other.experiment_id, { improved_examples: named(improved), regressed_examples: named(regressed) }];
        }),
      );
    return Object.fromEntries(body.feedback_keys.map((key) => [key, ofKey(key)]));
  }
}

/** The examples of a dataset that are still there, by their places. */
export async function idsOfPlaces(tx: Tx, dataset_no: number): Promise<Map<number, string>> {
  const places = await placesOf(tx, dataset_no);
  return new Map(places.flatMap(({ ord, example_id, deleted }) => (deleted === 1 ? [] : [[ord, example_id]])));
}

/** Finds the scores of an experiment on examples that are still there; nothing where it has none of that key. */
export async function scoresOf(
  tx: Tx,
  experiments: ExperimentRow[],
  keys: string[] | undefined,
  removed: readonly number[],
) {
  const numbers = experiments.map(({ experiment_no }) => experiment_no);
  const vectors = await vectorsOf(tx, numbers, { kind: "score", keys }, removed);
  const byName = new Map(vectors.map(({ experiment_no, key, values }) => [`${experiment_no} ${key}`, values]));
  return ({ experiment_no }: ExperimentRow, key: string): Float64Array =>
    byName.get(`${experiment_no} ${key}`) ?? NOTHING;
}
