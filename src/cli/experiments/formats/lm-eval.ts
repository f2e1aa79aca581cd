import { isObject, type JsonObject } from "../../../platform/lib/json/json.ts";
import type { InputFile } from "../input-file.ts";
import { type ReadOptions, type ReadRow, type Results, RowCompleter } from "../rows.ts";
import { type Line, linesOf, parseLine } from "./json.ts";

/** Fields that are not metrics. In files of older versions, which have no list `metrics`, all other fields are metrics. */
const FIXED = new Set(
  "doc_id doc target arguments resps filtered_resps filter metrics doc_hash prompt_hash target_hash".split(" "),
);

/**
 * Reads `samples_{task}_{time}.jsonl`, which lm-evaluation-harness writes with --log_samples.
 *
 * A document becomes an example. If a task has several filters, the file has one sample per document and filter. The samples of a document
 * become one run with the outputs of the first filter and the scores of all filters, named `metric,filter` as in the harness. Metrics that
 * are neither numbers nor booleans become run metadata. The default name of the dataset is the name of the task.
 */
export async function readLmEval(file: InputFile, options: ReadOptions): Promise<Results> {
  const task = taskOf(file);
  const dataset = options.dataset ?? task;
  const { first, others } = await readFilters(file);
  const completer = new RowCompleter(file, "line", dataset);
  const rows = async function* (): AsyncGenerator<ReadRow> {
    for await (const line of linesOf(file)) {
      const sample = sampleOf(file, line);
      if (filterOf(sample) !== first) continue;
      const row = rowOf(sample, others && scoresOf(sample, first));
      row.evaluation_scores = [...(row.evaluation_scores as JsonObject[]), ...(others?.get(idOf(sample)) ?? [])];
      yield completer.complete(row, line.number);
    }
  };
  const experiment_metadata = { source: "lm-evaluation-harness", task };
  return completer.results(rows(), {
    experiment_name: file.stem.replace(/^samples_/, ""),
    dataset_name: dataset,
    experiment_metadata,
  });
}

/** Returns the task in the file name: `gsm8k` for `samples_gsm8k_2026-03-01T10-20-30.123456.jsonl`. */
const taskOf = (file: InputFile): string =>
  /^samples_(.+)_\d{4}-\d\d-\d\dT[\d.-]+$/.exec(file.stem)?.[1] ?? file.stem.replace(/^samples_/, "");

/** Returns the first filter, and the scores of the other filters by document. `others` is undefined if there is only one filter. */
async function readFilters(file: InputFile) {
  let first: string | undefined;
  let others: Map<string, JsonObject[]> | undefined;
  for await (const line of linesOf(file)) {
    const sample = sampleOf(file, line);
    const filter = filterOf(sample);
    first ??= filter;
    if (filter === first) continue;
    others ??= new Map();
    const known = others.get(idOf(sample)) ?? [];
    others.set(idOf(sample), [...known, ...scoresOf(sample, filter)]);
  }
  return { first: first ?? "none", others };
}

/** Matches NaN and Infinity, which Python writes although they are not valid JSON, and strings, which must not change. */
const NOT_JSON = /"(?:[^"\\]|\\.)*"|-?\bInfinity\b|\bNaN\b/g;

function sampleOf(file: InputFile, line: Line): JsonObject {
  const text = /NaN|Infinity/.test(line.text)
    ? line.text.replace(NOT_JSON, (found) => (found.startsWith('"') ? found : "null"))
    : line.text;
  const sample = parseLine(file, { text, number: line.number });
  if (isObject(sample) && "doc" in sample) return sample;
  throw file.error(`line ${line.number}`, 'the line has no field "doc", so it is not an lm-evaluation-harness sample.');
}

const filterOf = ({ filter }: JsonObject): string => (typeof filter === "string" ? filter : "none");

const idOf = ({ doc_id, doc_hash }: JsonObject): string => JSON.stringify(doc_id ?? doc_hash);

const metricsOf = (sample: JsonObject): string[] =>
  Array.isArray(sample.metrics) ? sample.metrics.map(String) : Object.keys(sample).filter((name) => !FIXED.has(name));

const isScore = (value: unknown): boolean => typeof value === "number" || typeof value === "boolean";

/** @param filter appended to the names of the scores */
function scoresOf(sample: JsonObject, filter?: string): JsonObject[] {
  return metricsOf(sample)
    .filter((name) => isScore(sample[name]))
    .map((name) => ({ key: filter === undefined ? name : `${name},${filter}`, score: Number(sample[name]) }));
}

