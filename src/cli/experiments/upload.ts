import type { UploadResult } from "../../experiments/contract/upload.ts";
import type { JsonObject } from "../../platform/lib/json/json.ts";
import { type Answer, ask, detailOf, jsonOf, refusal, type Target } from "./api.ts";
import { CommandError } from "./command-error.ts";
import { readCsv } from "./formats/csv.ts";
import { detectFormat, type Format } from "./formats/detect.ts";
import type { ReadFormat } from "./formats/format.ts";
import { readJson } from "./formats/json.ts";
import { readJsonl } from "./formats/jsonl.ts";
import { readLmEval } from "./formats/lm-eval.ts";
import { readPromptfoo } from "./formats/promptfoo.ts";
import { InputFile } from "./input-file.ts";
import { count, Progress } from "./progress.ts";
import { refusedRows } from "./refused-rows.ts";
import type { Results } from "./rows.ts";

/** What the command line says; each of the head's fields goes before what the file says. */
export interface UploadFlags {
  format: "auto" | Format;
  name?: string;
  dataset?: string;
  datasetId?: string;
  description?: string;
  metadata?: JsonObject;
  provider?: string;
  prompt?: string;
  /** Print the service's answer. */
  json?: boolean;
}

const FORMATS: Record<Format, ReadFormat> = {
  json: readJson,
  jsonl: readJsonl,
  csv: readCsv,
  "lm-eval": readLmEval,
  promptfoo: readPromptfoo,
};

/** The body is sent in parts of about so many characters. */
const PART_CHARS = 64 * 1024;

/**
 * Sends the results in a file to the service, in one request and without ever holding all of them, and prints what became of
 * them. All are stored, or none.
 *
 * @throws CommandError with a sentence, or a list of what is wrong where
 */
export async function uploadExperiment(path: string, flags: UploadFlags, target: Target): Promise<void> {
  const file = new InputFile(path);
  const sending: Sending = { head: headOf(flags), places: [] };
  const progress = new Progress(process.stderr);
  const step = () => ({ done: file.size === 0 ? 1 : file.read / file.size, rows: sending.places.length });
  const format = flags.format === "auto" ? await detectFormat(file) : flags.format;
  file.onRead = () => progress.show(step());
  try {
    const results = await FORMATS[format](file, { ...flags, dataset: flags.datasetId ?? flags.dataset });
    const body = bodyOf(file, results, sending);
    // What is wrong from the start is told before anything is sent.
    const first = await body.next();
    const rest = continued(first, body, () => progress.await(step(), "the service stores them"));
    const answer = await ask(target, "POST", "/datasets/upload-experiment", rest);
    progress.end(step());
    tellUnknown(results.unknown());
    if (answer.status !== 200) throw new CommandError(whyRefused(file, results, sending, target, answer));
    const stored = jsonOf(target, answer) as UploadResult;
    process.stdout.write(flags.json ? `${answer.text.trimEnd()}\n` : report(stored, sending.places.length, target));
  } catch (error) {
    progress.clear();
    throw error;
  }
}

interface Sending {
  /** Fields that go before those of the file. */
  head: JsonObject;
  /** Where each row that was sent came from. */
  places: number[];
}

/** An upload that names a dataset by one means means that one, whatever the file says by the other. */
function headOf({ name, dataset, datasetId, description, metadata }: UploadFlags): JsonObject {
  const isNamed = dataset !== undefined || datasetId !== undefined;
  return {
    ...(name !== undefined && { experiment_name: name }),
    ...(isNamed && { dataset_name: dataset, dataset_id: datasetId }),
    ...(description !== undefined && { experiment_description: description }),
    ...(metadata !== undefined && { experiment_metadata: metadata }),
  };
}

/** The rows go first: when the experiment began and ended is only known once they have been read. */
async function* bodyOf(file: InputFile, results: Results, { head, places }: Sending): AsyncGenerator<string> {
  let text = '{"results":[';
  for await (const { text: row, place } of results.rows) {
    text += places.length === 0 ? `\n${row}` : `,\n${row}`;
    places.push(place);
    if (text.length < PART_CHARS) continue;
    yield text;
    text = "";
  }
  yield `${text}\n],${JSON.stringify(membersOf(file, results, head)).slice(1)}`;
}

/** All but the rows. An experiment that nobody named is called as its file. */
const membersOf = (file: InputFile, results: Results, head: JsonObject): JsonObject => ({
  experiment_name: file.stem,
  ...results.head(),
  ...head,
});

async function* continued(
  first: IteratorResult<string>,
  rest: AsyncGenerator<string>,
  onEnd: () => void,
): AsyncGenerator<string> {
  if (!first.done) yield first.value;
  yield* rest;
  onEnd();
}

function tellUnknown(unknown: ReadonlySet<string>): void {
  if (unknown.size === 0) return;
  const names = [...unknown].map((name) => `"${name}"`).join(", ");
  process.stderr.write(`Warning: fields of rows that mean nothing here are not stored: ${names}.\n`);
}

function whyRefused(
  file: InputFile,
  results: Results,
  { places, head }: Sending,
  target: Target,
  answer: Answer,
): string {
  if (answer.status === 422) {
    const placeOf = (row: number) => (results.unit === "line" ? `line ${places[row]}` : differing(places[row], row));
    const reasons = refusedRows(answer, placeOf);
    if (reasons) return `${file.name} was refused, and nothing was stored:\n${reasons}`;
  }
  if (answer.status === 409) {
    const detail = detailOf(answer) ?? "conflict";
    const name = membersOf(file, results, head).experiment_name;
    if (/^session already exists/i.test(detail)) return nameTaken(String(name));
    return `Nothing was stored: ${detail}`;
  }
  return refusal(target, answer);
}

const nameTaken = (name: string): string =>
  `There is an experiment "${name}" already, so nothing was stored. Choose another name with --name.`;

/** The place in the file, where it is not the index that the service names. */
const differing = (place: number | undefined, row: number): string | undefined =>
  place === row ? undefined : `element ${place}`;

function report({ dataset, experiment }: UploadResult, rows: number, { url }: Target): string {
  const page = `${url}/o/${dataset.tenant_id}/datasets/${dataset.id}/compare?selectedSessions=${experiment.id}`;
  return `Uploaded ${count(rows, "row")}.

  Experiment  ${experiment.name} (${experiment.id})
  Dataset     ${dataset.name} (${dataset.id})
  Page        ${page}
`;
}
