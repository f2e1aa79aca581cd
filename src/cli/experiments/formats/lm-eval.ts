import { isObject, type JsonObject } from "../../../platform/lib/json/json.ts";
import type { InputFile } from "../input-file.ts";
import { type ReadRow, type Results, RowCompleter } from "../rows.ts";
import type { ReadOptions } from "./format.ts";
import { parseLine } from "./jsonl.ts";
import { type Line, linesOf } from "./lines.ts";
import { outputsOf, promptOf, type Sample } from "./lm-eval-outputs.ts";

/** Fields that are no metrics, for older versions, which do not name theirs in `metrics`. */
const FIXED = new Set(
  "doc_id doc target arguments resps filtered_resps filter metrics doc_hash prompt_hash target_hash".split(" "),
);

/**
 * Reads `samples_{task}_{time}.jsonl` of lm-evaluation-harness, which it writes with --log_samples.
 *
 * A document is an example, its `target` what is expected. A task with several filters has each document once for each of
 * them: that is one run, with the outputs of the first filter and the scores of all, called `metric,filter` as there. Metrics
 * that are not a number (a pair that only counts in the aggregate) are kept in the run's metadata. The harness keeps no
 * times. Without --dataset the dataset is called as the task is.
 */
export async function readLmEval(file: InputFile, options: ReadOptions): Promise<Results> {
  const task = taskOf(file);
  const dataset = options.dataset ?? task;
  const { first, others } = await surveyFilters(file);
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

/** `samples_gsm8k_2026-03-01T10-20-30.123456.jsonl` is of the task `gsm8k`. */
const taskOf = (file: InputFile): string =>
  /^samples_(.+)_\d{4}-\d\d-\d\dT[\d.-]+$/.exec(file.stem)?.[1] ?? file.stem.replace(/^samples_/, "");

/** The filter that comes first, and the scores of all others by document; undefined when there is only one filter. */
async function surveyFilters(file: InputFile) {
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

/** Python writes NaN and Infinity, which JSON does not have. */
const NOT_JSON = /"(?:[^"\\]|\\.)*"|-?\bInfinity\b|\bNaN\b/g;

function sampleOf(file: InputFile, line: Line): Sample {
  const text = /NaN|Infinity/.test(line.text)
    ? line.text.replace(NOT_JSON, (found) => (found.startsWith('"') ? found : "null"))
    : line.text;
  const sample = parseLine(file, { text, number: line.number });
  if (isObject(sample) && "doc" in sample) return sample;
  throw file.wrong(`line ${line.number}`, 'has no field "doc": it is no sample of lm-evaluation-harness.');
}

const filterOf = ({ filter }: Sample): string => (typeof filter === "string" ? filter : "none");

const idOf = ({ doc_id, doc_hash }: Sample): string => JSON.stringify(doc_id ?? doc_hash);

const metricsOf = (sample: Sample): string[] =>
  Array.isArray(sample.metrics) ? sample.metrics.map(String) : Object.keys(sample).filter((name) => !FIXED.has(name));

const isScore = (value: unknown): boolean => typeof value === "number" || typeof value === "boolean";

/** @param filter is added to the names when given */
function scoresOf(sample: Sample, filter?: string): JsonObject[] {
  return metricsOf(sample)
    .filter((name) => isScore(sample[name]))
    .map((name) => ({ key: filter === undefined ? name : `${name},${filter}`, score: Number(sample[name]) }));
}

function rowOf(sample: Sample, scores = scoresOf(sample)): JsonObject {
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