function rowOf(sample: JsonObject, scores = scoresOf(sample)): JsonObject {
  const { doc, target } = sample;
  const { expected, actual } = outputsOf(sample);
  const rest = metricsOf(sample).filter((name) => !isScore(sample[name]) && sample[name] !== null);
  return {
    inputs: isObject(doc) ? doc : { doc },
    ...(target !== undefined && { expected_outputs: expected }),
    actual_outputs: actual,
    evaluation_scores: scores,
    run_metadata: {
      doc_id: sample.doc_id,
      doc_hash: sample.doc_hash,
      prompt_hash: sample.prompt_hash,
      target_hash: sample.target_hash,
      filter: sample.filter,
      ...promptOf(sample),
      ...(rest.length > 0 && { metrics: Object.fromEntries(rest.map((name) => [name, sample[name]])) }),
    },
  };
}

/**
 * The log-likelihood of a continuation, and whether greedy decoding produces it. Newer versions write both as strings. Null is the
 * `-Infinity` of older versions, which is not JSON.
 */
type Likelihood = [likelihood: number | string | null, is_greedy: boolean | string];

/**
 * Returns the expected and actual outputs of a sample. For multiple choice, the actual `output` is the index of the choice with the highest
 * log-likelihood. For generated text, it is the filtered text; `response` is the unfiltered text if that differs.
 */
function outputsOf(sample: JsonObject): { expected: JsonObject; actual: JsonObject } {
  const filtered = Array.isArray(sample.filtered_resps) ? sample.filtered_resps : [];
  const expected = { output: sample.target };
  if (!filtered.every(isLikelihood) || filtered.length === 0) return { expected, actual: generated(sample, filtered) };
  const all = filtered.map(([likelihood]) => (likelihood === null ? Number.NEGATIVE_INFINITY : Number(likelihood)));
  const [only] = filtered;
  if (filtered.length === 1 && only) return { expected, actual: { loglikelihood: all[0], is_greedy: isTrue(only[1]) } };
  // For this metric, the second half of the requests repeats the choices without the question.
  const loglikelihoods = "acc_mutual_info" in sample ? all.slice(0, all.length / 2) : all;
  const best = loglikelihoods.indexOf(Math.max(...loglikelihoods));
  const choices = requestsOf(sample).map((request) => request[1]);
  return {
    expected: { output: String(indexOf(sample.target, choices)) },
    actual: { output: String(best), choice: choices[best], loglikelihoods },
  };
}

function generated(sample: JsonObject, filtered: unknown[]): JsonObject {
  const output = filtered.length === 1 ? filtered[0] : filtered;
  const resps = (Array.isArray(sample.resps) ? sample.resps.flat(1) : []) as unknown[];
  const response = resps.length === 1 ? resps[0] : resps;
  return JSON.stringify(output) === JSON.stringify(response) ? { output } : { output, response };
}

/** Returns the index of the correct choice. The target is this index, which choices such as "1" and "2" may contain, too, or the text. */
function indexOf(target: unknown, choices: unknown[]): unknown {
  if (/^\d+$/.test(String(target)) && Number(target) < choices.length) return target;
  const index = choices.findIndex((choice) => String(choice).trim() === String(target).trim());
  return index === -1 ? target : index;
}

function promptOf(sample: JsonObject): JsonObject {
  const requests = requestsOf(sample);
  const [first] = requests;
  if (!first) return {};
  const isSame = requests.every(([prompt]) => prompt === first[0]);
  const prompt = isSame ? first[0] : requests.map((request) => request[0]);
  return isObject(first[1]) ? { prompt, generation: first[1] } : { prompt };
}

/** `arguments` is `{gen_args_0: {arg_0: prompt, arg_1: …}, …}`; older versions write lists of lists. */
function requestsOf({ arguments: given }: JsonObject): unknown[][] {
  const requests = isObject(given) ? Object.values(given) : Array.isArray(given) ? given : [];
  return requests.map((request) => (isObject(request) ? Object.values(request) : [request].flat(1)));
}

function isLikelihood(given: unknown): given is Likelihood {
  return (
    Array.isArray(given) &&
    given.length === 2 &&
    !Number.isNaN(Number(given[0])) &&
    /^(true|false)$/i.test(String(given[1]))
  );
}

const isTrue = (given: boolean | string): boolean => /^true$/i.test(String(given));
