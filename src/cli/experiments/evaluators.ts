import { dirname, resolve } from "node:path";
import { isObject, type JsonObject } from "../../platform/lib/json/json.ts";
import { CommandError } from "../command.ts";

export interface EvaluatorInput {
  inputs: JsonObject;
  /** The expected outputs of the example; null when it has none. */
  expected: JsonObject | null;
  /** The outputs of the assistant; null when the run failed. */
  outputs: JsonObject | null;
  error: string | null;
}

type Evaluator = (input: EvaluatorInput) => unknown;

/** Evaluators by name, which is the default feedback key of their scores. */
export type Evaluators = ReadonlyMap<string, Evaluator>;

/**
 * Loads the functions that a module exports, and those of its default export if that is an object.
 *
 * @throws CommandError when the module cannot be loaded or exports no function
 */
export async function loadEvaluators(path: string): Promise<Evaluators> {
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
export async function evaluate(evaluators: Evaluators, input: EvaluatorInput): Promise<JsonObject[]> {
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
