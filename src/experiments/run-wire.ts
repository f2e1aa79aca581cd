import type { ExperimentRun } from "../contract/experiments/runs.ts";
import type { RunV2 } from "../contract/experiments/v2.ts";
import type { JsonObject } from "../lib/json.ts";
import { isoOfMicroseconds } from "../lib/times.ts";
import type { Judgement } from "../storage/experiments/feedback.ts";
import type { FullRun } from "../storage/experiments/runs.ts";
import { feedbackStats, secondsOf } from "./stats.ts";
import { parsed, UNSAID } from "./wire.ts";

const metadataOf = (run: FullRun): JsonObject => parsed<JsonObject>(run.metadata) ?? {};

/** Orders runs of a trace by start; an uploaded run is a trace of its own: `20260131T120000123456Z<id>`. */
const dottedOrder = (run: FullRun): string =>
  `${new Date(Math.floor(run.start_us / 1000)).toISOString().replaceAll(/[-:]|\.\d+Z/g, "")}${String(run.start_us % 1_000_000).padStart(6, "0")}Z${run.run_id}`;

/** Where the web app shows the run. */
const appPath = (run: FullRun): string => `/o/${run.tenant_id}/projects/p/${run.experiment_id}/r/${run.run_id}`;

/** A run as version 1 shows it. */
export function runOf(run: FullRun, feedback: readonly Judgement[]): ExperimentRun {
  return {
    id: run.run_id,
    name: run.name,
    run_type: "chain",
    status: run.error === null ? "success" : "error",
    start_time: isoOfMicroseconds(run.start_us),
    end_time: isoOfMicroseconds(run.end_us),
    error: run.error,
    inputs: parsed(run.inputs ?? null),
    inputs_preview: run.inputs_preview,
    outputs: parsed(run.outputs ?? null),
    outputs_preview: run.outputs_preview,
    extra: { metadata: metadataOf(run) },
    events: [],
    tags: [],
    serialized: null,
    execution_order: 1,
    trace_id: run.run_id,
    dotted_order: dottedOrder(run),
    parent_run_id: null,
    parent_run_ids: [],
    child_run_ids: [],
    session_id: run.experiment_id,
    reference_example_id: run.example_id,
    reference_dataset_id: run.dataset_id,
    feedback_stats: feedbackStats(feedback),
    total_tokens: 0,
    prompt_tokens: 0,
    completion_tokens: 0,
    ...UNSAID.costs,
    first_token_time: null,
    app_path: appPath(run),
    in_dataset: run.example_id !== null,
    share_token: null,
    trace_tier: "longlived",
    thread_id: null,
  };
}

const ERROR_PREVIEW_CHARS = 200;

/** The same as version 2 shows it, with all its fields. */
export function runV2Of(run: FullRun, feedback: readonly Judgement[]): RunV2 {
  return {
    id: run.run_id,
    name: run.name,
    run_type: "CHAIN",
    status: run.error === null ? "SUCCESS" : "ERROR",
    start_time: isoOfMicroseconds(run.start_us),
    end_time: isoOfMicroseconds(run.end_us),
    latency_seconds: secondsOf(run),
    first_token_time: null,
    error: run.error,
    error_preview: run.error?.slice(0, ERROR_PREVIEW_CHARS).toWellFormed() ?? null,
    extra: { metadata: metadataOf(run) },
    metadata: metadataOf(run),
    events: [],
    inputs: parsed(run.inputs ?? "{}") as JsonObject,
    inputs_preview: run.inputs_preview,
    outputs: parsed(run.outputs ?? null),
    outputs_preview: run.outputs_preview,
    manifest: null,
    parent_run_ids: [],
    project_id: run.experiment_id,
    trace_id: run.run_id,
    thread_id: null,
    dotted_order: dottedOrder(run),
    is_root: true,
    reference_example_id: run.example_id,
    reference_dataset_id: run.dataset_id,
    ...UNSAID.tokens,
    prompt_token_details: null,
    completion_token_details: null,
    prompt_cost_details: null,
    completion_cost_details: null,
    price_model_id: null,
    tags: [],
    app_path: appPath(run),
    attachments: {},
    thread_evaluation_time: null,
    is_in_dataset: run.example_id !== null,
    last_queued_at: null,
    share_url: null,
    feedback_stats: feedbackStats(feedback),
  };
}

/** The fields that were selected by their names in capitals; the id alone when nothing was. */
export function selectedV2(run: RunV2, selects: readonly string[] | undefined): Partial<RunV2> {
  const wanted = new Set(selects && selects.length > 0 ? selects : ["ID"]);
  return Object.fromEntries(Object.entries(run).filter(([name]) => wanted.has(name.toUpperCase()))) as Partial<RunV2>;
}
