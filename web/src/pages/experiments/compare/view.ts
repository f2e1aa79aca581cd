import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import type { Distribution } from "../../../../../src/experiments/contract/app-comparison.ts";
import type { PairComparison } from "../../../../../src/experiments/contract/comparison.ts";
import type { KeyConfig } from "../../../../../src/experiments/contract/feedback-configs.ts";
import type { Session } from "../../../../../src/experiments/contract/sessions.ts";
import { number } from "../../../ui/format.ts";
import { configsQuery, datasetQuery, differencesQuery, distributionsQuery, sessionsQuery } from "./queries.ts";
import type { Search } from "./search.ts";
import { chosenIds, shownOf } from "./shown.ts";

/** A key that some of the experiments was judged by. */
export interface Key {
  name: string;
  isLowerBetter: boolean;
  /** Nothing but 0 and 1: passed or failed. */
  isBinary: boolean;
  /** Names of scores. */
  categories: ReadonlyMap<number, string>;
  /** Undefined where there are labels or remarks alone. */
  distribution: Distribution | undefined;
}

/** What is compared, in the order in which it is shown: the baseline first. */
export interface View {
  dataset_id: string;
  shown: readonly Session[];
  hidden: readonly Session[];
  /** How many of the address are no experiments of the dataset. */
  missing: number;
  keys: readonly Key[];
  /** Against the baseline; undefined while it is being computed. */
  differenceOf(session_id: string, key: string): PairComparison | undefined;
  /** Intervals and tests are there, too. */
  hasSignificance: boolean;
}

interface Loading {
  view: View | undefined;
  /** Of the experiments that are shown: known before all of the view is. */
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
  const configs = useQuery(configsQuery);
  const quick = useQuery(differencesQuery(dataset_id, shownIds, false));
  const whole = useQuery(differencesQuery(dataset_id, shownIds, true));
  const differences = whole.data ?? quick.data;
  const hasSignificance = whole.data !== undefined;
  const failed = [dataset, sessions, distributions, configs, quick, whole].find(({ error }) => error);
  // The same as long as nothing of it changes: all that is drawn from it stays as it is while the table scrolls.
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

/** What the experiments were judged by. */
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
  // Scores are what is compared; labels and remarks come after them.
  return [...keys.filter(({ distribution }) => distribution), ...keys.filter(({ distribution }) => !distribution)];
}

/** A score as people read it: its label, pass or fail, or the number. */
export function scoreText({ categories, isBinary }: Key, score: number): string {
  const label = categories.get(score);
  if (label !== undefined) return label;
  if (isBinary && (score === 0 || score === 1)) return score === 1 ? "pass" : "fail";
  return number(score);
}

/** Whether a difference is for the better (1), for the worse (-1), or none. */
export const signOf = (delta: number, isLowerBetter: boolean): number => Math.sign(delta) * (isLowerBetter ? -1 : 1);

/** Below it a difference is more than chance. */
const LEVEL = 0.05;

/** The interval does not hold 0, and the test, corrected for all keys and experiments, agrees. */
export const isSignificant = ({ ci_low, ci_high, p_adjusted }: PairComparison): boolean =>
  ci_low !== null && ci_high !== null && (ci_low > 0 || ci_high < 0) && p_adjusted !== null && p_adjusted < LEVEL;
