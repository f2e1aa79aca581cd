import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import type { Distribution } from "../../../../../src/experiments/contract/app-comparison.ts";
import type { PairComparison } from "../../../../../src/experiments/contract/comparison.ts";
import type { KeyConfig } from "../../../../../src/experiments/contract/feedback/feedback-configs.ts";
import type { Session } from "../../../../../src/experiments/contract/sessions.ts";
import { decimalsFor, delta, fixed, number, rough } from "../../../ui/format.ts";
import { datasetQuery, keysQuery } from "../queries.ts";
import { differencesQuery, distributionsQuery, sessionsQuery } from "./queries.ts";
import type { Search } from "./search.ts";
import { chosenIds, shownOf } from "./selected-experiments.ts";

/** A feedback key of the compared experiments. */
export interface Key {
  name: string;
  isLowerBetter: boolean;
  /** Whether all scores are 0 or 1 and the key has no categories. Such scores are shown as fail and pass. */
  isBinary: boolean;
  categories: ReadonlyMap<number, string>;
  /** Number of decimals of all scores in the table, so that they align. Undefined for integers. */
  decimals: number | undefined;
  /** Distribution of the scores. Undefined if the key has only labels or comments. */
  distribution: Distribution | undefined;
}

/** Data of the comparison page. The first shown experiment is the baseline. */
export interface View {
  dataset_id: string;
  shown: readonly Session[];
  hidden: readonly Session[];
  /** Number of IDs in the URL that are not experiments of the dataset. */
  missing: number;
  keys: readonly Key[];
  /** Returns an experiment's difference from the baseline. Undefined if not loaded yet or if the key has no differences. */
  differenceOf(session_id: string, key: string): PairComparison | undefined;
  /** Whether confidence intervals and p-values have been computed. */
  hasSignificance: boolean;
  /** Whether an example has a score of the same key in the baseline and in another experiment; true until that is known. */
  hasPairs: boolean;
}

interface Loading {
  view: View | undefined;
  /** IDs of the visible experiments, available before the view has loaded. */
  ids: readonly string[];
  error: Error | null;
  retry(): void;
}

export function useView(dataset_id: string, search: Search): Loading {
  const { experiments, baseline, hidden: without } = search;
  const ids = useMemo(() => chosenIds({ experiments }), [experiments]);
  const dataset = useQuery(datasetQuery(dataset_id));
  const sessions = useQuery(sessionsQuery(dataset_id, ids));
  const known = dataset.data && sessions.data;
  const named = baseline ?? dataset.data?.baseline_experiment_id;
  const { shown, hidden } = useMemo(() => shownOf(ids, known ?? [], named, without), [ids, known, named, without]);
  const shownIds = shown.map(({ id }) => id);
  const distributions = useQuery(distributionsQuery(dataset_id, shownIds));
  const configs = useQuery(keysQuery);
  const quick = useQuery(differencesQuery(dataset_id, shownIds, false));
  const whole = useQuery(differencesQuery(dataset_id, shownIds, true));
  const differences = whole.data ?? quick.data;
  const hasSignificance = whole.data !== undefined;
  const failed = [dataset, sessions, distributions, configs, quick, whole].find(({ error }) => error);
  // The view object stays the same until its data changes, so that scrolling does not re-render the components that use it.
  const view = useMemo((): View | undefined => {
    if (!known || !configs.data || !(distributions.data || shown.length === 0)) return undefined;
    return {
      dataset_id,
      shown,
      hidden,
      missing: ids.length - shown.length - hidden.length,
      keys: keysOf(shown, distributions.data ?? [], configs.data),
      differenceOf: (session_id, key) =>
        differences?.find((difference) => difference.session_id === session_id && difference.key === key),
      hasSignificance,
      hasPairs: differences === undefined || hasPairs(differences),
    };
  }, [dataset_id, ids, known, shown, hidden, distributions.data, configs.data, differences, hasSignificance]);
  return { ids: shownIds, error: failed?.error ?? null, retry: () => void failed?.refetch(), view };
}

/** Without pairs there is nothing to test, which is no result of a test. */
export const hasPairs = (differences: readonly PairComparison[]): boolean =>
  differences.some(({ n_paired }) => n_paired > 0);

export function keysOf(
  shown: readonly Session[],
  distributions: readonly Distribution[],
  configs: readonly KeyConfig[],
): Key[] {
  const names = new Set(shown.flatMap(({ feedback_stats }) => Object.keys(feedback_stats ?? {})));
  const keys = [...names].sort().map((name): Key => {
    const config = configs.find(({ feedback_key }) => feedback_key === name);
    const distribution = distributions.find(({ key }) => key === name);
    const categories = config?.feedback_config.categories ?? [];
    return {
      name,
      isLowerBetter: config?.is_lower_score_better ?? false,
      isBinary: (distribution?.is_binary ?? false) && categories.length === 0,
      categories: new Map(categories.flatMap(({ value, label }) => (label === null ? [] : [[value, label]]))),
      decimals: distribution && decimalsFor([distribution.low, distribution.high]),
      distribution,
    };
  });
  // Keys with scores come before keys that have only labels or comments.
  return [...keys.filter(({ distribution }) => distribution), ...keys.filter(({ distribution }) => !distribution)];
}

/** Formats a score as its label, as pass or fail, or as a number. */
export function scoreText({ categories, isBinary }: Key, score: number, decimals?: number): string {
  const label = categories.get(score);
  if (label !== undefined) return label;
  if (isBinary && (score === 0 || score === 1)) return score === 1 ? "pass" : "fail";
  return decimals === undefined ? number(score) : fixed(score, decimals);
}

/** Sign of a difference: 1 for better, -1 for worse, 0 for no difference. */
export const signOf = (delta: number, isLowerBetter: boolean): number => Math.sign(delta) * (isLowerBetter ? -1 : 1);

const SIGNIFICANCE_LEVEL = 0.05;

/**
 * Whether a difference is significant: its confidence interval excludes 0, and its p-value, corrected for all keys and experiments, is
 * below the significance level.
 */
export const isSignificant = ({ ci_low, ci_high, p_adjusted }: PairComparison): boolean =>
  ci_low !== null &&
  ci_high !== null &&
  (ci_low > 0 || ci_high < 0) &&
  p_adjusted !== null &&
  p_adjusted < SIGNIFICANCE_LEVEL;

/** Whether the score is shown as pass or fail, without a difference. */
const isPassed = ({ isBinary }: Key, score: number): boolean => isBinary && (score === 0 || score === 1);

/**
 * Formats a score's difference from the baseline, for example `−0.57`, with the same precision in a column. A smaller difference has more
 * decimals. Empty for pass and fail scores.
 */
export function changeText(key: Key, score: number, before: number): string {
  if (isPassed(key, score) && isPassed(key, before)) return "";
  const decimals = Math.min(key.decimals ?? 0, 2);
  const isBelow = Math.abs(score - before) < 10 ** -decimals;
  return delta(score - before, (size) => (isBelow ? rough(size) : fixed(size, decimals)));
}
