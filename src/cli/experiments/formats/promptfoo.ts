import { isObject, type JsonObject } from "../../../platform/lib/json/json.ts";
import { CommandError } from "../../command.ts";
import type { InputFile } from "../input-file.ts";
import { type ReadOptions, type ReadRow, type Results, RowCompleter } from "../rows.ts";
import { linesOf, parseLine } from "./json.ts";
import { type Visit, valuesOf } from "./json-walk.ts";

/** A combination of a provider and a prompt, which is a column of promptfoo's table and an experiment in Threadmill. */
interface Variant {
  /** The label of the provider, or else its ID. */
  provider: string;
  provider_id: string;
  prompt: string;
}

/**
 * Reads the .json or .jsonl output of `promptfoo eval --output`, and the return value of its function `evaluate`: a list of results
 * under `results.results`, under `results`, or at the root. Results with the same `vars` are the same example. With several providers
 * or prompts, `--provider` and `--prompt` select one of each. The default name of the dataset is the description of the evaluation, or
 * else the file name.
 */
export async function readPromptfoo(file: InputFile, options: ReadOptions): Promise<Results> {
  const { variants, description } = await readVariants(file);
  const variant = selectVariant(file, variants, options);
  const dataset = options.dataset ?? description ?? file.stem;
  const unit = isLines(file) ? "line" : "element";
  const completer = new RowCompleter(file, unit, dataset);
  const rows = async function* (): AsyncGenerator<ReadRow> {
    for await (const { result, position } of itemsOf(file))
      if (result && keyOf(variantOf(result)) === keyOf(variant))
        yield completer.complete(promptfooRow(result, variant.provider), position);
  };
  return completer.results(rows(), {
    experiment_name: [file.stem, ...(variants.length > 1 ? [variant.provider, truncate(variant.prompt, 60)] : [])].join(
      " ",
    ),
    dataset_name: dataset,
    experiment_metadata: { source: "promptfoo", provider: variant.provider_id, prompt: variant.prompt },
  });
}

const isLines = (file: InputFile): boolean => file.extension === ".jsonl" || file.extension === ".ndjson";

const visit: Visit = (path) => {
  const [at, isList] = [path.join("."), path.at(-1) === "*"];
  if (at === "" || at === "results" || at === "results.results" || at === "config") return "enter";
  return isList || at === "config.description" ? "take" : "skip";
};

interface Item {
  result?: JsonObject;
  position: number;
  description?: string;
}

async function* itemsOf(file: InputFile): AsyncGenerator<Item> {
  const resultOf = (value: unknown, position: string): JsonObject => {
    if (isObject(value) && ("vars" in value || "testCase" in value)) return value;
    throw file.error(position, 'the entry has no field "vars" or "testCase", so it is not a promptfoo result.');
  };
  if (isLines(file)) {
    for await (const line of linesOf(file))
      yield { result: resultOf(parseLine(file, line), `line ${line.number}`), position: line.number };
    return;
  }
  for await (const { path, index, value } of valuesOf(file, visit)) {
    if (path.at(-1) === "*") yield { result: resultOf(value, `element ${index}`), position: index };
    else if (typeof value === "string" && value !== "") yield { description: value, position: index };
  }
}

async function readVariants(file: InputFile): Promise<{ variants: Variant[]; description?: string }> {
  const variants = new Map<string, Variant>();
  let description: string | undefined;
  for await (const item of itemsOf(file)) {
    description ??= item.description;
    if (!item.result) continue;
    const variant = variantOf(item.result);
    variants.set(keyOf(variant), variant);
  }
  return { variants: [...variants.values()], description };
}

/**
 * The prompt of a result is the rendered text, which differs between results, or `{raw, label}`, where the label is the template (`display`
 * in old versions). The provider is an ID, or `{id, label}`, where the label can be empty.
 */
function variantOf({ provider, prompt, promptId, promptIdx }: JsonObject): Variant {
  const { id, label } = isObject(provider) ? provider : { id: provider, label: undefined };
  const template = isObject(prompt) ? (prompt.label ?? prompt.display) : undefined;
  return {
    provider: String(label || id || "unknown"),
    provider_id: String(id || label || "unknown"),
    prompt: String(template ?? promptId ?? promptIdx ?? ""),
  };
}

const keyOf = ({ provider, prompt }: Variant): string => JSON.stringify([provider, prompt]);

