import type { Caller } from "../../platform/contract/caller.ts";
import type { ExperimentsContext } from "../context.ts";
import type { DistributionsQuery, Distribution as OnWire } from "../contract/app-comparison.ts";
import { getDataset, getExperimentsOf } from "../lookup.ts";
import { describe } from "../statistics/describe.ts";
import { vectorsOf } from "../storage/vectors.ts";
import { removedPlaces } from "./removed-places.ts";

const BINS = 10;
const NOTHING = new Float64Array();

/** How the scores of experiments are distributed; an example that ran several times counts once, with its mean. */
export class Distributions {
  readonly #context: ExperimentsContext;

  constructor(context: ExperimentsContext) {
    this.#context = context;
  }

  async read(caller: Caller, dataset_id: string, { session_ids }: DistributionsQuery): Promise<OnWire[]> {
    const { read } = this.#context.database;
    const dataset = await getDataset(read, caller, dataset_id);
    const experiments = await getExperimentsOf(read, caller, dataset.dataset_no, session_ids);
    const numbers = experiments.map(({ experiment_no }) => experiment_no);
    const vectors = await vectorsOf(read, numbers, { kind: "score" }, await removedPlaces(read, dataset));
    const byKey = Map.groupBy(vectors, ({ key }) => key);
    return [...byKey.keys()].sort().flatMap((key) => {
      const ofKey = new Map(byKey.get(key)?.map(({ experiment_no, values }) => [experiment_no, values]));
      return distributionOf(
        key,
        numbers.map((no) => ofKey.get(no) ?? NOTHING),
      );
    });
  }
}

/** One distribution, or none where nobody has a score. NaN is a missing score. */
function distributionOf(key: string, vectors: Float64Array[]): OnWire[] {
  const all = vectors.map(describe).filter(({ n }) => n > 0);
  if (all.length === 0) return [];
  const low = Math.min(...all.map(({ min }) => min as number));
  const high = Math.max(...all.map(({ max }) => max as number));
  const is_binary = vectors.every((values) =>
    values.every((value) => value === 0 || value === 1 || Number.isNaN(value)),
  );
  // 0 and 1 stand at the two ends, whether both occur or not.
  const [from, to] = is_binary ? [0, 1] : [low, high];
  return [{ key, low: from, high: to, is_binary, counts: vectors.map((values) => countsOf(values, from, to)) }];
}

function countsOf(values: Float64Array, low: number, high: number): number[] {
  const counts = new Array<number>(BINS).fill(0);
  for (const value of values) {
    if (Number.isNaN(value)) continue;
    // All are the same: they stand in the first.
    const bin = high === low ? 0 : Math.min(BINS - 1, Math.floor(((value - low) / (high - low)) * BINS));
    counts[bin] = (counts[bin] as number) + 1;
  }
  return counts;
}
