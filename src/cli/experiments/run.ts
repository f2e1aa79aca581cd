import { closeSync, existsSync, fsyncSync, openSync, readFileSync, truncateSync, unlinkSync, writeSync } from "node:fs";
import type { Dataset } from "../../experiments/contract/datasets.ts";
import type { Example } from "../../experiments/contract/examples.ts";
import type { Session } from "../../experiments/contract/sessions.ts";
import { isObject, type JsonObject } from "../../platform/lib/json/json.ts";
import { CommandError, type Target } from "../command.ts";
import { requestJson } from "../service-client.ts";
import { type EvaluatorInput, type Evaluators, evaluate, loadEvaluators } from "./evaluators.ts";
import { countOf, Progress } from "./progress.ts";
import { uploadExperiment } from "./upload.ts";

export interface RunFlags {
  dataset: string;
  /** ID of an assistant, or name of a graph. */
  assistant: string;
  name?: string;
  evaluators?: string;
  concurrency: number;
  repetitions: number;
  journal?: string;
  json?: boolean;
}

const PAGE = 100;

/**
 * Runs an assistant on the examples of a dataset, evaluates the outputs, and uploads the results as an experiment. Finished rows are
 * in a journal file, so the same command continues after a crash.
 *
 * @throws CommandError when a request fails; the journal keeps the finished rows
 */
export async function runExperiment(flags: RunFlags, target: Target): Promise<void> {
  const evaluators: Evaluators = flags.evaluators ? await loadEvaluators(flags.evaluators) : new Map();
  const dataset = await findDataset(target, flags.dataset);
  const examples = await readExamples(target, dataset);
  if (examples.length === 0)
    throw new CommandError(`Dataset "${dataset.name}" has no examples. Add examples, or choose another dataset.`);
  const journal = new Journal(flags.journal ?? defaultJournal(flags));
  try {
    await runExamples(examples, flags, target, evaluators, journal);
  } finally {
    journal.close();
  }
  await upload(dataset, flags, target, journal);
}

async function findDataset(target: Target, name: string): Promise<Dataset> {
  const query = new URLSearchParams({ name });
  const [dataset] = await requestJson<Dataset[]>(target, "GET", `/api/v1/datasets?${query}`);
  if (dataset) return dataset;
  throw new CommandError(`There is no dataset "${name}" at ${target.url}: pass the name or ID of an existing dataset.`);
}

async function readExamples(target: Target, { id }: Dataset): Promise<Example[]> {
  const examples: Example[] = [];
  for (let offset = 0; ; offset += PAGE) {
    const query = new URLSearchParams({ dataset: id, order: "id", limit: `${PAGE}`, offset: `${offset}` });
    const page = await requestJson<Example[]>(target, "GET", `/api/v1/examples?${query}`);
    examples.push(...page);
    if (page.length < PAGE) return examples;
  }
}

/** The same command has the same journal, so it finds its finished rows. */
const defaultJournal = ({ dataset, assistant }: RunFlags): string =>
  `${`${dataset}-${assistant}`.replaceAll(/[^\p{L}\p{N}_-]+/gu, "-")}.experiment.jsonl`;

async function runExamples(
  examples: readonly Example[],
  { assistant, concurrency, repetitions }: RunFlags,
  target: Target,
  evaluators: Evaluators,
  journal: Journal,
): Promise<void> {
  const total = examples.length * repetitions;
  const pending = examples.flatMap((example) => {
    const missing = Math.max(0, repetitions - journal.countOf(example.id));
    return Array.from({ length: missing }, () => example);
  });
  if (pending.length < total)
    process.stderr.write(`Skipping finished rows: ${countOf(total - pending.length, "row")} of ${total}.\n`);
  const progress = new Progress(process.stderr);
  const step = () => ({ fraction: journal.count / total, rows: journal.count });
  let failed: { reason: unknown } | undefined;
  const work = async () => {
    for (let example = pending.shift(); example && !failed; example = pending.shift()) {
      try {
        journal.add(await runExample(example, assistant, target, evaluators));
        progress.show(step());
      } catch (reason) {
        failed ??= { reason };
      }
    }
  };
  await Promise.all(Array.from({ length: concurrency }, work));
  if (!failed) return progress.end(step());
  progress.clear();
  if (!(failed.reason instanceof CommandError)) throw failed.reason;
  throw new CommandError(
    `${failed.reason.message} ${countOf(journal.count, "finished row")} saved in ${journal.file}: run the same command again to continue.`,
  );
}

