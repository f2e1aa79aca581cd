import { createHash } from "node:crypto";
import type { Caller } from "../../platform/contract/caller.ts";
import type { ExperimentsContext } from "../context.ts";
import type { Comparison, ComparisonQuery, PairComparison } from "../contract/comparison.ts";
import { getDataset, getExperimentsOf } from "../lookup.ts";
import { changesOf } from "../statistics/changes.ts";
import { holm } from "../statistics/holm.ts";
import { comparePair } from "../statistics/paired.ts";
import type { ExperimentStats } from "../stats.ts";
import { lowerIsBetter } from "../storage/feedback-configs.ts";
import type { ExperimentRow } from "../storage/schema.ts";
import { idsOfPlaces, scoresOf } from "./deltas.ts";
import { removedPlaces } from "./removed-places.ts";

const RESAMPLES = 2000;
const CONFIDENCE = 0.95;
/** The same comparison has the same interval each time that it is made. */
const SEED = 1;
const DRAWN = { resamples: RESAMPLES, level: CONFIDENCE, seed: SEED };

/** As many pairs are remembered: those of a hundred pages with ten experiments and ten keys each. */
const KEPT_PAIRS = 10_000;

const UNNAMED = { improved: [], regressed: [] };

type Figures = ReturnType<typeof comparePair>;

/** Whether experiments are better than a baseline: differences with intervals and tests. */
export class Comparisons {
  readonly #context: ExperimentsContext;
  /** By experiments, their versions, removed examples, key and options: what was computed stays right until one changes. */
  readonly #figures = new Map<string, Figures>();

  constructor(context: ExperimentsContext) {
    this.#context = context;
  }

  async compare(caller: Caller, dataset_id: string, body: ComparisonQuery): Promise<Comparison> {
    const { read } = this.#context.database;
    const dataset = await getDataset(read, caller, dataset_id);
    const ids = [body.baseline_session_id, ...body.comparison_session_ids];
    const experiments = await getExperimentsOf(read, caller, dataset.dataset_no, ids);
    const [baseline, ...others] = experiments as [ExperimentRow, ...ExperimentRow[]];
    const keys = body.feedback_keys ?? keysOf(experiments);
    const removed = await removedPlaces(read, dataset);
    const scores = await scoresOf(read, experiments, keys, removed);
    const digest = digestOf(removed);
    const lower = await lowerIsBetter(read, caller.tenant_id);
    const examples = body.limit > 0 ? await idsOfPlaces(read, dataset.dataset_no) : new Map<number, string>();
    const named = (places: number[]) => places.flatMap((ord) => examples.get(ord) ?? []).slice(0, body.limit);

    const rows = others.flatMap((other) =>
      keys.map((key): PairComparison => {
        const { threshold, significance } = body;
        const options = { lower_is_better: lower.has(key), threshold, significance };
        const [from, to] = [scores(baseline, key), scores(other, key)];
        const changes = body.limit > 0 ? changesOf(from, to, options) : UNNAMED;
        const name = [versionOf(baseline), versionOf(other), digest, key, options];
        const figures = this.#remembered(name, () => comparePair(from, to, { ...options, ...DRAWN }));
        return onWire(other, key, options.lower_is_better, figures, named(changes.improved), named(changes.regressed));
      }),
    );
    const adjusted = holm(rows.map(({ p_value }) => p_value));
    return {
      baseline_session_id: baseline.experiment_id,
      confidence: CONFIDENCE,
      resamples: RESAMPLES,
      seed: SEED,
      comparisons: rows.map((row, index) => ({ ...row, p_adjusted: adjusted[index] ?? null })),
    };
  }

  #remembered(what: unknown[], compute: () => Figures): Figures {
    const name = JSON.stringify(what);
    const known = this.#figures.get(name);
    if (known) return known;
    const figures = compute();
    this.#figures.set(name, figures);
    if (this.#figures.size > KEPT_PAIRS) this.#figures.delete(this.#figures.keys().next().value as string);
    return figures;
  }
}

const versionOf = ({ experiment_no, stats_version }: ExperimentRow) => [experiment_no, stats_version];

/** Short for a list that may be as long as the dataset. */
const digestOf = (places: readonly number[]): string => createHash("sha1").update(places.join()).digest("base64");

/** All keys that some of the experiments has scores of. */
function keysOf(experiments: ExperimentRow[]): string[] {
  const keys = experiments.flatMap(({ stats }) => {
    const { feedback_stats } = JSON.parse(stats) as ExperimentStats;
    return Object.entries(feedback_stats).flatMap(([key, { avg }]) => (avg === null ? [] : key));
  });
  return [...new Set(keys)].sort();
}

const onWire = (
  { experiment_id }: ExperimentRow,
  key: string,
  is_lower_score_better: boolean,
  figures: Figures,
  improved_examples: string[],
  regressed_examples: string[],
): PairComparison => ({
  session_id: experiment_id,
  key,
  is_lower_score_better,
  n_paired: figures.n_paired,
  only_baseline: figures.missing_other,
  only_comparison: figures.missing_baseline,
  mean_baseline: figures.mean_baseline,
  mean_comparison: figures.mean_other,
  mean_delta: figures.mean_delta,
  ci_low: figures.ci_low,
  ci_high: figures.ci_high,
  wins: figures.wins,
  losses: figures.losses,
  ties: figures.ties,
  test: figures.test,
  p_value: figures.p,
  p_adjusted: null,
  improved_examples,
  regressed_examples,
});
