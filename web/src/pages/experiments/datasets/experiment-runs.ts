import type { QueryClient } from "@tanstack/react-query";
import type { Dataset } from "../../../../../src/experiments/contract/datasets/datasets.ts";
import type { Example } from "../../../../../src/experiments/contract/datasets/examples.ts";
import type { Session } from "../../../../../src/experiments/contract/sessions.ts";
import { api } from "../../../api/request.ts";
import { createStore } from "../../../store.ts";
import { EXPERIMENTS } from "../queries.ts";

export interface ExperimentOrder {
  dataset: Dataset;
  assistant_id: string;
  assistant_name: string;
  /** Name of the experiment, unique in the workspace. */
  name: string;
  /** Undefined for all examples. */
  split: string | undefined;
  /** Number of examples that are run at the same time. */
  concurrency: number;
  evaluators: readonly Evaluator[];
  /** Whether each example keeps its thread, whose checkpoints can be opened from the trace. */
  keep_threads: boolean;
}

/** Built-in evaluators compare outputs and expected outputs. An assistant gets both with the inputs, and returns a score. */
export type Evaluator =
  | { kind: "exact_match" | "json_match" }
  | { kind: "assistant"; assistant_id: string; key: string };

/** An experiment that this page runs. */
export interface RunningExperiment {
  id: string;
  order: ExperimentOrder;
  state: "running" | "done" | "failed";
  done: number;
  total: number;
  error?: Error;
}

/** An object with the result of a run, or `__error__`. */
type Result = Record<string, unknown> & { __error__?: { error: string; message: string } };

interface Score {
  key: string;
  score?: number | boolean;
  value?: unknown;
  comment?: string;
  error?: true;
}

interface PendingRow {
  example: Example;
  /** What is sent, once the example was run. A repeated request with the same IDs stores nothing twice. */
  bodies?: { run: object; scores: object[] };
}

const PAGE = 100;

// Module state, so that experiments continue when the user leaves the page of the dataset.
const experiments = createStore<readonly RunningExperiment[]>([]);
const controllers = new Map<string, AbortController>();
/** The rows that are left, by experiment. */
const queues = new Map<string, PendingRow[]>();

export const useRunningExperiments = experiments.use;

const update = (id: string, changed: Partial<RunningExperiment>): void =>
  experiments.set(experiments.get().map((each) => (each.id === id ? { ...each, ...changed } : each)));

/** Closing the page ends its experiments; the rows that are stored stay. */
const warn = (event: BeforeUnloadEvent): void => event.preventDefault();

/**
 * Creates the experiment, then runs its examples. Each row is stored as soon as it is evaluated.
 *
 * @throws RequestError if the name is taken; Error if there are no examples
 */
export async function startExperiment(order: ExperimentOrder, client: QueryClient): Promise<void> {
  const { dataset, name, assistant_name } = order;
  const examples = await readExamples(order);
  if (examples.length === 0) throw new Error("The dataset has no examples to run: add examples first.");
  const extra = { metadata: { assistant: assistant_name, dataset: dataset.name, split: order.split } };
  const { id } = await api.post<Session>("/api/v1/sessions", { name, reference_dataset_id: dataset.id, extra });
  queues.set(
    id,
    examples.map((example) => ({ example })),
  );
  experiments.set([...experiments.get(), { id, order, state: "running", done: 0, total: examples.length }]);
  void continueExperiment(id, client);
}

/** Runs the examples that are left, after the start or a failure. */
export async function continueExperiment(id: string, client: QueryClient): Promise<void> {
  const experiment = experiments.get().find((each) => each.id === id);
  const queue = queues.get(id);
  if (!experiment || !queue) return;
  const { order } = experiment;
  const controller = new AbortController();
  controllers.set(id, controller);
  addEventListener("beforeunload", warn);
  update(id, { state: "running", error: undefined });
  let { done } = experiment;
  const work = async () => {
    for (let row = queue.shift(); row; row = queue.shift())
      try {
        row.bodies ??= await runExample(row.example, order, id, controller.signal);
        const { run, scores } = row.bodies;
        await api.post("/api/v1/runs/batch", { post: [run] });
        for (const score of scores) await api.post("/api/v1/feedback", score);
        update(id, { done: ++done });
      } catch (error) {
        queue.unshift(row);
        controller.abort();
        throw error;
      }
  };
  const results = await Promise.allSettled(Array.from({ length: order.concurrency }, work));
  controllers.delete(id);
  if (controllers.size === 0) removeEventListener("beforeunload", warn);
  // The first failure aborts the other requests, which then fail, too.
  const reasons = results.flatMap((result) => (result.status === "rejected" ? [result.reason as Error] : []));
  const error = reasons.find(({ name }) => name !== "AbortError") ?? reasons[0];
  if (experiments.get().some((each) => each.id === id)) {
    if (!error)
      await api.patch(`/api/v1/sessions/${id}`, { end_time: new Date().toISOString() }).catch(() => undefined);
    update(id, error ? { state: "failed", error } : { state: "done" });
  }
  await client.invalidateQueries({ queryKey: EXPERIMENTS });
}