function selectVariant(file: InputFile, variants: Variant[], { provider, prompt }: ReadOptions): Variant {
  if (variants.length === 0) throw file.error("", "the file contains no promptfoo results.");
  const ofProvider = variants.filter(
    (variant) => provider === undefined || [variant.provider, variant.provider_id].includes(provider),
  );
  const exact = ofProvider.filter((variant) => prompt === undefined || variant.prompt === prompt);
  const found = exact.length > 0 ? exact : ofProvider.filter((variant) => variant.prompt.startsWith(prompt ?? ""));
  if (found.length === 1) return found[0] as Variant;
  const listed = found.length === 0 ? variants : found;
  const problem =
    found.length === 0
      ? "contains no results that match the given options"
      : `contains the results of ${found.length} combinations of provider and prompt`;
  const lines = listed.map(
    (variant) => `  --provider ${quote(variant.provider)} --prompt ${quote(truncate(variant.prompt, 80))}`,
  );
  throw new CommandError(
    `${file.name} ${problem}. Select one combination with --provider and --prompt (the prompt's label, or the beginning of its text):\n${lines.join("\n")}`,
  );
}

const truncate = (text: string, chars: number): string =>
  (text.split("\n")[0] as string).slice(0, chars).toWellFormed();

/** Quotes an argument for a POSIX shell. */
const quote = (text: string): string => (/^[\w:./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`);

/** The `failureReason` of an error. The others are 0 (none) and 1 (failed assertion). Old versions do not write the field. */
const ERROR = 2;

/** Types of assertions whose value is an expected answer. The values of other types are rules or code. */
const WITH_ANSWER = /^(equals|similar|levenshtein|rouge-n|bleu|gleu|meteor|factuality|model-graded-factuality)(:|$)/;

/** Converts a result to a row. A result with an error gets no scores, because promptfoo does not count errors as failures. */
function promptfooRow(result: JsonObject, run_name: string): JsonObject {
  const response = isObject(result.response) ? result.response : {};
  const testCase = isObject(result.testCase) ? result.testCase : {};
  const error = errorOf(result, response);
  const answer = answerOf(testCase);
  return {
    inputs: inputsOf(result, testCase),
    ...(answer !== undefined && { expected_outputs: { output: answer } }),
    ...(response.output !== undefined && { actual_outputs: { output: response.output } }),
    ...(error !== undefined && { error }),
    evaluation_scores: error === undefined ? scoresOf(result) : [],
    latency: typeof result.latencyMs === "number" ? result.latencyMs / 1000 : undefined,
    run_name,
    run_metadata: {
      test: testCase.description ?? result.description,
      test_index: result.testIdx,
      cost: result.cost ?? response.cost,
      tokens: response.tokenUsage ?? result.tokenUsage,
      cached: response.cached,
      metadata: result.metadata,
    },
  };
}

function inputsOf({ vars, prompt }: JsonObject, testCase: JsonObject): JsonObject {
  const given = isObject(vars) ? vars : testCase.vars;
  if (isObject(given) && Object.keys(given).length > 0) return given;
  return { prompt: isObject(prompt) ? prompt.raw : prompt };
}

/** Returns the provider's error. promptfoo also sets `error` when an assertion failed, so `failureReason` is checked first. */
function errorOf({ failureReason, error }: JsonObject, response: JsonObject): string | undefined {
  const hasFailed = failureReason === undefined ? response.output === undefined : failureReason === ERROR;
  const reason = (hasFailed ? error : undefined) ?? response.error;
  if (reason !== undefined && reason !== null) return typeof reason === "string" ? reason : JSON.stringify(reason);
  return failureReason === ERROR ? "The provider returned an error without a message." : undefined;
}

function answerOf(testCase: JsonObject): unknown {
  const assertions = Array.isArray(testCase.assert) ? testCase.assert.filter(isObject) : [];
  return assertions.find(({ type, value }) => WITH_ANSWER.test(String(type)) && value !== undefined)?.value;
}

function scoresOf({ score, success, namedScores, gradingResult }: JsonObject): JsonObject[] {
  const grading = isObject(gradingResult) ? gradingResult : {};
  const named = isObject(namedScores) ? namedScores : grading.namedScores;
  const scores: Record<string, unknown> = { score, pass: success, ...(isObject(named) ? named : {}) };
  const isScore = (value: unknown) => typeof value === "number" || typeof value === "boolean";
  return Object.entries(scores)
    .filter(([, value]) => isScore(value))
    .map(([key, value]) => ({
      key,
      score: Number(value),
      ...(key === "pass" && typeof grading.reason === "string" && { comment: grading.reason }),
    }));
}
