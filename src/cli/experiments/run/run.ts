import type { Dataset } from "../../../experiments/contract/datasets.ts";
import type { Example } from "../../../experiments/contract/examples.ts";
import type { Session } from "../../../experiments/contract/sessions.ts";
import { isObject, type JsonObject } from "../../../platform/lib/json/json.ts";
import { type Answer, askAgents, askJson, jsonOf, refusal, type Target } from "../api.ts";
import { CommandError } from "../command-error.ts";
import { count, Progress } from "../progress.ts";
import { uploadExperiment } from "../upload.ts";
import { type Evaluators, loadEvaluators, scoresOf } from "./evaluators.ts";
import { Journal } from "./journal.ts";

export interface RunFlags {
  dataset: string;
  /** The id of an assistant, or the name of a graph. */
  assistant: string;
  name?: string;
  evaluators?: string;
  concurrency: number;
  repetitions: number;
  /** Where the rows wait until all are done. */
  journal?: string;
  json?: boolean;
}

/** Examples that are asked for at a time. */
const PAGE = 100;

/**
 * Runs an assistant of the agent server over the examples of a dataset, so many at a time, judges what comes out, and uploads
 * the result as an experiment. What is done is kept in a file beside: the same command after a crash goes on there.
 *
 * @throws CommandError with a sentence; the rows that are done are kept
 */
export async function runExperiment(flags: RunFlags, target: Target): Promise<void> {
  const evaluators: Evaluators = flags.evaluators ? await loadEvaluators(flags.evaluators) : new Map();
  const dataset = await findDataset(target, flags.dataset);
  const examples = await examplesOf(target, dataset);
  if (examples.length === 0) throw new CommandError(`The dataset "${dataset.name}" has no examples to run.`);
  const journal = new Journal(flags.journal ?? journalOf(flags));
  try {
    await runAll(examples, flags, target, evaluators, journal);
  } finally {
    journal.close();
  }
  await upload(dataset, flags, target, journal);
}

async function findDataset(target: Target, name: string): Promise<Dataset> {
  const [dataset] = (await askJson(target, "GET", `/datasets?${new URLSearchParams({ name })}`)) as Dataset[];
  if (dataset) return dataset;
  throw new CommandError(`There is no dataset "${name}" at ${target.url}.`);
}

async function examplesOf(target: Target, { id }: Dataset): Promise<Example[]> {
  const examples: Example[] = [];
  for (let offset = 0; ; offset += PAGE) {
    const query = new URLSearchParams({ dataset: id, order: "id", limit: `${PAGE}`, offset: `${offset}` });
    const page = (await askJson(target, "GET", `/examples?${query}`)) as Example[];
    examples.push(...page);
    if (page.length < PAGE) return examples;
  }
}

/** The same for the same command, so that it finds what it has done before. */
const journalOf = ({ dataset, assistant }: RunFlags): string =>
  `${`${dataset}-${assistant}`.replaceAll(/[^\p{L}\p{N}_-]+/gu, "-")}.experiment.jsonl`;

async function runAll(
  examples: readonly Example[],
  { assistant, concurrency, repetitions }: RunFlags,
  target: Target,
  evaluators: Evaluators,
  journal: Journal,
): Promise<void> {
  const all = examples.length * repetitions;
  const left = examples.flatMap((example) => {
    const missing = Math.max(0, repetitions - journal.times(example.id));
    return Array.from({ length: missing }, () => example);
  });
  if (left.length < all) process.stderr.write(`${count(all - left.length, "row")} of ${all} are done already.\n`);
  const progress = new Progress(process.stderr);
  const step = () => ({ done: journal.count / all, rows: journal.count });
  let failed: { reason: unknown } | undefined;
  const work = async () => {
    for (let example = left.shift(); example && !failed; example = left.shift()) {
      try {
        journal.add(await rowOf(example, assistant, target, evaluators));
        progress.show(step());
      } catch (reason) {
        failed ??= { reason };
      }
    }
  };
  await Promise.all(Array.from({ length: concurrency }, work));
  if (!failed) return progress.end(step());
  progress.clear();
  const kept = `${count(journal.count, "row")} are kept in ${journal.file}; the same command goes on there.`;
  throw failed.reason instanceof CommandError ? new CommandError(`${failed.reason.message} ${kept}`) : failed.reason;
}

/** One example, tried and judged: a row of the upload. */
async function rowOf(
  { id, inputs, outputs: expected }: Example,
  assistant_id: string,
  target: Target,
  evaluators: Evaluators,
): Promise<JsonObject> {
  const began = Date.now();
  const { outputs, error } = outcomeOf(await runOnce(target, { assistant_id, input: inputs }));
  const ended = Date.now();
  return {
    row_id: id,
    inputs,
    expected_outputs: expected,
    actual_outputs: outputs,
    error,
    evaluation_scores: await scoresOf(evaluators, { inputs, expected, outputs, error }),
    start_time: new Date(began).toISOString(),
    end_time: new Date(ended).toISOString(),
    run_name: assistant_id,
  };
}

async function runOnce(target: Target, body: JsonObject): Promise<JsonObject> {
  const answer: Answer = await askAgents(target, "POST", "/runs/wait", body);
  if (answer.status !== 200) throw new CommandError(refusal(target, answer));
  const values = jsonOf(target, answer);
  return isObject(values) ? values : { output: values };
}

/** A run that failed was answered, too. */
function outcomeOf({ __error__: failure, ...values }: JsonObject): {
  outputs: JsonObject | null;
  error: string | null;
} {
  if (!isObject(failure)) return { outputs: values, error: null };
  return { outputs: null, error: `${failure.error}: ${failure.message}` };
}

async function upload(dataset: Dataset, flags: RunFlags, target: Target, journal: Journal): Promise<void> {
  const name = flags.name ?? `${flags.assistant} ${journal.began?.slice(0, 19)}`;
  if (!(await isStored(target, name, journal.count))) {
    await uploadExperiment(
      journal.file,
      {
        format: "jsonl",
        name,
        dataset: resultsOf(dataset),
        metadata: { assistant: flags.assistant, dataset: dataset.name },
        ...(flags.json && { json: true }),
      },
      target,
    );
  }
  journal.remove();
}

/** Only datasets that uploads have made take uploads. The results of another one are kept beside it, under its name. */
function resultsOf({ name, externally_managed }: Dataset): string {
  if (externally_managed) return name;
  const beside = `${name} (results)`;
  process.stderr.write(`The dataset "${name}" was not made by an upload, so the experiment goes to "${beside}".\n`);
  return beside;
}

/** Whether a command that died after its upload has stored it. */
async function isStored(target: Target, name: string, rows: number): Promise<boolean> {
  const query = new URLSearchParams({ name, include_stats: "true" });
  const [session] = (await askJson(target, "GET", `/sessions?${query}`)) as Session[];
  if (session?.run_count !== rows) return false;
  process.stderr.write(`The experiment "${name}" is stored already.\n`);
  return true;
}