/** Stops an experiment of this page, or removes it from the list. The rows that are stored stay. */
export function dismissExperiment(id: string): void {
  experiments.set(experiments.get().filter((each) => each.id !== id));
  queues.delete(id);
  controllers.get(id)?.abort();
}

async function readExamples({ dataset, split }: ExperimentOrder): Promise<Example[]> {
  const examples: Example[] = [];
  for (;;) {
    const query = { dataset: dataset.id, splits: split, order: "id", limit: PAGE, offset: examples.length };
    const page = await api.get<Example[]>("/api/v1/examples", { query });
    examples.push(...page);
    if (page.length < PAGE) return examples;
  }
}

async function runExample(
  { id, inputs, outputs: expected, modified_at }: Example,
  { assistant_id, assistant_name, name, evaluators, keep_threads }: ExperimentOrder,
  session_id: string,
  signal: AbortSignal,
): Promise<NonNullable<PendingRow["bodies"]>> {
  const run_id = crypto.randomUUID();
  const start_time = new Date().toISOString();
  const dotted_order = `${start_time.replaceAll(/[-:.Z]/g, "")}000Z${run_id}`;
  const { __error__: failure, ...outputs } = await runAssistant(assistant_id, inputs, signal, {
    // Makes the server store the trace of the agent run below the run of the row.
    config: { configurable: { "langsmith-trace": dotted_order } },
    langsmith_tracer: { project_name: name },
    ...(keep_threads && { on_completion: "keep", metadata: { experiment: name, example_id: id } }),
  });
  const run = {
    ...{ id: run_id, trace_id: run_id, dotted_order, session_id, name: assistant_name, run_type: "chain" },
    ...{ reference_example_id: id, extra: { metadata: { example_version: modified_at } } },
    ...{ start_time, end_time: new Date().toISOString(), inputs },
    ...(failure ? { error: `${failure.error}: ${failure.message}` } : { outputs }),
  };
  const scores: object[] = [];
  for (const evaluator of failure ? [] : evaluators) {
    const score = await evaluate(evaluator, { inputs, outputs, expected }, signal);
    scores.push({ ...score, id: crypto.randomUUID(), run_id, session_id });
  }
  return { run, scores };
}

async function runAssistant(
  assistant_id: string,
  input: unknown,
  signal: AbortSignal,
  options: object = {},
): Promise<Result> {
  const body = { assistant_id, input, on_disconnect: "cancel", ...options };
  const result = await api.post<unknown>("/runs/wait", body, { signal });
  return isObject(result) ? result : { output: result };
}

interface Row {
  inputs: unknown;
  outputs: unknown;
  expected: unknown;
}

async function evaluate(evaluator: Evaluator, row: Row, signal: AbortSignal): Promise<Score> {
  if (evaluator.kind !== "assistant") {
    const match = jsonMatch(row.outputs, row.expected, evaluator.kind === "exact_match");
    return { key: evaluator.kind, score: evaluator.kind === "exact_match" ? match === 1 : match };
  }
  const { assistant_id, key } = evaluator;
  const { __error__: failure, score, value, comment } = await runAssistant(assistant_id, row, signal);
  if (failure) return { key, error: true, comment: `${failure.error}: ${failure.message}` };
  if (typeof score !== "number" && typeof score !== "boolean" && value === undefined)
    return { key, error: true, comment: "The assistant returned neither a score (a number or a boolean) nor a value." };
  const texts = { value, comment: typeof comment === "string" ? comment : undefined };
  return typeof score === "number" || typeof score === "boolean" ? { key, score, ...texts } : { key, ...texts };
}

/**
 * The share of the expected values that the outputs contain at the same place, from 0 to 1.
 *
 * @param isExact whether values that are not expected count as differences
 */
export function jsonMatch(outputs: unknown, expected: unknown, isExact: boolean): number {
  const wanted = leavesOf(expected);
  const found = leavesOf(outputs);
  const equal = [...wanted].filter(([path, value]) => found.get(path) === value).length;
  if (isExact) return equal === wanted.size && found.size === wanted.size ? 1 : 0;
  return wanted.size === 0 ? 1 : equal / wanted.size;
}

/** The values that are neither objects nor lists, and empty ones, as JSON, by their path. */
function leavesOf(value: unknown, path = "", leaves = new Map<string, string>()): Map<string, string> {
  const entries = typeof value === "object" && value !== null ? Object.entries(value) : [];
  if (entries.length === 0) leaves.set(path, JSON.stringify(value ?? null));
  for (const [key, inner] of entries)
    leavesOf(inner, `${path}/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`, leaves);
  return leaves;
}

const isObject = (value: unknown): value is Result =>
  typeof value === "object" && value !== null && !Array.isArray(value);
