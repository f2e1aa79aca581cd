import { percentile } from "../../platform/lib/percentile.ts";
import type { RunStats } from "../contract/runs.ts";
import type { FeedbackStats, KeyStats } from "../contract/sessions.ts";
import { describe } from "../statistics/describe.ts";
import type { FeedbackStatsInput } from "../storage/feedback.ts";
import { type OutcomeSums, USAGE_COLUMNS, type UsageSums } from "../storage/traces/outcome-sums.ts";
import type { TreeUsage } from "../storage/traces/trace-schema.ts";

/**
 * The statistics in the row of an experiment. Percentiles use linear interpolation. Without runs, all numbers except `run_count` are
 * null. Uploaded runs have no tokens, no costs and no time of the first token.
 */
export interface ExperimentStats extends RunStatistics {
  feedback_stats: FeedbackStats;
  session_feedback_stats: FeedbackStats;
}

type RunStatistics = Omit<RunStats, "median_tokens" | "last_run_start_time" | "feedback_stats" | "run_facets"> & {
  last_run_start_us: number | null;
};

/** A row of an experiment, or a traced run. Pending runs have no end. */
export interface RunOutcome extends Partial<TreeUsage> {
  start_us: number;
  end_us: number | null;
  error: string | null;
}

/** @param more sums over further runs, which the database has computed */
export function computeRunStats(runs: readonly RunOutcome[], more?: OutcomeSums): RunStatistics {
  const all = more ? [sumsOf(runs), more] : [sumsOf(runs)];
  const count = (of: (sums: OutcomeSums) => number) => all.reduce((total, sums) => total + of(sums), 0);
  const latencies = secondsIn(all.map(({ latencies_us }) => latencies_us));
  const first_tokens = secondsIn(all.map(({ first_tokens_us }) => first_tokens_us));
  const ended = count((sums) => sums.ended);
  const starts = all.flatMap(({ last_run_start_us }) => last_run_start_us ?? []);
  const sum = (column: keyof UsageSums): number | null => sumOf(all.map(({ usage }) => usage[column]));
  return {
    run_count: count((sums) => sums.run_count),
    latency_p50: percentile(latencies, 50),
    latency_p99: percentile(latencies, 99),
    error_rate: ended === 0 ? null : count((sums) => sums.failed) / ended,
    streaming_rate: ended === 0 ? null : first_tokens.length / ended,
    last_run_start_us: starts.length === 0 ? null : Math.max(...starts),
    first_token_p50: percentile(first_tokens, 50),
    first_token_p99: percentile(first_tokens, 99),
    total_tokens: sum("tree_total_tokens"),
    prompt_tokens: sum("tree_prompt_tokens"),
    completion_tokens: sum("tree_completion_tokens"),
    total_cost: sum("tree_total_cost"),
    prompt_cost: sum("tree_prompt_cost"),
    completion_cost: sum("tree_completion_cost"),
  };
}

function sumsOf(runs: readonly RunOutcome[]): OutcomeSums {
  const ended = runs.filter(({ end_us, error }) => end_us !== null || error !== null);
  const timed = runs.filter(({ end_us }) => end_us !== null);
  const streamed = ended.filter(({ tree_first_token_us }) => typeof tree_first_token_us === "number");
  return {
    run_count: runs.length,
    ended: ended.length,
    failed: runs.filter(({ error }) => error !== null).length,
    last_run_start_us: runs.reduce<number | null>((last, { start_us }) => Math.max(last ?? start_us, start_us), null),
    latencies_us: Float64Array.from(timed, ({ start_us, end_us }) => (end_us as number) - start_us),
    tokens: new Float64Array(),
    first_tokens_us: Float64Array.from(streamed, (run) => (run.tree_first_token_us as number) - run.start_us),
    usage: Object.fromEntries(
      USAGE_COLUMNS.map((column) => [column, sumOf(runs.map((run) => run[column] ?? null))]),
    ) as unknown as UsageSums,
  };
}

/** Converts durations to sorted seconds. Negative durations become 0: the JavaScript client truncates end times to milliseconds. */
function secondsIn(durations_us: Float64Array[]): Float64Array {
  const all = new Float64Array(durations_us.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of durations_us) for (const us of part) all[at++] = Math.max(0, us) / 1e6;
  return all.sort();
}

/** Returns null if there is no value. Rounding to 12 decimal places removes binary rounding errors from sums of costs. */
export function sumOf(values: readonly (number | null)[]): number | null {
  const numbers = values.filter((value) => value !== null);
  return numbers.length === 0 ? null : Number(numbers.reduce((sum, value) => sum + value, 0).toFixed(12));
}

/** Returns NaN for a pending run. The end may be before the start, because the JavaScript client truncates it to milliseconds. */
export const secondsOf = ({ start_us, end_us }: Pick<RunOutcome, "start_us" | "end_us">): number =>
  end_us === null ? Number.NaN : Math.max(0, end_us - start_us) / 1e6;

const MAX_COMMENTS = 10;

export function keyStats(feedback: readonly FeedbackStatsInput[]): KeyStats {
  const [first] = feedback;
  if (first && feedback.length === 1) return singleStats(first);
  const { n: _, ...numbers } = describe(feedback.flatMap(({ score }) => (score === null ? [] : [score])));
  // A Map, because "constructor" is a valid label.
  const counts = new Map<string, number>();
  for (const { value } of feedback) {
    const label = labelOf(value);
    if (label !== undefined) counts.set(label, (counts.get(label) ?? 0) + 1);
  }
  // 10,000 feedback rows rarely have more than one source: each distinct source is parsed once.
  const sources = new Set(feedback.map(({ source }) => source));
  return {
    n: feedback.length,
    ...numbers,
    values: Object.fromEntries(counts),
    errors: feedback.filter(({ is_error }) => is_error === 1).length,
    comments: feedback.flatMap(({ comment }) => comment ?? []).slice(0, MAX_COMMENTS),
    sources: [...new Set([...sources].flatMap((source) => sourceType(source) ?? []))].sort(),
    contains_thread_feedback: false,
  };
}

