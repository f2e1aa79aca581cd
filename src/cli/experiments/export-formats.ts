import { stringify } from "csv-stringify/sync";
import type { Dataset } from "../../experiments/contract/datasets/datasets.ts";
import type { FeedbackStats, Session } from "../../experiments/contract/sessions.ts";
import { isObject, type JsonObject } from "../../platform/lib/json/json.ts";
import { isoOfMicroseconds, microsecondsOf } from "../../platform/lib/times.ts";

/** An experiment in the form of an upload. */
export interface Exported {
  session: Session;
  dataset: Dataset;
  /** Scores of the experiment as a whole. */
  summary: JsonObject[];
  rows: AsyncIterable<JsonObject>;
}

export const WRITERS = { json: jsonText, jsonl: jsonlText, csv: csvText };

/** Writes an upload request body. The experiment's start and end times come last, because they are computed from all rows. */
async function* jsonText({ session, dataset, summary, rows }: Exported): AsyncGenerator<string> {
  const metadata = session.extra?.metadata;
  const head = {
    experiment_name: session.name,
    experiment_description: session.description ?? undefined,
    dataset_id: dataset.id,
    dataset_name: dataset.name,
    dataset_description: dataset.description ?? undefined,
    experiment_metadata: isObject(metadata) ? metadata : undefined,
    summary_experiment_scores: summary.length > 0 ? summary : undefined,
  };
  let first = timeOf(session.start_time) ?? Number.POSITIVE_INFINITY;
  let last = timeOf(session.end_time) ?? Number.NEGATIVE_INFINITY;
  let separator = "";
  yield `${JSON.stringify(head).slice(0, -1)},"results":[`;
  for await (const row of rows) {
    yield `${separator}\n${JSON.stringify(row)}`;
    separator = ",";
    first = Math.min(first, timeOf(row.start_time) ?? first);
    last = Math.max(last, timeOf(row.end_time) ?? last);
  }
  const window = {
    experiment_start_time: isoOfMicroseconds(first),
    experiment_end_time: isoOfMicroseconds(Math.max(first, last)),
  };
  yield `\n],${JSON.stringify(window).slice(1)}\n`;
}

const timeOf = (text: unknown): number | undefined => (typeof text === "string" ? microsecondsOf(text) : undefined);

async function* jsonlText({ rows }: Exported): AsyncGenerator<string> {
  for await (const row of rows) yield `${JSON.stringify(row)}\n`;
}

/** A column of the CSV file. `scores` and `rest` of a row come from {@link splitScores}. */
interface Column {
  name: string;
  cell(row: JsonObject, scores: Map<string, JsonObject>, rest: JsonObject[]): unknown;
}

/** Also quotes cells that contain a lone carriage return, because spreadsheets treat it as the end of a line. */
const line = (cells: unknown[]): string => stringify([cells], { quoted_match: /\r/ });

const json = (value: unknown): string => (value === undefined ? "" : JSON.stringify(value));

const field = (name: string, of = name): Column => ({ name, cell: (row) => row[of] });
const jsonField = (name: string, of = name): Column => ({ name, cell: (row) => json(row[of]) });

/**
 * Writes a header and one line per row. The score columns are derived from the experiment's feedback statistics, so rows can be streamed.
 * Objects are written as JSON in one cell, because their keys can differ between rows.
 */
async function* csvText({ session, rows }: Exported): AsyncGenerator<string> {
  const parts = scoreColumns(session.feedback_stats ?? {});
  const columns: Column[] = [
    field("row_id"),
    jsonField("inputs"),
    jsonField("expected_outputs"),
    jsonField("actual_outputs"),
    ...parts.map(([part, key]) => ({
      name: `${part}.${key}`,
      cell: (_: JsonObject, scores: Map<string, JsonObject>) => scores.get(key)?.[part],
    })),
    { name: "evaluation_scores", cell: (_, __, rest) => (rest.length > 0 ? json(rest) : "") },
    ...["start_time", "end_time", "run_name", "error"].map((name) => field(name)),
    jsonField("metadata", "run_metadata"),
  ];
  const names = new Set(columns.map(({ name }) => name));
  yield line(columns.map(({ name }) => name));
  for await (const row of rows) {
    const { scores, rest } = splitScores((row.evaluation_scores ?? []) as JsonObject[], names);
    yield line(columns.map(({ cell }) => cell(row, scores, rest)));
  }
}

type ScorePart = "score" | "value" | "comment";

function scoreColumns(stats: FeedbackStats): [part: ScorePart, key: string][] {
  return Object.entries(stats).flatMap(([key, { avg, values, comments }]) => {
    const hasPart = { score: avg !== null, value: Object.keys(values).length > 0, comment: comments.length > 0 };
    return (Object.keys(hasPart) as ScorePart[])
      .filter((part) => hasPart[part])
      .map((part): [ScorePart, string] => [part, key]);
  });
}

/** For each key, `scores` contains the first score whose fields all have columns. `rest` contains all other scores. */
function splitScores(all: JsonObject[], names: ReadonlySet<string>) {
  const scores = new Map<string, JsonObject>();
  const rest: JsonObject[] = [];
  for (const score of all) {
    const key = String(score.key);
    if (scores.has(key) || !fitsColumns(score, names)) rest.push(score);
    else scores.set(key, score);
  }
  return { scores, rest };
}

/** Fields of a score that are not written to its CSV columns. */
const OMITTED = ["key", "feedback_source", "created_at", "modified_at"];

function fitsColumns(score: JsonObject, names: ReadonlySet<string>): boolean {
  const parts = Object.keys(score).filter((part) => !OMITTED.includes(part));
  const isCell = (part: string) =>
    names.has(`${part}.${score.key}`) && (part === "score" || (typeof score[part] === "string" && score[part] !== ""));
  return parts.length > 0 && parts.every(isCell);
}
