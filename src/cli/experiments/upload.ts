import type { UploadResult } from "../../experiments/contract/upload.ts";
import { isObject, type JsonObject, jsonOrUndefined } from "../../platform/lib/json/json.ts";
import { CommandError, type Target } from "../command.ts";
import { type Answer, describeFailure, detailOf, jsonOf, request } from "../service-client.ts";
import { readCsv } from "./formats/csv.ts";
import { linesOf, readJson, readJsonl } from "./formats/json.ts";
import { valuesOf } from "./formats/json-walk.ts";
import { readLmEval } from "./formats/lm-eval.ts";
import { readPromptfoo } from "./formats/promptfoo.ts";
import { InputFile } from "./input-file.ts";
import { countOf, Progress } from "./progress.ts";
import type { ReadFormat, Results } from "./rows.ts";

export interface UploadFlags {
  format: "auto" | Format;
  name?: string;
  dataset?: string;
  datasetId?: string;
  description?: string;
  metadata?: JsonObject;
  provider?: string;
  prompt?: string;
  json?: boolean;
}

const CHUNK_CHARS = 64 * 1024;

/**
 * Uploads the results in a file in one streamed request, and prints the stored experiment. The service stores all rows or none.
 *
 * @throws CommandError with the reason, or with a list of errors and their positions in the file
 */
export async function uploadExperiment(path: string, flags: UploadFlags, target: Target): Promise<void> {
  const file = new InputFile(path);
  const upload: Upload = { overrides: overridesOf(flags), positions: [] };
  const progress = new Progress(process.stderr);
  const step = () => ({ fraction: file.size === 0 ? 1 : file.read / file.size, rows: upload.positions.length });
  const format = flags.format === "auto" ? await detectFormat(file) : flags.format;
  file.onRead = () => progress.show(step());
  try {
    const results = await READERS[format](file, { ...flags, dataset: flags.datasetId ?? flags.dataset });
    const body = bodyOf(file, results, upload);
    // The first chunk is read before the request starts, so an error in it is reported before anything is sent.
    const first = await body.next();
    const chunks = continueFrom(first, body, () =>
      progress.showWait(step(), "waiting for the service to store the uploaded rows"),
    );
    const answer = await request(target, "POST", "/api/v1/datasets/upload-experiment", chunks);
    progress.end(step());
    warnOfUnknownFields(results.unknown());
    if (answer.status !== 200) throw new CommandError(describeRejection(file, results, upload, target, answer));
    const stored = jsonOf(target, answer) as UploadResult;
    process.stdout.write(
      flags.json ? `${answer.text.trimEnd()}\n` : summaryOf(stored, upload.positions.length, target),
    );
  } catch (error) {
    progress.clear();
    throw error;
  }
}

interface Upload {
  /** Fields of the experiment that override those in the file. */
  overrides: JsonObject;
  /** The position in the file of each row that was sent. */
  positions: number[];
}

/** A dataset flag, whether name or ID, overrides both the name and the ID in the file. */
function overridesOf({ name, dataset, datasetId, description, metadata }: UploadFlags): JsonObject {
  const hasDataset = dataset !== undefined || datasetId !== undefined;
  return {
    ...(name !== undefined && { experiment_name: name }),
    ...(hasDataset && { dataset_name: dataset, dataset_id: datasetId }),
    ...(description !== undefined && { experiment_description: description }),
    ...(metadata !== undefined && { experiment_metadata: metadata }),
  };
}

/** Yields the request body. The rows come first, because the experiment's start and end are known only after all rows are read. */
async function* bodyOf(file: InputFile, results: Results, { overrides, positions }: Upload): AsyncGenerator<string> {
  let text = '{"results":[';
  for await (const { text: row, position } of results.rows) {
    text += positions.length === 0 ? `\n${row}` : `,\n${row}`;
    positions.push(position);
    if (text.length < CHUNK_CHARS) continue;
    yield text;
    text = "";
  }
  yield `${text}\n],${JSON.stringify(fieldsOf(file, results, overrides)).slice(1)}`;
}

/** Returns all fields of the upload except the rows. */
const fieldsOf = (file: InputFile, results: Results, overrides: JsonObject): JsonObject => ({
  experiment_name: file.stem,
  ...results.head(),
  ...overrides,
});

async function* continueFrom(
  first: IteratorResult<string>,
  rest: AsyncGenerator<string>,
  onEnd: () => void,
): AsyncGenerator<string> {
  if (!first.done) yield first.value;
  yield* rest;
  onEnd();
}

function warnOfUnknownFields(unknown: ReadonlySet<string>): void {
  if (unknown.size === 0) return;
  const names = [...unknown].map((name) => `"${name}"`).join(", ");
  process.stderr.write(`warning: unknown row fields were ignored: ${names}.\n`);
}

function describeRejection(
  file: InputFile,
  results: Results,
  { positions, overrides }: Upload,
  target: Target,
  answer: Answer,
): string {
  if (answer.status === 422) {
    // If the index in the upload is also the index in the file, the error shows it only once.
    const describe = (row: number) =>
      results.unit === "element" && positions[row] === row ? undefined : `${results.unit} ${positions[row]}`;
    const errors = listErrors(answer, describe);
    if (errors) return `Nothing was stored, because the service rejected ${file.name}:\n${errors}`;
  }
  if (answer.status === 409) {
    const detail = detailOf(answer) ?? "conflict";
    const name = String(fieldsOf(file, results, overrides).experiment_name);
    if (/^session already exists/i.test(detail))
      return `Experiment "${name}" already exists; nothing was stored. Choose another name with --name.`;
    return `Nothing was stored: ${detail}`;
  }
  return describeFailure(target, answer);
}

