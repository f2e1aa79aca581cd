import type { QueryClient } from "@tanstack/react-query";
import { v4 as randomId } from "uuid";
import type { Dataset } from "../../../../../src/experiments/contract/datasets/datasets.ts";
import type { Example } from "../../../../../src/experiments/contract/datasets/examples.ts";
import type { Session } from "../../../../../src/experiments/contract/sessions.ts";
import { pause } from "../../../api/pause.ts";
import { api, RequestError } from "../../../api/request.ts";
import { createStore } from "../../../store.ts";
import { OF_EXPERIMENT } from "../../threads/queries.ts";
import { comparisonKey } from "../compare/queries.ts";
import { EXPERIMENTS } from "../queries.ts";
import { keptBy } from "../sessions/kept-threads.tsx";
import { runCode } from "./code-evaluator.ts";

export interface ExperimentOrder {
  /** Workspace of the experiment, also while another one is selected. Null for the default workspace of the key. */
  tenant_id: string | null;
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

/** Built-in evaluators compare outputs and expected outputs. Code and assistants get both with the inputs, and return a score. */
export type Evaluator =
  | { kind: "exact_match" }
  | { kind: "json_match" }
  | { kind: "code"; code: string; key: string }
  | { kind: "assistant"; assistant_id: string; key: string };

/** An experiment that this page runs. */
export interface RunningExperiment {
  id: string;
  order: ExperimentOrder;
  state: "running" | "done" | "failed";
  done: number;
  total: number;
  /** Numbers of runs and evaluations that ended with an error. */
  failed: { runs: number; evaluations: number };
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
  extra?: { error: true };
}

interface PendingRow {
  example: Example;
  /** What is sent, once the example was run. A repeated request with the same IDs stores nothing twice. */
  bodies?: { run: { id: string; error?: string }; scores: Score[] };
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
 * @throws RequestError if the name is taken; Error if there are no examples, or if code cannot be compiled
 */
export async function startExperiment(order: ExperimentOrder, client: QueryClient): Promise<void> {
  const { tenant_id, dataset, name, assistant_name } = order;
  for (const evaluator of order.evaluators) if (evaluator.kind === "code") await compile(evaluator.code);
  const examples = await readExamples(order);
  if (examples.length === 0)
    throw new Error(
      `The ${order.split ? `split “${order.split}”` : "dataset"} has no examples to run: add examples first.`,
    );
  const extra = { metadata: { assistant: assistant_name, dataset: dataset.name, split: order.split } };
  const session = { name, reference_dataset_id: dataset.id, extra };
  const { id } = await api.post<Session>("/api/v1/sessions", session, { tenant_id });
  queues.set(
    id,
    examples.map((example) => ({ example })),
  );
  // One that has ended is in the list of experiments; one that stopped can be continued here.
  const others = experiments.get().filter((each) => each.order.dataset.id !== dataset.id || each.state !== "done");
  const failed = { runs: 0, evaluations: 0 };
  experiments.set([...others, { id, order, state: "running", done: 0, total: examples.length, failed }]);
  void continueExperiment(id, client);
}

/** Runs the examples that are left, after the start or a failure. */
export async function continueExperiment(id: string, client: QueryClient): Promise<void> {
  const experiment = experiments.get().find((each) => each.id === id);
  const queue = queues.get(id);
  if (!experiment || !queue) return;
  const { order } = experiment;
  const { tenant_id } = order;
  const controller = new AbortController();
  controllers.set(id, controller);
  addEventListener("beforeunload", warn);
  update(id, { state: "running", error: undefined });
  let { done } = experiment;
  const failed = { ...experiment.failed };
  const work = async () => {
    for (let row = queue.shift(); row; row = queue.shift())
      try {
        row.bodies ??= await runExample(row.example, order, id, controller.signal);
        const { run, scores } = row.bodies;
        await store("/api/v1/runs/batch", { post: [run] }, order, controller.signal);
        for (const score of scores) await store("/api/v1/feedback", score, order, controller.signal);
        if (run.error !== undefined) failed.runs++;
        failed.evaluations += scores.filter(({ error }) => error).length;
        update(id, { done: ++done, failed: { ...failed } });
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
      await api
        .patch(`/api/v1/sessions/${id}`, { end_time: new Date().toISOString() }, { tenant_id })
        .catch(() => undefined);
    update(id, error ? { state: "failed", error } : { state: "done" });
  }
  // The page of the dataset has read the differences of what was stored before.
  const changed = [EXPERIMENTS, comparisonKey(order.dataset.id)];
  await Promise.all(changed.map((queryKey) => client.invalidateQueries({ queryKey })));
}

const STORE_ATTEMPTS = 5;
/** The `retry-after` of a 503. */
const RETRY_MS = 1_000;

/** Stores a part of a row. The server responds with 503 while it receives more than it can store, or restarts. */
async function store(path: string, body: object, { tenant_id }: ExperimentOrder, signal: AbortSignal): Promise<void> {
  for (let attempt = 1; ; attempt++)
    try {
      return await api.post(path, body, { tenant_id });
    } catch (error) {
      const isTemporary = error instanceof RequestError && error.status === 503;
      if (!isTemporary || attempt === STORE_ATTEMPTS || signal.aborted) throw error;
      await pause(RETRY_MS, signal);
    }
}

/** Stops an experiment of this page, or removes it from the list. The rows that are stored stay. */
export function dismissExperiment(id: string): void {
  experiments.set(experiments.get().filter((each) => each.id !== id));
  queues.delete(id);
  controllers.get(id)?.abort();
}

async function readExamples({ tenant_id, dataset, split }: ExperimentOrder): Promise<Example[]> {
  const examples: Example[] = [];
  for (;;) {
    const query = { dataset: dataset.id, splits: split, order: "id", limit: PAGE, offset: examples.length };
    const page = await api.get<Example[]>("/api/v1/examples", { query, tenant_id });
    examples.push(...page);
    if (page.length < PAGE) return examples;
  }
}

async function compile(code: string): Promise<void> {
  const { __error__: failure } = toResult(await runCode(code));
  if (failure)
    throw new Error(`The code of the evaluator is invalid (${failure.error}: ${failure.message}). Correct it.`);
}

async function runExample(
  example: Example,
  order: ExperimentOrder,
  session_id: string,
  signal: AbortSignal,
): Promise<NonNullable<PendingRow["bodies"]>> {
  const { assistant_name, name, evaluators, keep_threads } = order;
  const { id, inputs, modified_at } = example;
  const run_id = randomId();
  const start_time = new Date().toISOString();
  const dotted_order = `${start_time.replaceAll(/[-:.Z]/g, "")}000Z${run_id}`;
  const { __error__: failure, ...outputs } = await runAssistant(order, inputs, signal, {
    // Makes the server store the trace of the agent run below the run of the row.
    config: { configurable: { "langsmith-trace": dotted_order } },
    langsmith_tracer: { project_name: name },
    ...(keep_threads && {
      on_completion: "keep",
      metadata: { ...OF_EXPERIMENT, ...keptBy(session_id), experiment: name, example_id: id },
    }),
  });
  const run = {
    ...{ id: run_id, trace_id: run_id, dotted_order, session_id, name: assistant_name, run_type: "chain" },
    ...{ reference_example_id: id, extra: { metadata: { example_version: modified_at } } },
    ...{ start_time, end_time: new Date().toISOString(), inputs },
    ...(failure ? { error: `${failure.error}: ${failure.message}` } : { outputs }),
  };
  const scores: Score[] = [];
  for (const evaluator of failure ? [] : evaluators) {
    const score = await evaluate(evaluator, example, outputs, order, signal);
    if (score) scores.push(Object.assign(score, { id: randomId(), run_id, session_id }));
  }
  return { run, scores };
}

async function runAssistant(
  { tenant_id, assistant_id }: Pick<ExperimentOrder, "tenant_id" | "assistant_id">,
  input: unknown,
  signal: AbortSignal,
  options: object = {},
): Promise<Result> {
  const body = { assistant_id, input, on_disconnect: "cancel", ...options };
  return toResult(await api.post<unknown>("/runs/wait", body, { tenant_id, signal }));
}

/** How the official clients mark the error of an evaluator. It counts as an error, and not as a score. */
const FAILED = { error: true, extra: { error: true } } as const;

const toResult = (value: unknown): Result => (isObject(value) ? value : { output: value });

/** @returns undefined if the output is to be compared with an expected output, and the example has none */
async function evaluate(
  evaluator: Evaluator,
  { id, inputs, outputs: expected, metadata }: Example,
  outputs: unknown,
  { tenant_id }: ExperimentOrder,
  signal: AbortSignal,
): Promise<Score | undefined> {
  if (evaluator.kind === "exact_match" || evaluator.kind === "json_match") {
    if (Object.keys(expected ?? {}).length === 0) return undefined;
    const match = jsonMatch(outputs, expected, evaluator.kind === "exact_match");
    return { key: evaluator.kind, score: evaluator.kind === "exact_match" ? match === 1 : match };
  }
  const { key } = evaluator;
  const result =
    evaluator.kind === "assistant"
      ? await runAssistant({ ...evaluator, tenant_id }, { inputs, outputs, expected }, signal)
      : await runCode(evaluator.code, {
          run: { inputs, outputs },
          example: { id, inputs, outputs: expected, metadata },
        });
  const { __error__: failure, score, value, comment } = toResult(result);
  if (failure) return { key, ...FAILED, comment: `${failure.error}: ${failure.message}` };
  const texts = { value, comment: typeof comment === "string" ? comment : undefined };
  if (typeof score === "boolean" || Number.isFinite(score)) return { key, score: score as number | boolean, ...texts };
  if (value !== undefined) return { key, ...texts };
  return { key, ...FAILED, comment: "The evaluator returned neither a score (a number or a boolean) nor a value." };
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
  return equal / wanted.size;
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