/** Returns a row of the upload. */
async function runExample(
  { id, inputs, outputs: expected }: Example,
  assistant_id: string,
  target: Target,
  evaluators: Evaluators,
): Promise<JsonObject> {
  const start_time = new Date().toISOString();
  const result = await requestJson<unknown>(target, "POST", "/runs/wait", { assistant_id, input: inputs });
  const { outputs, error } = outcomeOf(isObject(result) ? result : { output: result });
  const end_time = new Date().toISOString();
  return {
    row_id: id,
    inputs,
    expected_outputs: expected,
    actual_outputs: outputs,
    error,
    evaluation_scores: await evaluate(evaluators, { inputs, expected, outputs, error }),
    start_time,
    end_time,
    run_name: assistant_id,
  };
}

/** The response to a failed run has status 200 and the field `__error__`. */
function outcomeOf({ __error__: failure, ...values }: JsonObject): Pick<EvaluatorInput, "outputs" | "error"> {
  if (!isObject(failure)) return { outputs: values, error: null };
  return { outputs: null, error: `${failure.error}: ${failure.message}` };
}

async function upload(dataset: Dataset, flags: RunFlags, target: Target, journal: Journal): Promise<void> {
  const name = flags.name ?? `${flags.assistant} ${journal.started_at?.slice(0, 19)}`;
  if (!(await isStored(target, name, journal.count))) {
    const metadata = { assistant: flags.assistant, dataset: dataset.name };
    const upload_flags = { format: "jsonl", name, dataset: resultDatasetOf(dataset), metadata } as const;
    await uploadExperiment(journal.file, { ...upload_flags, ...(flags.json && { json: true }) }, target);
  }
  journal.delete();
}

/** Only datasets that an upload created accept uploads. The results of any other dataset go to a separate dataset. */
function resultDatasetOf({ name, externally_managed }: Dataset): string {
  if (externally_managed) return name;
  const results = `${name} (results)`;
  process.stderr.write(
    `Dataset "${name}" does not accept uploads, so the experiment is stored in dataset "${results}".\n`,
  );
  return results;
}

/** Whether an earlier command crashed after its upload. */
async function isStored(target: Target, name: string, rows: number): Promise<boolean> {
  const query = new URLSearchParams({ name, include_stats: "true" });
  const [session] = await requestJson<Session[]>(target, "GET", `/api/v1/sessions?${query}`);
  if (session?.run_count !== rows) return false;
  process.stderr.write(`Experiment "${name}" was already uploaded.\n`);
  return true;
}

/** The finished rows, one per line. A row is flushed to disk before it counts as finished. The file is the upload. */
class Journal {
  readonly file: string;
  readonly #counts = new Map<string, number>();
  readonly #output: number;
  /** Start of the first row, ISO 8601; undefined without rows. */
  started_at: string | undefined;

  constructor(file: string) {
    this.file = file;
    if (existsSync(file)) this.#load();
    this.#output = openSync(file, "a");
  }

  get count(): number {
    return [...this.#counts.values()].reduce((sum, n) => sum + n, 0);
  }

  countOf(row_id: string): number {
    return this.#counts.get(row_id) ?? 0;
  }

  add(row: JsonObject): void {
    writeSync(this.#output, `${JSON.stringify(row)}\n`);
    fsyncSync(this.#output);
    this.#addToCounts(row);
  }

  close(): void {
    closeSync(this.#output);
  }

  delete(): void {
    unlinkSync(this.file);
  }

  /** Drops a line that a crash has cut off: its example runs again. */
  #load(): void {
    const text = readFileSync(this.file, "utf8");
    const complete = text.slice(0, text.lastIndexOf("\n") + 1);
    if (complete.length < text.length) truncateSync(this.file, Buffer.byteLength(complete));
    for (const line of complete.split("\n")) if (line !== "") this.#addToCounts(JSON.parse(line));
  }

  #addToCounts({ row_id, start_time }: JsonObject): void {
    this.#counts.set(String(row_id), this.countOf(String(row_id)) + 1);
    if (this.started_at === undefined || String(start_time) < this.started_at) this.started_at = String(start_time);
  }
}
