import type { JsonObject } from "../../platform/lib/json/json.ts";
import { isoOfMicroseconds } from "../../platform/lib/times.ts";
import type { ExperimentRun } from "../contract/runs.ts";
import type { RunV2 } from "../contract/v2.ts";
import { feedbackStats, secondsOf } from "../sessions/stats.ts";
import type { FeedbackStatsInput } from "../storage/feedback.ts";
import type { FullTraceRun } from "../storage/trace-search.ts";
import { NO_USAGE, parseJson } from "./records.ts";

/** What is read for a single run only. */
export interface RunRelatives {
  /** All runs below, in the order of the tree. */
  below: { run_id: string; parent_run_id: string | null }[];
  /** Attachments by `attachment.{name}`. */
  attachments: JsonObject;
}

const timeOf = (us: number | null): string | null => (us === null ? null : isoOfMicroseconds(us));

/** The ids of the runs above, from the root to the parent. */
const idsAbove = ({ dotted_order }: FullTraceRun): string[] =>
  dotted_order
    .split(".")
    .slice(0, -1)
    .map((segment) => segment.slice(-36));

const extraOf = (run: FullTraceRun): JsonObject => ({
  ...parseJson(run.extra ?? null),
  metadata: parseJson(run.metadata) ?? {},
});

const detailsOf = (run: FullTraceRun) => ({
  ...NO_USAGE.details,
  ...parseJson<Partial<typeof NO_USAGE.details>>(run.usage_details),
});

/** A traced run in version 1 of the API. */
export function toTracedRun(
  run: FullTraceRun,
  feedback: readonly FeedbackStatsInput[],
  relatives?: RunRelatives,
): ExperimentRun {
  const status = run.error !== null ? "error" : run.end_us === null ? "pending" : "success";
  return {
    id: run.run_id,
    name: run.name ?? "",
    run_type: run.run_type,
    status,
    start_time: isoOfMicroseconds(run.start_us),
    end_time: timeOf(run.end_us),
    error: run.full_error ?? run.error,
    inputs: parseJson(run.inputs ?? null),
    inputs_preview: run.inputs_preview,
    outputs: parseJson(run.outputs ?? null),
    outputs_preview: run.outputs_preview,
    extra: extraOf(run),
    events: parseJson<JsonObject[]>(run.events ?? null) ?? [],
    tags: parseJson<string[]>(run.tags) ?? [],
    serialized: parseJson(run.serialized ?? null),
    execution_order: 1,
    trace_id: run.trace_id,
    dotted_order: run.dotted_order,
    parent_run_id: run.parent_run_id,
    parent_run_ids: idsAbove(run),
    child_run_ids: relatives?.below.map(({ run_id }) => run_id) ?? null,
    direct_child_run_ids:
      relatives?.below.flatMap(({ run_id, parent_run_id }) => (parent_run_id === run.run_id ? run_id : [])) ?? null,
    session_id: run.experiment_id,
    reference_example_id: run.reference_example_id,
    reference_dataset_id: run.dataset_id,
    feedback_stats: feedbackStats(feedback),
    total_tokens: run.tree_total_tokens ?? 0,
    prompt_tokens: run.tree_prompt_tokens ?? 0,
    completion_tokens: run.tree_completion_tokens ?? 0,
    total_cost: run.tree_total_cost,
    prompt_cost: run.tree_prompt_cost,
    completion_cost: run.tree_completion_cost,
    ...detailsOf(run),
    first_token_time: timeOf(run.tree_first_token_us),
    s3_urls: relatives && Object.keys(relatives.attachments).length > 0 ? relatives.attachments : null,
    app_path: `/o/${run.tenant_id}/projects/p/${run.experiment_id}/r/${run.run_id}`,
    in_dataset: run.example_id !== null,
    share_token: null,
    trace_tier: run.trace_tier,
    thread_id: run.thread_id,
  };
}

const ERROR_PREVIEW_CHARS = 200;

/** A traced run in version 2 of the API, with all fields. */
export function toTracedRunV2(run: FullTraceRun, feedback: readonly FeedbackStatsInput[]): RunV2 {
  const v1 = toTracedRun(run, feedback);
  const tokens = {
    total_tokens: run.tree_total_tokens,
    prompt_tokens: run.tree_prompt_tokens,
    completion_tokens: run.tree_completion_tokens,
  };
  return {
    id: v1.id,
    name: v1.name,
    run_type: v1.run_type.toUpperCase(),
    status: v1.status.toUpperCase() as RunV2["status"],
    start_time: v1.start_time,
    end_time: v1.end_time,
    latency_seconds: run.end_us === null ? null : secondsOf(run),
    first_token_time: v1.first_token_time,
    error: v1.error,
    error_preview: v1.error?.slice(0, ERROR_PREVIEW_CHARS).toWellFormed() ?? null,
    extra: v1.extra,
    metadata: (v1.extra as { metadata: JsonObject }).metadata,
    events: v1.events ?? [],
    inputs: v1.inputs ?? {},
    inputs_preview: v1.inputs_preview,
    outputs: v1.outputs,
    outputs_preview: v1.outputs_preview,
    manifest: v1.serialized,
    parent_run_ids: v1.parent_run_ids,
    project_id: v1.session_id,
    trace_id: v1.trace_id,
    thread_id: v1.thread_id,
    dotted_order: v1.dotted_order,
    is_root: run.is_root === 1,
    reference_example_id: v1.reference_example_id,
    reference_dataset_id: v1.reference_dataset_id,
    ...tokens,
    total_cost: v1.total_cost,
    prompt_cost: v1.prompt_cost,
    completion_cost: v1.completion_cost,
    ...detailsOf(run),
    price_model_id: null,
    tags: v1.tags ?? [],
    app_path: v1.app_path,
    attachments: {},
    thread_evaluation_time: null,
    is_in_dataset: v1.in_dataset,
    last_queued_at: null,
    share_url: null,
    feedback_stats: v1.feedback_stats ?? {},
  };
}
