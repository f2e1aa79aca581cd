import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import type { Distribution } from "../../../../../src/experiments/contract/app-comparison.ts";
import type { PairComparison } from "../../../../../src/experiments/contract/comparison.ts";
import type { KeyConfig } from "../../../../../src/experiments/contract/feedback-configs.ts";
import type { Session } from "../../../../../src/experiments/contract/sessions.ts";
import { delta, number, rough } from "../../../ui/format.ts";
import { datasetQuery, keysQuery } from "../queries.ts";
import { differencesQuery, distributionsQuery, sessionsQuery } from "./queries.ts";
import type { Search } from "./search.ts";
import { chosenIds, shownOf } from "./selected-experiments.ts";

/** A feedback key of the compared experiments. */
export interface Key {
  name: string;
  isLowerBetter: boolean;
  /** All scores are 0 or 1: fail or pass. */
  isBinary: boolean;
  categories: ReadonlyMap<number, string>;
  /** Undefined if the key has labels or comments only. */
  distribution: Distribution | undefined;
}

/** The compared experiments in display order, the baseline first. */
export interface View {
  dataset_id: string;
  shown: readonly Session[];
  hidden: readonly Session[];
  /** The number of IDs in the URL that are not experiments of the dataset. */
  missing: number;
  keys: readonly Key[];
  /** The difference from the baseline; undefined while it is being computed. */
  differenceOf(session_id: string, key: string): PairComparison | undefined;
  /** Confidence intervals and tests have been computed. */
  hasSignificance: boolean;
}

interface Loading {
  view: View | undefined;
  /** The IDs of the visible experiments, known before the view has loaded. */
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
  // Keeps its identity until the data changes, so that scrolling does not render the components that use it.
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
    };
  }, [dataset_id, ids, known, shown, hidden, distributions.data, configs.data, differences, hasSignificance]);
  return { ids: shownIds, error: failed?.error ?? null, retry: () => void failed?.refetch(), view };
}

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
      distribution,
    };
  });
  // Keys with scores before keys with labels or comments.
  return [...keys.filter(({ distribution }) => distribution), ...keys.filter(({ distribution }) => !distribution)];
}

/** Formats a score: its label, pass or fail, or the number. */
export function scoreText({ categories, isBinary }: Key, score: number): string {
  const label = categories.get(score);
  if (label !== undefined) return label;
  if (isBinary && (score === 0 || score === 1)) return score === 1 ? "pass" : "fail";
  return number(score);
}

/** The direction of a difference: 1 better, -1 worse, 0 none. */
export const signOf = (delta: number, isLowerBetter: boolean): number => Math.sign(delta) * (isLowerBetter ? -1 : 1);

const SIGNIFICANCE_LEVEL = 0.05;

/** The interval does not contain 0, and the test is significant after correction for all keys and experiments. */
export const isSignificant = ({ ci_low, ci_high, p_adjusted }: PairComparison): boolean =>
  ci_low !== null &&
  ci_high !== null &&
  (ci_low > 0 || ci_high < 0) &&
  p_adjusted !== null &&
  p_adjusted < SIGNIFICANCE_LEVEL;

/** Pass and fail are shown as words, without a difference. */
const isPassed = ({ isBinary }: Key, score: number): boolean => isBinary && (score === 0 || score === 1);

/** The difference of a score to the baseline: `−0.57`; empty for pass and fail. */
export const changeText = (key: Key, score: number, before: number): string =>
  isPassed(key, score) && isPassed(key, before) ? "" : delta(score - before, rough);
