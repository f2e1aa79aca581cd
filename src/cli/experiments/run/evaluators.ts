import { dirname, resolve } from "node:path";
import { isObject, type JsonObject } from "../../../platform/lib/json/json.ts";
import { CommandError } from "../command-error.ts";

/** What an evaluator is given: one example, and what the assistant made of it. */
export interface Evaluated {
  inputs: JsonObject;
  /** The outputs that the example expects; null when it expects none. */
  expected: JsonObject | null;
  /** The assistant's outputs; null when it failed. */
  outputs: JsonObject | null;
  error: string | null;
}

type Evaluator = (evaluated: Evaluated) => unknown;

/** Evaluators by their names: the feedback keys of what they answer. */
export type Evaluators = ReadonlyMap<string, Evaluator>;

/**
 * The evaluators of a module: every function that it exports, by its name, or those of the object that it exports as default.
 *
 * @throws CommandError when there is no such module, or no evaluator in it
 */
export async function loadEvaluators(path: string): Promise<Evaluators> {
  let module: JsonObject;
  try {
    // As graphs are loaded: with all of TypeScript, and LangChain from the project where it has one.
    const { importerFor } = await import("../../../agent-server/graph-hosts/inside/loading/load.ts");
    module = (await importerFor(dirname(resolve(path)))(resolve(path))).exports;
  } catch (error) {
    throw new CommandError(`The evaluators in ${path} could not be loaded: ${(error as Error).message}`);
  }
  const exported = isObject(module.default) ? { ...module, ...module.default } : module;
  const functions = Object.entries(exported).filter(([, value]) => typeof value === "function") as [
    string,
    Evaluator,
  ][];
  if (functions.length > 0) return new Map(functions);
  throw new CommandError(
    `${path} exports no function. Export one for each key, such as: export const correct = ({ outputs, expected }) => outputs?.answer === expected?.answer;`,
  );
}

/** The scores of one row. An evaluator that throws is a score with an error, and stops nothing. */
export async function scoresOf(evaluators: Evaluators, evaluated: Evaluated): Promise<JsonObject[]> {
  const scores: JsonObject[] = [];
  for (const [key, evaluate] of evaluators) {
    try {
      scores.push(...asScores(key, await evaluate(evaluated)));
    } catch (error) {
      scores.push({ key, error: true, comment: (error as Error)?.message ?? String(error) });
    }
  }
  return scores;
}

/** A number or a boolean is a score, a text a label, an object the score itself; a list is several of them, and nothing none. */
function asScores(key: string, answer: unknown): JsonObject[] {
  if (answer === undefined || answer === null) return [];
  if (Array.isArray(answer)) return answer.flatMap((one) => asScores(key, one));
  if (typeof answer === "number" || typeof answer === "boolean") return [{ key, score: answer }];
  if (typeof answer === "string") return [{ key, value: answer }];
  if (isObject(answer)) return [{ key, ...answer }];
  throw new TypeError(
    `It answered a ${typeof answer}; a number, a boolean, a text or {score, value, comment} was expected.`,
  );
}
