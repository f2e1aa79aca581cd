import type { JsonObject } from "../../platform/lib/json/json.ts";
import { isoOfMicroseconds } from "../../platform/lib/times.ts";
import type { ExperimentRun } from "../contract/runs.ts";
import type { RunV2 } from "../contract/v2/runs.ts";
import { feedbackStats, secondsOf } from "../sessions/stats.ts";
import type { FeedbackStatsInput } from "../storage/feedback.ts";
import type { TraceRunRow } from "../storage/traces/trace-schema.ts";
import type { FullTraceRun } from "../storage/traces/trace-search.ts";
import { NO_USAGE, parseJson } from "./records.ts";
import { appPath, ERROR_PREVIEW_CHARS, type FieldsV2, shareUrl } from "./run-records.ts";

/** Data that is not in the row of a run. */
export interface RunRelatives {
  /** All runs below the run, in the order of the tree; undefined in lists of runs. */
  below: { run_id: string; parent_run_id: string | null }[] | undefined;
  /** Attachments by `attachment.{name}`. */
  attachments: JsonObject;
}

export const timeOf = (us: number | null): string | null => (us === null ? null : isoOfMicroseconds(us));

export const statusOf = ({ error, end_us }: Pick<TraceRunRow, "error" | "end_us">): ExperimentRun["status"] =>
  error !== null ? "error" : end_us === null ? "pending" : "success";

/** The ids of the runs above a run, from the root to the parent. */
const idsAbove = ({ dotted_order }: FullTraceRun): string[] =>
  dotted_order
    .split(".")
    .slice(0, -1)
    .map((segment) => segment.slice(-36));

const errorOf = (run: FullTraceRun): string | null => run.full_error ?? run.error;

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
  return {
    id: run.run_id,
    name: run.name ?? "",
    run_type: run.run_type,
    status: statusOf(run),
    start_time: isoOfMicroseconds(run.start_us),
    end_time: timeOf(run.end_us),
    error: errorOf(run),
    // The Python client cannot read a run without inputs.
    inputs: run.inputs === undefined ? null : (parseJson(run.inputs) ?? {}),
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
    child_run_ids: relatives?.below?.map(({ run_id }) => run_id) ?? null,
    direct_child_run_ids:
      relatives?.below?.flatMap(({ run_id, parent_run_id }) => (parent_run_id === run.run_id ? run_id : [])) ?? null,
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
    app_path: appPath(run),
    in_dataset: run.example_id !== null,
    share_token: run.share_token,
    trace_tier: run.trace_tier,
    thread_id: run.thread_id,
  };
}

/** A traced run in version 2 of the API. */
export const TRACED_RUN_V2: FieldsV2<FullTraceRun> = {
  id: ({ run }) => run.run_id,
  name: ({ run }) => run.name ?? "",
  run_type: ({ run }) => run.run_type.toUpperCase(),
  status: ({ run }) => statusOf(run).toUpperCase() as RunV2["status"],
  start_time: ({ run }) => isoOfMicroseconds(run.start_us),
  end_time: ({ run }) => timeOf(run.end_us),
  latency_seconds: ({ run }) => (run.end_us === null ? null : secondsOf(run)),
  first_token_time: ({ run }) => timeOf(run.tree_first_token_us),
  error: ({ run }) => errorOf(run),
  error_preview: ({ run }) => errorOf(run)?.slice(0, ERROR_PREVIEW_CHARS).toWellFormed() ?? null,
  extra: ({ run }) => extraOf(run),
  metadata: ({ run }) => parseJson(run.metadata) ?? {},
  events: ({ run }) => parseJson(run.events ?? null) ?? [],
  inputs: ({ run }) => parseJson(run.inputs ?? null) ?? {},
  inputs_preview: ({ run }) => run.inputs_preview,
  outputs: ({ run }) => parseJson(run.outputs ?? null),
  outputs_preview: ({ run }) => run.outputs_preview,
  manifest: ({ run }) => parseJson(run.serialized ?? null),
  parent_run_ids: ({ run }) => idsAbove(run),
  project_id: ({ run }) => run.experiment_id,
  trace_id: ({ run }) => run.trace_id,
  thread_id: ({ run }) => run.thread_id,
  dotted_order: ({ run }) => run.dotted_order,
  is_root: ({ run }) => run.is_root === 1,
  reference_example_id: ({ run }) => run.reference_example_id,
  reference_dataset_id: ({ run }) => run.dataset_id,
  total_tokens: ({ run }) => run.tree_total_tokens,
  prompt_tokens: ({ run }) => run.tree_prompt_tokens,
  completion_tokens: ({ run }) => run.tree_completion_tokens,
  total_cost: ({ run }) => run.tree_total_cost,
  prompt_cost: ({ run }) => run.tree_prompt_cost,
  completion_cost: ({ run }) => run.tree_completion_cost,
  prompt_token_details: ({ run }) => detailsOf(run).prompt_token_details,
  completion_token_details: ({ run }) => detailsOf(run).completion_token_details,
  prompt_cost_details: ({ run }) => detailsOf(run).prompt_cost_details,
  completion_cost_details: ({ run }) => detailsOf(run).completion_cost_details,
  price_model_id: () => null,
  tags: ({ run }) => parseJson(run.tags) ?? [],
  app_path: ({ run }) => appPath(run),
  attachments: () => ({}),
  thread_evaluation_time: () => null,
  is_in_dataset: ({ run }) => run.example_id !== null,
  last_queued_at: () => null,
  share_url: ({ run, base_url }) => shareUrl(base_url, run.share_token),
  feedback_stats: ({ feedback }) => feedbackStats(feedback),
};
