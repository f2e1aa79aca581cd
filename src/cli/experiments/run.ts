import { dirname, resolve } from "node:path";
import type { Dataset } from "../../experiments/contract/datasets/datasets.ts";
import type { Example } from "../../experiments/contract/datasets/examples.ts";
import { segmentOf } from "../../experiments/traces/tree-position.ts";
import { newId } from "../../platform/lib/ids.ts";
import { isObject, type JsonObject } from "../../platform/lib/json/json.ts";
import { CommandError, type Target } from "../command.ts";
import { requestJson } from "../service-client.ts";
import { Journal } from "./journal.ts";
import { countOf, Progress } from "./progress.ts";
import { createExperiment, type ExperimentRef, type ExperimentRow, storeTraces } from "./store-traces.ts";
import { summaryOf } from "./upload.ts";

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
 * Runs an assistant on the examples of a dataset, evaluates the outputs, and stores each row as a trace of an experiment. The server's own
 * traces of the agent runs become part of the row traces. Finished rows are kept in a journal file, so a repeated command can resume.
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
    const experiment = experimentOf(flags, journal);
    const metadata = { assistant: flags.assistant, dataset: dataset.name };
    await createExperiment(target, dataset, experiment, metadata);
    await runExamples(examples, flags, target, { evaluators, journal, project_name: experiment.name });
    await upload(dataset, experiment, flags, target, journal);
  } finally {
    journal.close();
  }
  journal.delete();
}

/**
 * Returns the experiment of the journal. If the journal has none, or `--name` is a different name, adds a new experiment to the journal.
 *
 * @throws CommandError when the journal has rows of another experiment
 */
function experimentOf({ name, assistant }: RunFlags, journal: Journal): ExperimentRef {
  const known = journal.experiment;
  if (known && (name === undefined || name === known.name)) return known;
  if (known && journal.count > 0)
    throw new CommandError(
      `${journal.file} contains rows of experiment "${known.name}". To continue that experiment, pass its name with --name. Otherwise, pass another file with --journal.`,
    );
  const experiment = { id: newId(), name: name ?? `${assistant} ${new Date().toISOString().slice(0, 19)}` };
  journal.addExperiment(experiment);
  return experiment;
}

