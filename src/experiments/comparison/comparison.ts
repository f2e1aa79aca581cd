import { createHash } from "node:crypto";
import type { Caller } from "../../platform/contract/caller.ts";
import { type Database, readNow, type Tx } from "../../platform/database/database.ts";
import { ApiError } from "../../platform/errors.ts";
import { newId } from "../../platform/lib/ids.ts";
import { isoOfMilliseconds } from "../../platform/lib/times.ts";
import type {
  ComparativeCreate,
  ComparativeExperiment,
  ComparativeQuery,
  Comparison,
  ComparisonQuery,
  PairComparison,
} from "../contract/comparison.ts";
import { getDataset, getExperiment, getExperiments, readExperiments } from "../lookups.ts";
import { parseJson, toJson } from "../serialization/records.ts";
import type { ExperimentStats } from "../sessions/stats.ts";
import { changesOf, comparePair, type PairStatistics } from "../statistics/paired.ts";
import { holm } from "../statistics/significance-tests.ts";
import { datasetsByNo } from "../storage/datasets.ts";
import { deleteComparative, experimentsById, insertComparative, listComparative } from "../storage/experiments.ts";
import { lowerIsBetterKeys } from "../storage/feedback-configs.ts";
import type { ComparativeExperimentRow, ExperimentRow } from "../storage/schema.ts";
import { exampleIdsByIndex, loadScores } from "./deltas.ts";
import { findDeletedIndexes } from "./example-indexes.ts";

/** The seed is fixed, so that repeated comparisons return the same confidence interval. */
const BOOTSTRAP = { resamples: 2000, level: 0.95, seed: 1 };

const MAX_CACHED_PAIRS = 10_000;

const NO_CHANGES = { improved: [], regressed: [] };

/** Compares experiments with a baseline: mean differences, confidence intervals and significance tests. */
export class Comparisons {
  readonly #database: Database;
  /** Cached results, keyed by the versions of both experiments, the deleted examples, the feedback key and the options. */
  readonly #cache = new Map<string, PairStatistics>();

  constructor(database: Database) {
    this.#database = database;
  }

