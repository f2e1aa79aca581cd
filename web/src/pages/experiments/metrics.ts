import type { KeyConfig } from "../../../../src/experiments/contract/feedback/feedback-configs.ts";
import type { ExperimentRun } from "../../../../src/experiments/contract/runs.ts";
import type { KeyStats, Session } from "../../../../src/experiments/contract/sessions.ts";
import {
  DASH,
  decimalsFor,
  delta,
  duration,
  fixed,
  number,
  percent,
  percentagePoints,
  seconds,
} from "../../ui/format.ts";

export interface Metric {
  /** Metric ID, such as `feedback.correctness`, `summary.f1`, `latency` or `error`. */
  id: string;
  name: string;
  isLowerBetter: boolean;
  /** Returns the metric's value. Null if the experiment has no value. */
  valueOf(session: Session): number | null;
  format(value: number | null): string;
  /** Formats a difference with its sign. */
  formatChange(by: number): string;
}

/** Returns the metrics of experiments: run feedback by key, experiment feedback, latency and errors. */
export function metricsOf(sessions: readonly Session[], configs: readonly KeyConfig[] = []): Metric[] {
  const lower = new Set(
    configs.filter((config) => config.is_lower_score_better).map(({ feedback_key }) => feedback_key),
  );
  const scored = (id: string, name: string, key: string, statsOf: StatsOf): Metric => ({
    id: `${id}.${key}`,
    name,
    isLowerBetter: lower.has(key),
    valueOf: (session) => statsOf(session)?.[key]?.avg ?? null,
    format: columnFormat(sessions.map((session) => statsOf(session)?.[key]?.avg)),
    formatChange: (by) => delta(by),
  });
  return [
    ...keysOf(sessions, runStats).map((key) => scored("feedback", key, key, runStats)),
    ...keysOf(sessions, summaryStats).map((key) => scored("summary", `${key} (all)`, key, summaryStats)),
    LATENCY,
    ERRORS,
  ];
}

const LATENCY: Metric = {
  id: "latency",
  name: "latency p50",
  isLowerBetter: true,
  valueOf: ({ latency_p50 }) => latency_p50,
  format: seconds,
  formatChange: (by) => delta(by, seconds),
};

const ERRORS: Metric = {
  id: "error",
  name: "errors",
  isLowerBetter: true,
  valueOf: ({ error_rate }) => error_rate,
  format: percent,
  formatChange: (by) => delta(by, percentagePoints),
};

/** Formats all values of a column with the same number of decimals. */
function columnFormat(values: readonly (number | null | undefined)[]): Metric["format"] {
  const decimals = decimalsFor(values);
  return decimals === undefined ? number : (value) => fixed(value, decimals);
}

type StatsOf = (session: Session) => Session["feedback_stats"];
export const runStats: StatsOf = (session) => session.feedback_stats;
const summaryStats: StatsOf = (session) => session.session_feedback_stats;

export const keysOf = (sessions: readonly Session[], statsOf: StatsOf): string[] =>
  [...new Set(sessions.flatMap((session) => Object.keys(statsOf(session) ?? {})))].sort();

/** Summarizes a feedback key by its mean, or by its labels with their counts. */
export function summaryOf(stats: KeyStats | undefined): string {
  if (!stats) return DASH;
  if (stats.avg !== null) return number(stats.avg);
  const labels = Object.entries(stats.values).sort(([, a], [, b]) => b - a);
  return labels.map(([label, n]) => `${label} ${n}`).join(", ") || DASH;
}

/** Returns the entries of the experiment's metadata. */
export const metadataOf = ({ extra }: Session): [string, unknown][] =>
  Object.entries((extra?.metadata as Record<string, unknown> | undefined) ?? {});

/** Comparison function that sorts experiments by their number in the dataset, then by start time, oldest first. */
export const byAge = (a: Session, b: Session): number =>
  (a.test_run_number ?? 0) - (b.test_run_number ?? 0) || a.start_time.localeCompare(b.start_time);

/** The newest experiment and what it is compared with: the baseline, or else the previous experiment. Undefined for fewer than two. */
export function newestPair(sessions: readonly Session[], baseline_id: string | null) {
  const inOrder = [...sessions].sort(byAge);
  const newest = inOrder.at(-1);
  const from = inOrder.find(({ id }) => id === baseline_id && id !== newest?.id) ?? inOrder.at(-2);
  return newest && from && { newest, from };
}

/** Formats a run's latency. */
export const latencyOf = ({ start_time, end_time }: ExperimentRun): string =>
  end_time === null ? DASH : duration(Date.parse(end_time) - Date.parse(start_time));
