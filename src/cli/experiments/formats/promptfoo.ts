import { isObject } from "../../../platform/lib/json/json.ts";
import { CommandError } from "../command-error.ts";
import type { InputFile } from "../input-file.ts";
import { type ReadRow, type Results, RowCompleter } from "../rows.ts";
import type { ReadOptions } from "./format.ts";
import { partsOf, type Visit } from "./json-walk.ts";
import { parseLine } from "./jsonl.ts";
import { linesOf } from "./lines.ts";
import { type PromptfooResult, promptfooRow } from "./promptfoo-row.ts";

/** A provider with a prompt: what promptfoo shows as a column of its table, and here is an experiment. */
interface Pair {
  /** The label of the provider, or its id where it has none. */
  provider: string;
  provider_id: string;
  prompt: string;
}

/**
 * Reads what `promptfoo eval --output` writes as .json or .jsonl, and what its function `evaluate` returns: the list of results
 * under `results.results`, under `results`, or alone. Results of the same `vars` are the same example. Where there are several
 * providers or prompts, `--provider` and `--prompt` choose one of each. Without --dataset the dataset is called as the
 * evaluation is described, or else as the file.
 */
export async function readPromptfoo(file: InputFile, options: ReadOptions): Promise<Results> {
  const { pairs, description } = await survey(file);
  const pair = choose(file, pairs, options);
  const dataset = options.dataset ?? description ?? file.stem;
  const unit = isLines(file) ? "line" : "element";
  const completer = new RowCompleter(file, unit, dataset);
  const rows = async function* (): AsyncGenerator<ReadRow> {
    for await (const { result, place } of itemsOf(file))
      if (result && keyOf(pairOf(result)) === keyOf(pair))
        yield completer.complete(promptfooRow(result, pair.provider), place);
  };
  return completer.results(rows(), {
    experiment_name: [file.stem, ...(pairs.length > 1 ? [pair.provider, cut(pair.prompt, 60)] : [])].join(" "),
    dataset_name: dataset,
    experiment_metadata: { source: "promptfoo", provider: pair.provider_id, prompt: pair.prompt },
  });
}

const isLines = (file: InputFile): boolean => file.extension === ".jsonl" || file.extension === ".ndjson";

/** Takes each result, and the description of the configuration. */
const visit: Visit = (path) => {
  const [at, isList] = [path.join("."), path.at(-1) === "*"];
  if (at === "" || at === "results" || at === "results.results" || at === "config") return "enter";
  return isList || at === "config.description" ? "take" : "skip";
};

interface Item {
  result?: PromptfooResult;
  place: number;
  description?: string;
}

async function* itemsOf(file: InputFile): AsyncGenerator<Item> {
  const resultOf = (value: unknown, where: string): PromptfooResult => {
    if (isObject(value) && ("vars" in value || "testCase" in value)) return value;
    throw file.wrong(where, 'has no field "vars": it is no result of promptfoo.');
  };
  if (isLines(file)) {
    for await (const line of linesOf(file))
      yield { result: resultOf(parseLine(file, line), `line ${line.number}`), place: line.number };
    return;
  }
  for await (const { path, index, value } of partsOf(file, visit)) {
    if (path.at(-1) === "*") yield { result: resultOf(value, `element ${index}`), place: index };
    else if (typeof value === "string" && value !== "") yield { description: value, place: index };
  }
}

async function survey(file: InputFile): Promise<{ pairs: Pair[]; description?: string }> {
  const pairs = new Map<string, Pair>();
  let description: string | undefined;
  for await (const item of itemsOf(file)) {
    description ??= item.description;
    if (!item.result) continue;
    const pair = pairOf(item.result);
    pairs.set(keyOf(pair), pair);
  }
  return { pairs: [...pairs.values()], description };
}

/** The label of a prompt is its template. A `raw` one is filled in, and so another for each result. */
function pairOf({ provider, prompt, promptId, promptIdx }: PromptfooResult): Pair {
  const { id, label } = isObject(provider) ? provider : { id: provider, label: undefined };
  const template = isObject(prompt) ? (prompt.label ?? prompt.display) : undefined;
  return {
    provider: String(label || id || "unknown"),
    provider_id: String(id || label || "unknown"),
    prompt: String(template ?? promptId ?? promptIdx ?? ""),
  };
}

const keyOf = ({ provider, prompt }: Pair): string => JSON.stringify([provider, prompt]);

function choose(file: InputFile, pairs: Pair[], { provider, prompt }: ReadOptions): Pair {
  if (pairs.length === 0) throw file.wrong("", "holds no results of promptfoo.");
  const ofProvider = pairs.filter(
    (pair) => provider === undefined || [pair.provider, pair.provider_id].includes(provider),
  );
  const exact = ofProvider.filter((pair) => prompt === undefined || pair.prompt === prompt);
  const found = exact.length > 0 ? exact : ofProvider.filter((pair) => pair.prompt.startsWith(prompt ?? ""));
  if (found.length === 1) return found[0] as Pair;
  const listed = found.length === 0 ? pairs : found;
  const problem = found.length === 0 ? "has no such results" : `holds ${found.length} experiments`;
  const lines = listed.map((pair) => `  --provider ${quoted(pair.provider)} --prompt ${quoted(cut(pair.prompt, 80))}`);
  throw new CommandError(
    `${file.name} ${problem}. Choose one with --provider and --prompt (its label, or the beginning of it):\n${lines.join("\n")}`,
  );
}

/** The beginning of the first line. */
const cut = (text: string, chars: number): string => (text.split("\n")[0] as string).slice(0, chars).toWellFormed();

const quoted = (text: string): string => (/^[\w:./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`);
