import type { JsonObject } from "../../platform/lib/json/json.ts";
import { isoOfMicroseconds } from "../../platform/lib/times.ts";
import type { ExperimentRun } from "../contract/runs.ts";
import type { RunV2 } from "../contract/v2.ts";
import { feedbackStats, feedbackStatsJson, secondsOf } from "../sessions/stats.ts";
import type { FeedbackStatsInput } from "../storage/feedback.ts";
import type { FullRun } from "../storage/runs.ts";
import { segmentOf } from "../traces/tree-position.ts";
import { constant, type Field, json, RecordSerializer, raw, storedJson } from "./record-serializer.ts";
import { NO_USAGE, parseJson, selectFields } from "./records.ts";

const metadataOf = (run: FullRun): JsonObject => parseJson<JsonObject>(run.metadata) ?? {};

/** An uploaded run is the only run of its trace. */
const dottedOrder = ({ start_us, run_id }: FullRun): string => segmentOf(start_us, run_id);

const appPath = (run: Pick<FullRun, "tenant_id" | "experiment_id" | "run_id">): string =>
  `/o/${run.tenant_id}/projects/p/${run.experiment_id}/r/${run.run_id}`;

export interface RunWithFeedback<F extends FeedbackStatsInput = FeedbackStatsInput> {
  run: FullRun;
  feedback: readonly F[];
}

/**
 * The beginning of a payload. A truncated preview ends with "…", which would make V8 store the whole response with two
 * bytes per character: 6 MB a page instead of 3. Therefore "…" is written as an escape.
 */
const preview = <V extends string | null>(value: (row: RunWithFeedback) => V): Field<RunWithFeedback, V> => ({
  value,
  json(row) {
    const text = JSON.stringify(value(row));
    if (!TRUNCATED_LATIN.test(text)) return text;
    return `${Buffer.from(text, "latin1").toString("latin1", 0, text.length - 2)}\\u2026"`;
  },
});

const TRUNCATED_LATIN = /^[\0-\xff]*…"$/;

export const RUN_SERIALIZER = new RecordSerializer<RunWithFeedback, ExperimentRun>({
  id: raw(({ run }) => run.run_id),
  name: json(({ run }) => run.name),
  run_type: constant("chain"),
  status: raw(({ run }) => (run.error === null ? "success" : "error")),
  start_time: raw(({ run }) => isoOfMicroseconds(run.start_us)),
  end_time: raw(({ run }) => isoOfMicroseconds(run.end_us)),
  error: json(({ run }) => run.error),
  inputs: storedJson(({ run }) => run.inputs),
  inputs_preview: preview(({ run }) => run.inputs_preview),
  outputs: storedJson(({ run }) => run.outputs),
  outputs_preview: preview(({ run }) => run.outputs_preview),
  extra: {
    value: ({ run }) => ({ metadata: metadataOf(run) }),
    json: ({ run }) => `{"metadata":${run.metadata ?? "{}"}}`,
  },
  events: constant([]),
  tags: constant([]),
  serialized: constant(null),
  execution_order: constant(1),
  trace_id: raw(({ run }) => run.run_id),
  dotted_order: raw(({ run }) => dottedOrder(run)),
  parent_run_id: constant(null),
  parent_run_ids: constant([]),
  child_run_ids: constant([]),
  direct_child_run_ids: constant([]),
  session_id: raw(({ run }) => run.experiment_id),
  reference_example_id: raw(({ run }) => run.example_id),
  reference_dataset_id: raw(({ run }) => run.dataset_id),
  feedback_stats: {
    value: ({ feedback }) => feedbackStats(feedback),
    json: ({ feedback }) => feedbackStatsJson(feedback),
  },
  total_tokens: constant(0),
  prompt_tokens: constant(0),
  completion_tokens: constant(0),
  total_cost: constant(null),
  prompt_cost: constant(null),
  completion_cost: constant(null),
  prompt_token_details: constant(null),
  completion_token_details: constant(null),
  prompt_cost_details: constant(null),
  completion_cost_details: constant(null),
  first_token_time: constant(null),
  s3_urls: constant(null),
  app_path: json(({ run }) => appPath(run)),
  in_dataset: json(({ run }) => run.example_id !== null),
  share_token: constant(null),
  trace_tier: constant("longlived"),
  thread_id: constant(null),
});

export const toRun = (run: FullRun, feedback: readonly FeedbackStatsInput[]): ExperimentRun =>
  RUN_SERIALIZER.toObject({ run, feedback });

const ERROR_PREVIEW_CHARS = 200;

/** A run in version 2 of the API, with all fields. */
export function toRunV2(run: FullRun, feedback: readonly FeedbackStatsInput[]): RunV2 {
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
    inputs: parseJson(run.inputs ?? "{}") as JsonObject,
    inputs_preview: run.inputs_preview,
    outputs: parseJson(run.outputs ?? null),
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
    ...NO_USAGE.tokens,
    ...NO_USAGE.details,
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

/** @param selects names of fields in capitals; the default is the id */
export function selectV2Fields(run: RunV2, selects: readonly string[] | undefined): Partial<RunV2> {
  const selected = new Set(selects && selects.length > 0 ? selects : ["ID"]);
  return selectFields(run, (name) => selected.has(name.toUpperCase()));
}