/** A validation error: `loc` is for example `["body", "results", 3, "start_time"]`. */
interface ValidationError {
  loc: (string | number)[];
  msg: string;
  input?: unknown;
}

type DescribePosition = (row: number) => string | undefined;

/** One line per error, such as `line 5 (results[3]) start_time: Field required`. Undefined when the response has no list of errors. */
function listErrors({ text }: Answer, describe: DescribePosition): string | undefined {
  const body = jsonOrUndefined(text);
  if (!isObject(body) || !Array.isArray(body.detail) || body.detail.length === 0) return undefined;
  const errors = body.detail as ValidationError[];
  const lines = errors.map(({ loc, msg, input }) => `  ${locationOf(loc, describe)}: ${msg}${shortInput(input)}`);
  return lines.join("\n");
}

function locationOf([, ...loc]: ValidationError["loc"], describe: DescribePosition): string {
  const [list, row, ...field] = loc;
  if (list !== "results" || typeof row !== "number") return fieldPath(loc) || "the upload";
  const position = describe(row);
  const inUpload = `results[${row}]`;
  return `${position === undefined ? inUpload : `${position} (${inUpload})`} ${fieldPath(field)}`.trimEnd();
}

/** `evaluation_scores[0].key` */
const fieldPath = (loc: ValidationError["loc"]): string =>
  loc.map((part, index) => (typeof part === "number" ? `[${part}]` : index > 0 ? `.${part}` : part)).join("");

/** Returns `, not` and the offending value; an empty string if the value is long, an object or null. */
function shortInput(input: unknown): string {
  if (input === undefined || input === null || typeof input === "object") return "";
  const text = JSON.stringify(input);
  return text.length > 60 ? "" : `, not ${text}`;
}

/** @param rows the number of rows that were uploaded */
export function summaryOf(
  {
    dataset,
    experiment,
  }: Pick<UploadResult, "dataset"> & { experiment: Pick<UploadResult["experiment"], "id" | "name"> },
  rows: number,
  { url }: Target,
): string {
  const page = `${url}/o/${dataset.tenant_id}/datasets/${dataset.id}/compare?selectedSessions=${experiment.id}`;
  return `Uploaded ${countOf(rows, "row")}.

  Experiment  ${experiment.name} (${experiment.id})
  Dataset     ${dataset.name} (${dataset.id})
  View        ${page}
`;
}

type Format = "json" | "jsonl" | "csv" | "lm-eval" | "promptfoo";

const READERS: Record<Format, ReadFormat> = {
  json: readJson,
  jsonl: readJsonl,
  csv: readCsv,
  "lm-eval": readLmEval,
  promptfoo: readPromptfoo,
};

/** @throws CommandError when neither the extension nor the first bytes identify the format */
async function detectFormat(file: InputFile): Promise<Format> {
  if (file.extension === ".csv") return "csv";
  if (file.extension === ".json") return detectDocument(file);
  if (file.extension === ".jsonl" || file.extension === ".ndjson") return detectLine(asObject(await firstLine(file)));
  const start = (await file.firstChunk()).trimStart();
  const [line = ""] = start.split("\n", 1);
  const object = asObject(line);
  // A complete object on the first line is a row, unless the file is an upload written on one line.
  if (object && !("results" in object)) return detectLine(object);
  if (/^[[{]/.test(start)) return detectDocument(file);
  if (line.includes(",")) return "csv";
  throw file.error("", "the format cannot be detected. Set it with --format.");
}

function detectLine(object: object | undefined): Format {
  if (!object) return "jsonl";
  if ("doc" in object && ("resps" in object || "filtered_resps" in object)) return "lm-eval";
  return isPromptfooResult(object) ? "promptfoo" : "jsonl";
}

const isPromptfooResult = (object: object): boolean =>
  !("inputs" in object) && ["namedScores", "gradingResult", "promptIdx", "latencyMs"].some((name) => name in object);

/** Detects the format from the first element of the list `results` or of the root list. If `results` is an object, it is promptfoo. */
async function detectDocument(file: InputFile): Promise<Format> {
  let isNested = false;
  const values = valuesOf(file, (path, first) => {
    if (path.length === 0) return "enter";
    if (path.length === 1 && path[0] === "results") {
      isNested = first === "{";
      return isNested ? "stop" : "enter";
    }
    return path.at(-1) === "*" ? "take" : "skip";
  });
  for await (const { value } of values) return isObject(value) && isPromptfooResult(value) ? "promptfoo" : "json";
  return isNested ? "promptfoo" : "json";
}

async function firstLine(file: InputFile): Promise<string> {
  for await (const { text } of linesOf(file)) return text;
  return "";
}

function asObject(text: string): object | undefined {
  const value = jsonOrUndefined(text);
  return isObject(value) ? value : undefined;
}