  async compare(caller: Caller, dataset_id: string, body: ComparisonQuery): Promise<Comparison> {
    const { read } = this.#database;
    const dataset = await getDataset(read, caller, dataset_id);
    const ids = [body.baseline_session_id, ...body.comparison_session_ids];
    const experiments = await readExperiments(this.#database, caller, dataset.dataset_no, ids);
    const [baseline, ...others] = experiments as [ExperimentRow, ...ExperimentRow[]];
    const keys = body.feedback_keys ?? keysOf(experiments);
    const deleted = await findDeletedIndexes(read, dataset);
    const scores = await loadScores(read, experiments, keys, deleted);
    const digest = digestOf(deleted);
    const lower = await lowerIsBetterKeys(read, caller.tenant_id);
    const examples = body.limit > 0 ? await exampleIdsByIndex(read, dataset.dataset_no) : new Map<number, string>();
    const exampleIds = (indexes: number[]) =>
      indexes.flatMap((index) => examples.get(index) ?? []).slice(0, body.limit);

    const rows = others.flatMap((other) =>
      keys.map((key): PairComparison => {
        const { threshold, significance } = body;
        const options = { lower_is_better: lower.has(key), threshold, significance };
        const [from, to] = [scores(baseline, key), scores(other, key)];
        const changes = body.limit > 0 ? changesOf(from, to, options) : NO_CHANGES;
        const cacheKey = [versionOf(baseline), versionOf(other), digest, key, options];
        const statistics = this.#cached(cacheKey, () => comparePair(from, to, { ...options, ...BOOTSTRAP }));
        return {
          session_id: other.experiment_id,
          key,
          is_lower_score_better: options.lower_is_better,
          ...statistics,
          p_adjusted: null,
          improved_examples: exampleIds(changes.improved),
          regressed_examples: exampleIds(changes.regressed),
        };
      }),
    );
    const adjusted = holm(rows.map(({ p_value }) => p_value));
    return {
      baseline_session_id: baseline.experiment_id,
      confidence: BOOTSTRAP.level,
      resamples: BOOTSTRAP.resamples,
      seed: BOOTSTRAP.seed,
      comparisons: rows.map((row, index) => ({ ...row, p_adjusted: adjusted[index] ?? null })),
    };
  }

  #cached(key: unknown[], compute: () => PairStatistics): PairStatistics {
    const name = JSON.stringify(key);
    const cached = this.#cache.get(name);
    if (cached) return cached;
    const statistics = compute();
    this.#cache.set(name, statistics);
    if (this.#cache.size > MAX_CACHED_PAIRS) this.#cache.delete(this.#cache.keys().next().value as string);
    return statistics;
  }
}

const versionOf = ({ experiment_no, stats_version }: ExperimentRow) => [experiment_no, stats_version];

const digestOf = (indexes: readonly number[]): string => createHash("sha1").update(indexes.join()).digest("base64");

/** Returns the feedback keys that have scores in at least one of the experiments. */
function keysOf(experiments: ExperimentRow[]): string[] {
  const keys = experiments.flatMap(({ stats }) => {
    const { feedback_stats } = JSON.parse(stats) as ExperimentStats;
    return Object.entries(feedback_stats).flatMap(([key, { avg }]) => (avg === null ? [] : key));
  });
  return [...new Set(keys)].sort();
}

/** Operations on comparative experiments, which are stored groups of experiments. */
export const comparativeOperations = ({ read, write }: Database) => ({
  async create(caller: Caller, body: ComparativeCreate): Promise<ComparativeExperiment> {
    return write(async (tx) => {
      const dataset_no = await datasetNumber(tx, caller, body);
      await getExperiments(tx, caller, dataset_no, body.experiment_ids);
      const now = await readNow(tx);
      const at = (us: number | undefined) => (us === undefined ? now : Math.floor(us / 1000));
      const created = await insertComparative(tx, {
        comparative_experiment_id: body.id ?? newId(),
        tenant_id: caller.tenant_id,
        dataset_no,
        name: body.name ?? null,
        description: body.description ?? null,
        extra: toJson(body.extra),
        experiment_ids: JSON.stringify(body.experiment_ids),
        created_at: at(body.created_at),
        modified_at: at(body.modified_at ?? body.created_at),
      });
      if (!created) throw new ApiError("comparative_exists", { id: body.id });
      return comparativeRecord(tx, created);
    });
  },

  async list(caller: Caller, dataset_id: string, query: ComparativeQuery): Promise<ComparativeExperiment[]> {
    const { dataset_no } = await getDataset(read, caller, dataset_id);
    const rows = await listComparative(read, dataset_no, query);
    return Promise.all(rows.map((row) => comparativeRecord(read, row)));
  },

  async delete({ tenant_id }: Caller, id: string): Promise<void> {
    const count = await write((tx) => deleteComparative(tx, tenant_id, id));
    if (count === 0) throw new ApiError("comparative_not_found");
  },
});

/** Returns the number of the dataset that the request specifies; by default, of the dataset of the first experiment. */
async function datasetNumber(tx: Tx, caller: Caller, body: ComparativeCreate): Promise<number> {
  if (body.reference_dataset_id) return (await getDataset(tx, caller, body.reference_dataset_id)).dataset_no;
  const [session_id] = body.experiment_ids as [string, ...string[]];
  const { dataset_no } = await getExperiment(tx, caller, session_id);
  if (dataset_no === null) throw new ApiError("session_elsewhere", { session_id });
  return dataset_no;
}

async function comparativeRecord(tx: Tx, row: ComparativeExperimentRow): Promise<ComparativeExperiment> {
  const ids = JSON.parse(row.experiment_ids) as string[];
  const found = new Map((await experimentsById(tx, row.tenant_id, ids)).map((row) => [row.experiment_id, row.name]));
  const [dataset] = await datasetsByNo(tx, [row.dataset_no]);
  return {
    id: row.comparative_experiment_id,
    name: row.name,
    description: row.description,
    tenant_id: row.tenant_id,
    created_at: isoOfMilliseconds(row.created_at),
    modified_at: isoOfMilliseconds(row.modified_at),
    reference_dataset_id: dataset?.dataset_id ?? "",
    extra: parseJson(row.extra),
    experiments_info: ids.flatMap((id) => (found.has(id) ? [{ id, name: found.get(id) as string }] : [])),
    feedback_stats: null,
  };
}
