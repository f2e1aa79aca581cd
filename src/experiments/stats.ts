import type { FeedbackStats, KeyStats } from "./contract/sessions.ts";
import { describe, percentile } from "./statistics/describe.ts";
import type { Judgement } from "./storage/feedback.ts";

/** What an experiment adds up to, as its row keeps it. Every number that a user sees comes from here. */
export interface ExperimentStats {
  run_count: number;
  /** Seconds; percentiles by linear interpolation. Null without runs. */
  latency_p50: number | null;
  latency_p99: number | null;
  /** The share of runs that failed. */
  error_rate: number | null;
  /** The share of runs that streamed: uploads do not say, so none. */
  streaming_rate: number | null;
  last_run_start_us: number | null;
  feedback_stats: FeedbackStats;
  /** Of the feedback on the experiment as a whole. */
  session_feedback_stats: FeedbackStats;
}

export interface Measures {
  start_us: number;
  end_us: number;
  error: string | null;
}

export type RunFigures = Omit<ExperimentStats, "feedback_stats" | "session_feedback_stats">;

/** The part of the statistics that comes from the runs alone. */
export function figuresOf(runs: readonly Measures[]): RunFigures {
  const latencies = Float64Array.from(runs, secondsOf).sort();
  const count = runs.length;
  return {
    run_count: count,
    latency_p50: percentile(latencies, 50),
    latency_p99: percentile(latencies, 99),
    error_rate: count === 0 ? null : runs.filter(({ error }) => error !== null).length / count,
    streaming_rate: count === 0 ? null : 0,
    last_run_start_us: runs.reduce<number | null>((last, { start_us }) => Math.max(last ?? start_us, start_us), null),
  };
}

export const secondsOf = ({ start_us, end_us }: Pick<Measures, "start_us" | "end_us">): number =>
  (end_us - start_us) / 1e6;

/** As many remarks of a key are shown with its statistics. */
const SHOWN_COMMENTS = 10;

/** The statistics of one key. */
export function keyStats(judgements: readonly Judgement[]): KeyStats {
  const [first] = judgements;
  if (first && judgements.length === 1) return statsOfOne(first);
  const { n: _, ...numbers } = describe(judgements.flatMap(({ score }) => (score === null ? [] : [score])));
  // Not an object: "constructor" is a label like any other.
  const counts = new Map<string, number>();
  for (const { value } of judgements) {
    const label = labelOf(value);
    if (label !== undefined) counts.set(label, (counts.get(label) ?? 0) + 1);
  }
  // Of 10,000 judgements hardly two have come from different sources: each is read once.
  const sources = new Set(judgements.map(({ source }) => source));
  return {
    n: judgements.length,
    ...numbers,
    values: Object.fromEntries(counts),
    errors: judgements.filter(({ is_error }) => is_error === 1).length,
    comments: judgements.flatMap(({ comment }) => comment ?? []).slice(0, SHOWN_COMMENTS),
    sources: [...new Set([...sources].flatMap((source) => typeOf(source) ?? []))].sort(),
    contains_thread_feedback: false,
  };
}

/** The same of a single judgement: what nearly each run has of a key, and a page has 1,500 of. */
function statsOfOne({ score, value, comment, source, is_error }: Judgement): KeyStats {
  const label = labelOf(value);
  const type = typeOf(source);
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

/** A text or a boolean is a label that can be counted; numbers and objects are not. */
function labelOf(value: string | null): string | undefined {
  if (value === null || !(value.startsWith('"') || value === "true" || value === "false")) return undefined;
  return String(JSON.parse(value));
}

const typeOf = (source: string | null): string | undefined =>
  source === null ? undefined : (JSON.parse(source) as { type?: string }).type;

/** The statistics of each key, in the order of their names. */
export function feedbackStats(judgements: readonly Judgement[]): FeedbackStats {
  const byKey = Map.groupBy(judgements, ({ key }) => key);
  return Object.fromEntries([...byKey.keys()].sort().map((key) => [key, keyStats(byKey.get(key) ?? [])]));
}

/** A name that an object would list by its number: 9 before 10. */
const IS_NUMBERED = /^\d/;

/**
 * The JSON text of {@link feedbackStats}. Of a run that has one judgement a key, as nearly all have, it is put together: a page of 500
 * runs with three keys each spent a sixth of its time on the objects.
 */
export function feedbackStatsText(judgements: readonly Judgement[]): string {
  const sorted = judgements.toSorted((a, b) => (a.key < b.key ? -1 : 1));
  const isPlain = sorted.every(({ key }, index) => key !== sorted[index - 1]?.key && !IS_NUMBERED.test(key));
  if (!isPlain) return JSON.stringify(feedbackStats(judgements));
  return `{${sorted.map((one) => `${JSON.stringify(one.key)}:${textOfOne(one)}`).join(",")}}`;
}

/** The JSON text of {@link statsOfOne}. */
function textOfOne({ score, value, comment, source, is_error }: Judgement): string {
  const number = score !== null && Number.isFinite(score) ? String(score) : "null";
  const label = labelOf(value);
  const values = label === undefined ? "{}" : `{${JSON.stringify(label)}:1}`;
  const comments = comment === null ? "[]" : `[${JSON.stringify(comment)}]`;
  return `{"n":1,"avg":${number},"min":${number},"max":${number},"stdev":null,"values":${values},"errors":${is_error},"comments":${comments},"sources":${sourcesText(source)},"contains_thread_feedback":false}`;
}

/** Of sources that were met before: there are hardly more than two. */
const sourceTexts = new Map<string | null, string>();
const MAX_SOURCES = 100;

function sourcesText(source: string | null): string {
  const known = sourceTexts.get(source);
  if (known !== undefined) return known;
  if (sourceTexts.size === MAX_SOURCES) sourceTexts.clear();
  const type = typeOf(source);
  const text = type === undefined ? "[]" : JSON.stringify([type]);
  sourceTexts.set(source, text);
  return text;
}

/** A place with a number: what a vector is made of. */
export interface Placed {
  ord: number;
  repetition: number;
  value: number;
}

/**
 * One number an example: the mean over its repetitions of the mean in each, so that an example counts once however often it
 * ran. NaN where there is none.
 */
export function vectorOf(values: readonly Placed[]): Float64Array {
  const length = values.reduce((most, { ord }) => Math.max(most, ord + 1), 0);
  const vector = new Float64Array(length).fill(Number.NaN);
  const counts = new Uint32Array(length);
  for (const { ord, value } of values) {
    vector[ord] = value;
    counts[ord] = (counts[ord] as number) + 1;
  }
  // Nearly every example has one value, and needs no mean: grouping 10,000 of them made 20,000 maps.
  const several = values.filter(({ ord }) => (counts[ord] as number) > 1);
  for (const [ord, some] of Map.groupBy(several, ({ ord }) => ord)) vector[ord] = meanOfRuns(some);
  return vector;
}

function meanOfRuns(values: readonly Placed[]): number {
  const runs = Map.groupBy(values, ({ repetition }) => repetition).values();
  return mean(Array.from(runs, (of) => mean(of.map(({ value }) => value))));
}

const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

/** The scores of one key that belong to runs. */
export const scoresOf = (judgements: readonly Judgement[]): Placed[] =>
  judgements.flatMap(({ ord, repetition, score }) =>
    ord === null || repetition === null || score === null ? [] : { ord, repetition, value: score },
  );
