import { randomUUID } from "node:crypto";
import type { Client } from "langsmith";
import { expect } from "vitest";
import { experimentOf, type Row, type Upload } from "../../experiments/experiment.ts";

/** The client under test, and where it sends its requests. */
export interface Target {
  client: Client;
  /** As the client was given it: with or without `/api/v1`. */
  apiUrl: string;
  /** Where the client believes the web app to be. */
  webUrl: string;
}

/** Asked for in each test: the service is started after the tests are declared. */
export type GetTarget = () => Target;

// biome-ignore lint/suspicious/noExplicitAny: the client's types lack half of what the API answers
export type Anything = any;

/** Everything that the client goes through, page by page. */
export async function listed<T>(items: AsyncIterable<T>): Promise<Anything[]> {
  const all: Anything[] = [];
  for await (const item of items) all.push(item);
  return all;
}

/** Uploads with fetch, as users of the route do: no client has a method for it. */
export async function upload({ apiUrl }: Target, body: unknown): Promise<{ dataset: Anything; experiment: Anything }> {
  const response = await fetch(`${apiUrl}/datasets/upload-experiment`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
  return (await response.json()) as { dataset: Anything; experiment: Anything };
}

/** A text that no other test uses, to find one's own records by. */
export const unique = (): string => randomUUID();

export const UUID = expect.stringMatching(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
export const TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}(\d{3})?\+00:00$/);

/** The time of a text as the service writes it. */
export const wire = (time: string): string => new Date(time).toISOString().replace("Z", "+00:00");

/** The errors of the client for a record that is not there, and for a name or an id that is taken. */
export const notFound = (what: string) =>
  expect.objectContaining({
    name: "LangSmithNotFoundError",
    status: 404,
    message: expect.stringContaining(`${what} not found`),
  });
export const conflict = (what: string) =>
  expect.objectContaining({ name: "LangSmithConflictError", status: 409, message: expect.stringContaining(what) });
export const refused = (status: number, what: string) =>
  expect.objectContaining({ status, message: expect.stringContaining(what) });

/** When the rows of {@link graded} begin. */
export const START = Date.UTC(2026, 0, 1);

const TONES = ["dry", "warm", "cold", "constructor"];

/**
 * An experiment whose statistics are unlike each other: latencies without order, some errors, a boolean key, one of numbers
 * that some rows lack, one of labels, and remarks on a few.
 */
export function graded(n: number, more: Partial<Upload> = {}): Upload {
  const scores = (index: number): Record<string, unknown>[] => [
    { key: "correct", score: index % 3 !== 0, ...(index === 4 && { comment: "nearly" }) },
    ...(index % 4 === 1 ? [] : [{ key: "closeness", score: ((index * 37) % 101) / 97 - 0.2 }]),
    { key: "tone", value: TONES[index % TONES.length], feedback_source: { type: index % 2 ? "model" : "api" } },
  ];
  const body = experimentOf(n, scores, more, () => randomUUID());
  for (const [index, row] of body.results.entries()) {
    row.end_time = new Date(START + index + 50 + ((index * 7919) % 997)).toISOString();
    row.run_name = index % 2 ? "odd" : "even";
    row.run_metadata = { index, half: index < n / 2 ? "first" : "second" };
    if (index % 9 === 4) row.error = `Failed at ${index}`;
  }
  return body;
}

interface Score {
  key: string;
  score?: number | boolean;
  value?: unknown;
  comment?: string;
  feedback_source?: { type: string };
}

/** The scores of rows, as they were uploaded. */
export const scoresOf = (rows: readonly Row[]): Score[] =>
  rows.flatMap(({ evaluation_scores }) => (evaluation_scores ?? []) as unknown as Score[]);

/** A number that two ways of computing agree on. */
const near = (value: number | null) => (value === null ? null : expect.closeTo(value, 9));

/** Linear interpolation between the closest ranks: numpy's default. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const rank = share * (sorted.length - 1);
  const [below, above] = [sorted[Math.floor(rank)] as number, sorted[Math.ceil(rank)] as number];
  return below + (rank % 1) * (above - below);
}

const sumOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0);

/** What the feedback of one key adds up to, from its definition. */
export function keyStatistics(scores: readonly Score[]): Record<string, unknown> {
  const numbers = scores.flatMap(({ score }) => (score === undefined ? [] : [Number(score)]));
  const mean = sumOf(numbers) / numbers.length;
  const variance = sumOf(numbers.map((number) => (number - mean) ** 2)) / (numbers.length - 1);
  const labels = scores.flatMap(({ value }) => (typeof value === "string" ? [value] : []));
  return {
    n: scores.length,
    avg: near(numbers.length > 0 ? mean : null),
    min: near(numbers.length > 0 ? Math.min(...numbers) : null),
    max: near(numbers.length > 0 ? Math.max(...numbers) : null),
    stdev: near(numbers.length > 1 ? Math.sqrt(variance) : null),
    values: Object.fromEntries(
      [...new Set(labels)].map((label) => [label, labels.filter((one) => one === label).length]),
    ),
    errors: 0,
    comments: scores.flatMap(({ comment }) => comment ?? []),
    sources: [...new Set(scores.map(({ feedback_source }) => feedback_source?.type ?? "api"))].sort(),
    contains_thread_feedback: false,
  };
}

export function feedbackStatistics(scores: readonly Score[]): Record<string, unknown> {
  const keys = [...new Set(scores.map(({ key }) => key))];
  return Object.fromEntries(keys.map((key) => [key, keyStatistics(scores.filter((score) => score.key === key))]));
}

/** What an upload leaves unknown. */
export const UNKNOWN = {
  first_token_p50: null,
  first_token_p99: null,
  total_tokens: null,
  prompt_tokens: null,
  completion_tokens: null,
  total_cost: null,
  prompt_cost: null,
  completion_cost: null,
};

/** The statistics of a project without runs, or where nobody asked for them. */
export const NO_STATISTICS = {
  ...UNKNOWN,
  run_count: null,
  latency_p50: null,
  latency_p99: null,
  last_run_start_time: null,
  last_run_start_time_live: null,
  feedback_stats: null,
  session_feedback_stats: null,
  run_facets: null,
  error_rate: null,
  streaming_rate: null,
};

/** All statistics of a project, computed from the rows that were uploaded. */
export function statisticsOf(rows: readonly Row[], summary: readonly Score[] = []): Record<string, unknown> {
  const seconds = rows.map(({ start_time, end_time }) => (Date.parse(end_time) - Date.parse(start_time)) / 1000);
  const last = Math.max(...rows.map(({ start_time }) => Date.parse(start_time)));
  return {
    ...NO_STATISTICS,
    run_count: rows.length,
    latency_p50: near(percentile(seconds, 0.5)),
    latency_p99: near(percentile(seconds, 0.99)),
    last_run_start_time: wire(new Date(last).toISOString()),
    feedback_stats: feedbackStatistics(scoresOf(rows)),
    session_feedback_stats: feedbackStatistics(summary),
    run_facets: [],
    error_rate: near(rows.filter(({ error }) => error).length / rows.length),
    streaming_rate: 0,
  };
}
