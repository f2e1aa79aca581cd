import { createWriteStream } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { extname } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { stringify } from "csv-stringify/sync";
import type { ExampleWithRuns } from "../../experiments/contract/comparison.ts";
import type { Dataset } from "../../experiments/contract/datasets/datasets.ts";
import type { Feedback } from "../../experiments/contract/feedback/feedback.ts";
import type { FeedbackStats, Session } from "../../experiments/contract/sessions.ts";
import { isUuid } from "../../platform/lib/ids.ts";
import { isObject, type JsonObject } from "../../platform/lib/json/json.ts";
import { isoOfMicroseconds, microsecondsOf } from "../../platform/lib/times.ts";
import { CommandError, type Target } from "../command.ts";
import { describeFailure, jsonOf, request, requestJson } from "../service-client.ts";
import { countOf, Progress } from "./progress.ts";

export interface ExportFlags {
  format?: keyof typeof WRITERS;
  /** Undefined for standard output. */
  output?: string;
}

/** Page size: the maximum that all list routes accept. */
const PAGE = 100;

/**
 * Writes an experiment to a file that `experiments upload` accepts, with the IDs, times and scores of its rows. Only the JSON format
 * includes the fields and scores of the experiment itself.
 *
 * @throws CommandError when the experiment does not exist or the file cannot be written; a failed export leaves no partial file
 */
export async function exportExperiment(experiment: string, flags: ExportFlags, target: Target): Promise<void> {
  const format = flags.format ?? formatOf(flags.output);
  const session =
    (isUuid(experiment) ? await findById(target, experiment) : undefined) ?? (await findByName(target, experiment));
  // If the output goes to a terminal, progress is not shown, because the two would overwrite each other.
  const isShared = flags.output === undefined && process.stdout.isTTY;
  const progress = new Progress(isShared ? { write: () => true } : process.stderr);
  const total = session.run_count ?? 0;
  let rows = 0;
  const step = () => ({ fraction: total === 0 ? undefined : Math.min(1, rows / total), rows });
  const onRows = (n: number) => {
    rows += n;
    progress.show(step());
  };
  try {
    const exported: Exported = {
      session,
      dataset: await readDataset(target, session),
      summary: await readSummaryScores(target, session),
      rows: readRows(target, session, onRows),
    };
    await write(WRITERS[format](exported), flags.output);
    progress.end(step());
    if (flags.output !== undefined) process.stderr.write(`Wrote ${countOf(rows, "row")} to ${flags.output}.\n`);
  } catch (error) {
    progress.clear();
    throw error;
  }
}

function formatOf(output = ""): keyof typeof WRITERS {
  const extension = extname(output).slice(1).toLowerCase();
  return extension === "jsonl" || extension === "csv" ? extension : "json";
}

/** Writes to standard output, or to a temporary file that is renamed once it is complete. */
async function write(text: AsyncIterable<string>, output: string | undefined): Promise<void> {
  const partial = `${output}.partial`;
  try {
    if (output === undefined) return await pipeline(Readable.from(text), process.stdout, { end: false });
    await pipeline(Readable.from(text), createWriteStream(partial));
    await rename(partial, output);
  } catch (error) {
    if (output !== undefined) await rm(partial, { force: true });
    const { code, syscall } = error as NodeJS.ErrnoException;
    // The reader of the pipe, such as `head`, has closed the pipe. This is not an error.
    if (code === "EPIPE") return;
    if (!syscall) throw error;
    throw new CommandError(
      `Cannot write to ${output ?? "standard output"} (${code}). Choose ${output === undefined ? "a" : "another"} file with --output.`,
    );
  }
}

async function findById(target: Target, id: string): Promise<Session | undefined> {
  const answer = await request(target, "GET", `/api/v1/sessions/${id}?include_stats=true`);
  if (answer.status === 404) return undefined;
  if (answer.status !== 200) throw new CommandError(describeFailure(target, answer));
  return jsonOf(target, answer) as Session;
}

async function findByName(target: Target, name: string): Promise<Session> {
  const query = new URLSearchParams({ name, include_stats: "true" });
  const [session] = await requestJson<Session[]>(target, "GET", `/api/v1/sessions?${query}`);
  if (session) return session;
  throw new CommandError(
    `There is no experiment "${name}" at ${target.url}: pass the name or ID of an existing experiment.`,
  );
}

async function readDataset(target: Target, { name, reference_dataset_id }: Session): Promise<Dataset> {
  if (reference_dataset_id === null)
    throw new CommandError(`"${name}" cannot be exported: it is a project without a dataset, not an experiment.`);
  return requestJson<Dataset>(target, "GET", `/api/v1/datasets/${reference_dataset_id}`);
}

/** Reads the scores of the experiment as a whole. */
async function readSummaryScores(target: Target, { id }: Session): Promise<JsonObject[]> {
  const scores: JsonObject[] = [];
  for (let offset = 0; ; offset += PAGE) {
    const query = new URLSearchParams({ session: id, level: "session", limit: `${PAGE}`, offset: `${offset}` });
    const page = await requestJson<Feedback[]>(target, "GET", `/api/v1/feedback?${query}`);
    scores.push(...page.map(scoreOf));
    if (page.length < PAGE) return scores;
  }
}

async function* readRows(
  target: Target,
  { id, reference_dataset_id }: Session,
  onRows: (n: number) => void,
): AsyncGenerator<JsonObject> {
  const path = `/api/v1/datasets/${reference_dataset_id}/runs`;
  for (let offset = 0; ; offset += PAGE) {
    const body = { session_ids: [id], offset, limit: PAGE };
    const page = await requestJson<ExampleWithRuns[]>(target, "POST", path, body);
    const rows = page.flatMap(rowsOfExample);
    yield* rows;
    onRows(rows.length);
    if (page.length < PAGE) return;
  }
}

function rowsOfExample({ id, inputs, outputs, runs }: ExampleWithRuns): JsonObject[] {
  return runs.map((run) => {
    const metadata = run.extra?.metadata;
    return withoutNulls({
      row_id: id,
      inputs: run.inputs ?? inputs,
      expected_outputs: outputs,
      actual_outputs: run.outputs,
      evaluation_scores: run.feedbacks.length > 0 ? run.feedbacks.map(scoreOf) : null,
      start_time: run.start_time,
      end_time: endOf(run),
      run_name: run.name,
      error: run.error,
      run_metadata: isObject(metadata) && Object.keys(metadata).length > 0 ? metadata : null,
    });
  });
}

/** A run may end before it starts, because the JavaScript client adds microseconds to the start only. A run may not have ended. */
const endOf = ({ start_time, end_time }: ExampleWithRuns["runs"][number]): string =>
  end_time === null || end_time < start_time ? start_time : end_time;

/** Converts stored feedback to the score of an upload. Omits the ID of the feedback and the ID of the comparative experiment. */
function scoreOf(feedback: Feedback): JsonObject {
  const { key, score, value, comment, correction, feedback_source, feedback_group_id, extra, created_at, modified_at } =
    feedback;
  const source = typeof feedback_source?.type === "string" ? feedback_source : null;
  const content = { key, score, value, comment, correction, feedback_source: source, feedback_group_id, extra };
  return withoutNulls({ ...content, created_at, modified_at });
}

const withoutNulls = (fields: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null && value !== undefined));

/** An experiment in the form of an upload. */
interface Exported {
  session: Session;
  dataset: Dataset;
  /** Scores of the experiment as a whole. */
  summary: JsonObject[];
  rows: AsyncIterable<JsonObject>;
}

const WRITERS = { json: jsonText, jsonl: jsonlText, csv: csvText };

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
