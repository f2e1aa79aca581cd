import { isObject, type JsonObject } from "../../../platform/lib/json/json.ts";

/** A line of the file: a document of the task under one filter, with its metrics as further fields. */
export interface Sample extends JsonObject {
  doc_id?: unknown;
  doc?: unknown;
  target?: unknown;
  /** `{gen_args_0: {arg_0: prompt, arg_1: …}, …}`, a request each; older versions write lists of lists. */
  arguments?: unknown;
  /** By request and repeat. */
  resps?: unknown;
  /** By request. */
  filtered_resps?: unknown;
}

/** A continuation's log-likelihood, and whether it is the one that greedy decoding would give. Newer versions write texts. */
type Likelihood = [likelihood: number | string, is_greedy: boolean | string];

/**
 * What was expected of a sample and what came out, both under `output`. Of a multiple choice that is the index of the choice,
 * the one of the highest log-likelihood; of a generated text the one that the filter left, with the text itself in `response`
 * where it is another.
 */
export function outputsOf(sample: Sample): { expected: JsonObject; actual: JsonObject } {
  const filtered = Array.isArray(sample.filtered_resps) ? sample.filtered_resps : [];
  const expected = { output: sample.target };
  if (!filtered.every(isLikelihood) || filtered.length === 0) return { expected, actual: generated(sample, filtered) };
  const all = filtered.map(([likelihood]) => Number(likelihood));
  const [only] = filtered;
  if (filtered.length === 1 && only) return { expected, actual: { loglikelihood: all[0], is_greedy: isTrue(only[1]) } };
  // With this metric each choice is asked for twice, the second time without the question.
  const loglikelihoods = "acc_mutual_info" in sample ? all.slice(0, all.length / 2) : all;
  const best = loglikelihoods.indexOf(Math.max(...loglikelihoods));
  const choices = requestsOf(sample).map((request) => request[1]);
  return {
    expected: { output: String(indexOf(sample.target, choices)) },
    actual: { output: String(best), choice: choices[best], loglikelihoods },
  };
}

function generated(sample: Sample, filtered: unknown[]): JsonObject {
  const output = filtered.length === 1 ? filtered[0] : filtered;
  const resps = (Array.isArray(sample.resps) ? sample.resps.flat(1) : []) as unknown[];
  const response = resps.length === 1 ? resps[0] : resps;
  return JSON.stringify(output) === JSON.stringify(response) ? { output } : { output, response };
}

/** A target may be the index of the right choice, or its text. */
function indexOf(target: unknown, choices: unknown[]): unknown {
  const index = choices.findIndex((choice) => String(choice).trim() === String(target).trim());
  return index === -1 ? target : index;
}

/** What the model was given: the prompt, and for a generated text the arguments of the generation. */
export function promptOf(sample: Sample): JsonObject {
  const requests = requestsOf(sample);
  const [first] = requests;
  if (!first) return {};
  const isOne = requests.every(([prompt]) => prompt === first[0]);
  const prompt = isOne ? first[0] : requests.map((request) => request[0]);
  return isObject(first[1]) ? { prompt, generation: first[1] } : { prompt };
}

/** The arguments of each request to the model. */
function requestsOf({ arguments: given }: Sample): unknown[][] {
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