/** {@link keyStats} of a single feedback row, which is the common case. */
function singleStats({ score, value, comment, source, is_error }: FeedbackStatsInput): KeyStats {
  const label = labelOf(value);
  const type = sourceType(source);
  return {
    n: 1,
    avg: score,
    min: score,
    max: score,
    stdev: null,
    values: label === undefined ? {} : { [label]: 1 },
    errors: is_error,
    comments: comment === null ? [] : [comment],
    sources: type === undefined ? [] : [type],
    contains_thread_feedback: false,
  };
}

/** Strings and booleans are labels; numbers and objects are not. */
function labelOf(value: string | null): string | undefined {
  if (value === null || !(value.startsWith('"') || value === "true" || value === "false")) return undefined;
  return String(JSON.parse(value));
}

const sourceType = (source: string | null): string | undefined =>
  source === null ? undefined : (JSON.parse(source) as { type?: string }).type;

export function feedbackStats(feedback: readonly FeedbackStatsInput[]): FeedbackStats {
  const byKey = Map.groupBy(feedback, ({ key }) => key);
  return Object.fromEntries([...byKey.keys()].sort().map((key) => [key, keyStats(byKey.get(key) ?? [])]));
}

/** JavaScript objects list integer keys in numeric order, before all other keys. */
const STARTS_WITH_DIGIT = /^\d/;

/** The JSON text of {@link feedbackStats}. With one row per key, no objects are created: they would take a sixth of a page's time. */
export function feedbackStatsJson(feedback: readonly FeedbackStatsInput[]): string {
  const sorted = feedback.toSorted((a, b) => (a.key < b.key ? -1 : 1));
  const isSimple = sorted.every(({ key }, index) => key !== sorted[index - 1]?.key && !STARTS_WITH_DIGIT.test(key));
  if (!isSimple) return JSON.stringify(feedbackStats(feedback));
  return `{${sorted.map((row) => `${JSON.stringify(row.key)}:${singleStatsJson(row)}`).join(",")}}`;
}

/** The JSON text of {@link singleStats}. */
function singleStatsJson({ score, value, comment, source, is_error }: FeedbackStatsInput): string {
  const number = score !== null && Number.isFinite(score) ? String(score) : "null";
  const label = labelOf(value);
  const values = label === undefined ? "{}" : `{${JSON.stringify(label)}:1}`;
  const comments = comment === null ? "[]" : `[${JSON.stringify(comment)}]`;
  return `{"n":1,"avg":${number},"min":${number},"max":${number},"stdev":null,"values":${values},"errors":${is_error},"comments":${comments},"sources":${sourceTypesJson(source)},"contains_thread_feedback":false}`;
}

/** A cache of {@link sourceTypesJson}: there are rarely more than two sources. */
const sourceTypesCache = new Map<string | null, string>();
const MAX_CACHED_SOURCES = 100;

function sourceTypesJson(source: string | null): string {
  const cached = sourceTypesCache.get(source);
  if (cached !== undefined) return cached;
  if (sourceTypesCache.size === MAX_CACHED_SOURCES) sourceTypesCache.clear();
  const type = sourceType(source);
  const text = type === undefined ? "[]" : JSON.stringify([type]);
  sourceTypesCache.set(source, text);
  return text;
}

/** A value of one run. */
interface IndexedValue {
  example_index: number;
  repetition: number;
  value: number;
}

/** Averages the values of each repetition, then the repetitions of each example. Indexed by example; NaN without values. */
export function meanVector(values: readonly IndexedValue[]): Float64Array {
  const length = values.reduce((max, { example_index }) => Math.max(max, example_index + 1), 0);
  const vector = new Float64Array(length).fill(Number.NaN);
  const counts = new Uint32Array(length);
  for (const { example_index, value } of values) {
    vector[example_index] = value;
    counts[example_index] = (counts[example_index] as number) + 1;
  }
  // Most examples have one value: grouping the values of 10,000 examples would create 20,000 maps.
  const repeated = values.filter(({ example_index }) => (counts[example_index] as number) > 1);
  for (const [example_index, group] of Map.groupBy(repeated, ({ example_index }) => example_index))
    vector[example_index] = meanOfRepetitions(group);
  return vector;
}

function meanOfRepetitions(values: readonly IndexedValue[]): number {
  const repetitions = Map.groupBy(values, ({ repetition }) => repetition).values();
  return mean(Array.from(repetitions, (group) => mean(group.map(({ value }) => value))));
}

const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

/** The scores of the feedback on runs. */
export const runScores = (feedback: readonly FeedbackStatsInput[]): IndexedValue[] =>
  feedback.flatMap(({ example_index, repetition, score }) =>
    example_index === null || repetition === null || score === null ? [] : { example_index, repetition, value: score },
  );

/** The statistics of an experiment without runs, as they are stored. */
export const NO_STATS = JSON.stringify({
  ...computeRunStats([]),
  feedback_stats: {},
  session_feedback_stats: {},
} satisfies ExperimentStats);
