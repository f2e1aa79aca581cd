import { isObject, type JsonObject } from "../../../platform/lib/json/json.ts";

/** A result of promptfoo. Which of the fields are there depends on its version. */
export interface PromptfooResult extends JsonObject {
  vars?: unknown;
  testCase?: unknown;
  /** An id, or `{id, label}`; the label may be empty. */
  provider?: unknown;
  /** The filled-in text, or `{raw, label}`, in old versions `{raw, display}`. */
  prompt?: unknown;
  /** `{output, error?, tokenUsage?, cost?, cached?}`. */
  response?: unknown;
  /** `{pass, score, reason, …}`; null when nothing was graded. */
  gradingResult?: unknown;
  /** 0 none, 1 an assertion, 2 an error; missing in old versions. */
  failureReason?: unknown;
  /** Also the reason of an assertion that failed. */
  error?: unknown;
}

const ERROR = 2;

/** Assertions whose value is a right answer. Those of others are rules, or code. */
const WITH_ANSWER = /^(equals|similar|levenshtein|rouge-n|bleu|gleu|meteor|factuality|model-graded-factuality)(:|$)/;

/**
 * The row of a result: `vars` are its inputs (the prompt, where there are none), the value of an assertion that compares with a
 * right answer is what was expected. Scores are `score`, `pass`, and the named ones. A result that is an error has no scores:
 * promptfoo counts these apart from failures.
 */
export function promptfooRow(result: PromptfooResult, run_name: string): JsonObject {
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

function inputsOf({ vars, prompt }: PromptfooResult, testCase: JsonObject): JsonObject {
  const given = isObject(vars) ? vars : testCase.vars;
  if (isObject(given) && Object.keys(given).length > 0) return given;
  return { prompt: isObject(prompt) ? prompt.raw : prompt };
}

function errorOf({ failureReason, error }: PromptfooResult, response: JsonObject): string | undefined {
  const hasFailed = failureReason === undefined ? response.output === undefined : failureReason === ERROR;
  const reason = (hasFailed ? error : undefined) ?? response.error;
  if (reason !== undefined && reason !== null) return typeof reason === "string" ? reason : JSON.stringify(reason);
  return failureReason === ERROR ? "The provider failed." : undefined;
}

function answerOf(testCase: JsonObject): unknown {
  const assertions = Array.isArray(testCase.assert) ? testCase.assert.filter(isObject) : [];
  return assertions.find(({ type, value }) => WITH_ANSWER.test(String(type)) && value !== undefined)?.value;
}

function scoresOf({ score, success, namedScores, gradingResult }: PromptfooResult): JsonObject[] {
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