async function findDataset(target: Target, name: string): Promise<Dataset> {
  const query = new URLSearchParams({ name });
  const [dataset] = await requestJson<Dataset[]>(target, "GET", `/api/v1/datasets?${query}`);
  if (dataset) return dataset;
  throw new CommandError(`There is no dataset named "${name}" at ${target.url}: pass the name of an existing dataset.`);
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

/** The name depends only on the dataset and the assistant, so a repeated command finds its finished rows. */
const defaultJournal = ({ dataset, assistant }: RunFlags): string =>
  `${`${dataset}-${assistant}`.replaceAll(/[^\p{L}\p{N}_-]+/gu, "-")}.experiment.jsonl`;

async function runExamples(
  examples: readonly Example[],
  { assistant, concurrency, repetitions }: RunFlags,
  target: Target,
  { evaluators, journal, project_name }: { evaluators: Evaluators; journal: Journal; project_name: string },
): Promise<void> {
  const total = examples.length * repetitions;
  const pending = examples.flatMap((example) => {
    const missing = Math.max(0, repetitions - journal.countOf(example.id));
    return Array.from({ length: missing }, () => example);
  });
  if (pending.length < total)
    process.stderr.write(`Skipping finished rows: ${total - pending.length} of ${countOf(total, "row")}.\n`);
  const progress = new Progress(process.stderr);
  const step = () => ({ fraction: journal.count / total, rows: journal.count });
  let failed: { reason: unknown } | undefined;
  const work = async () => {
    for (let example = pending.shift(); example && !failed; example = pending.shift()) {
      try {
        journal.add(await runExample(example, { assistant_id: assistant, project_name }, target, evaluators));
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
    `${failed.reason.message} Rows finished so far: ${journal.count} (in ${journal.file}). Run the same command again to continue.`,
  );
}

async function runExample(
  { id, inputs, outputs: expected, modified_at }: Example,
  { assistant_id, project_name }: { assistant_id: string; project_name: string },
  target: Target,
  evaluators: Evaluators,
): Promise<ExperimentRow> {
  const run_id = newId();
  const start_ms = Date.now();
  const result = await requestJson<unknown>(target, "POST", "/runs/wait", {
    assistant_id,
    input: inputs,
    // Makes the server store the agent run's trace as a child of this row's run.
    config: { configurable: { "langsmith-trace": segmentOf(start_ms * 1000, run_id) } },
    langsmith_tracer: { project_name },
  });
  const { outputs, error } = outcomeOf(isObject(result) ? result : { output: result });
  const end_time = new Date().toISOString();
  return {
    run_id,
    row_id: id,
    example_version: modified_at,
    inputs,
    actual_outputs: outputs,
    error,
    evaluation_scores: await evaluate(evaluators, { inputs, expected, outputs, error }),
    start_time: new Date(start_ms).toISOString(),
    end_time,
    run_name: assistant_id,
  };
}

/** The response to a failed run has status 200 and the field `__error__`. */
function outcomeOf({ __error__: failure, ...values }: JsonObject): Pick<EvaluatorInput, "outputs" | "error"> {
  if (!isObject(failure)) return { outputs: values, error: null };
  return { outputs: null, error: `${failure.error}: ${failure.message}` };
}

async function upload(
  dataset: Dataset,
  { id }: ExperimentRef,
  flags: RunFlags,
  target: Target,
  journal: Journal,
): Promise<void> {
  const rows = journal.rows();
  const stored = { dataset, experiment: await storeTraces(target, id, rows) };
  process.stdout.write(flags.json ? `${JSON.stringify(stored)}\n` : summaryOf(stored, rows.length, target));
}

interface EvaluatorInput {
  inputs: JsonObject;
  /** The expected outputs of the example; null when it has none. */
  expected: JsonObject | null;
  /** The outputs of the assistant; null when the run failed. */
  outputs: JsonObject | null;
  error: string | null;
}

type Evaluator = (input: EvaluatorInput) => unknown;

/** Evaluators by name, which is the default feedback key of their scores. */
type Evaluators = ReadonlyMap<string, Evaluator>;

/**
 * Loads the functions that a module exports, and those of its default export if that is an object.
 *
 * @throws CommandError when the module cannot be loaded or exports no function
 */
async function loadEvaluators(path: string): Promise<Evaluators> {
  let module: JsonObject;
  try {
    // Uses the loader of graphs, which supports all TypeScript syntax and resolves LangChain from the module's project.
    const { importerFor } = await import("../../agent-server/graph-hosts/inside/loading/load.ts");
    module = (await importerFor(dirname(resolve(path)))(resolve(path))).exports;
  } catch (error) {
    throw new CommandError(`Cannot load the evaluators in ${path}: ${(error as Error).message}`);
  }
  const exported = isObject(module.default) ? { ...module, ...module.default } : module;
  const functions = Object.entries(exported).filter(([, value]) => typeof value === "function") as [
    string,
    Evaluator,
  ][];
  if (functions.length > 0) return new Map(functions);
  throw new CommandError(
    `${path} exports no function. Export one per feedback key, for example: export const correct = ({ outputs, expected }) => outputs?.answer === expected?.answer;`,
  );
}

/** Returns the scores of a row. An evaluator that throws adds a score with an error; the others still run. */
async function evaluate(evaluators: Evaluators, input: EvaluatorInput): Promise<JsonObject[]> {
  const scores: JsonObject[] = [];
  for (const [key, evaluator] of evaluators) {
    try {
      scores.push(...toScores(key, await evaluator(input)));
    } catch (error) {
      scores.push({ key, error: true, comment: (error as Error)?.message ?? String(error) });
    }
  }
  return scores;
}

/** Converts a number or boolean to a score and a string to a label. Objects are kept; the elements of an array are converted. */
function toScores(key: string, result: unknown): JsonObject[] {
  if (result === undefined || result === null) return [];
  if (Array.isArray(result)) return result.flatMap((element) => toScores(key, element));
  if (typeof result === "number" || typeof result === "boolean") return [{ key, score: result }];
  if (typeof result === "string") return [{ key, value: result }];
  if (isObject(result)) return [{ key, ...result }];
  throw new TypeError(
    `The evaluator returned a value of type ${typeof result}: return a number, a boolean, a string or {score, value, comment}.`,
  );
}
