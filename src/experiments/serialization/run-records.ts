import type { JsonObject } from "../../platform/lib/json/json.ts";
import { isoOfMicroseconds } from "../../platform/lib/times.ts";
import type { ExperimentRun } from "../contract/runs.ts";
import type { RunV2 } from "../contract/v2/runs.ts";
import { feedbackStats, feedbackStatsJson, secondsOf } from "../sessions/stats.ts";
import type { FeedbackStatsInput } from "../storage/feedback.ts";
import type { FullRun } from "../storage/runs.ts";
import { segmentOf } from "../traces/tree-position.ts";
import { constant, type Field, json, RecordSerializer, raw, storedJson } from "./record-serializer.ts";
import { parseJson } from "./records.ts";

const metadataOf = (run: FullRun): JsonObject => parseJson<JsonObject>(run.metadata) ?? {};

/** An uploaded run is the only run of its trace, so its dotted order has one segment. */
export const dottedOrder = ({ start_us, run_id }: FullRun): string => segmentOf(start_us, run_id);

export const appPath = (run: Pick<FullRun, "tenant_id" | "experiment_id" | "run_id">): string =>
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

/** Uploaded runs have ended. */
const endOf = ({ end_us }: FullRun): string => isoOfMicroseconds(end_us as number);

export const RUN_SERIALIZER = new RecordSerializer<RunWithFeedback, ExperimentRun>({
  id: raw(({ run }) => run.run_id),
  name: json(({ run }) => run.name),
  run_type: constant("chain"),
  status: raw(({ run }) => (run.error === null ? "success" : "error")),
  start_time: raw(({ run }) => isoOfMicroseconds(run.start_us)),
  end_time: raw(({ run }) => endOf(run)),
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
  share_token: raw(({ run }) => run.share_token),
  trace_tier: constant("longlived"),
  thread_id: constant(null),
});

export const toRun = (run: FullRun, feedback: readonly FeedbackStatsInput[]): ExperimentRun =>
  RUN_SERIALIZER.toObject({ run, feedback });

export const ERROR_PREVIEW_CHARS = 200;

/** Returns the URL of the page of a shared run; null if the run is not shared. */
export const shareUrl = (base_url: string, share_token: string | null): string | null =>
  share_token === null ? null : `${base_url}/public/${share_token}/r`;

interface RowV2<R> {
  run: R;
  feedback: readonly FeedbackStatsInput[];
  /** The address of the server, for the links to shared runs. */
  base_url: string;
}

/** The fields of version 2 of the API. Each is computed only if it is selected. */
export type FieldsV2<R> = { readonly [Name in keyof RunV2]: (row: RowV2<R>) => RunV2[Name] };

/** An uploaded run in version 2 of the API. */
export const UPLOADED_RUN_V2: FieldsV2<FullRun> = {
  id: ({ run }) => run.run_id,
  name: ({ run }) => run.name,
  run_type: () => "CHAIN",
  status: ({ run }) => (run.error === null ? "SUCCESS" : "ERROR"),
  start_time: ({ run }) => isoOfMicroseconds(run.start_us),
  end_time: ({ run }) => endOf(run),
  latency_seconds: ({ run }) => secondsOf(run),
  first_token_time: () => null,
  error: ({ run }) => run.error,
  error_preview: ({ run }) => run.error?.slice(0, ERROR_PREVIEW_CHARS).toWellFormed() ?? null,
  extra: ({ run }) => ({ metadata: metadataOf(run) }),
  metadata: ({ run }) => metadataOf(run),
  events: () => [],
  inputs: ({ run }) => parseJson(run.inputs ?? "{}") as JsonObject,
  inputs_preview: ({ run }) => run.inputs_preview,
  outputs: ({ run }) => parseJson(run.outputs ?? null),
  outputs_preview: ({ run }) => run.outputs_preview,
  manifest: () => null,
  parent_run_ids: () => [],
  project_id: ({ run }) => run.experiment_id,
  trace_id: ({ run }) => run.run_id,
  thread_id: () => null,
  dotted_order: ({ run }) => dottedOrder(run),
  is_root: () => true,
  reference_example_id: ({ run }) => run.example_id,
  reference_dataset_id: ({ run }) => run.dataset_id,
  total_tokens: () => null,
  prompt_tokens: () => null,
  completion_tokens: () => null,
  total_cost: () => null,
  prompt_cost: () => null,
  completion_cost: () => null,
  prompt_token_details: () => null,
  completion_token_details: () => null,
  prompt_cost_details: () => null,
  completion_cost_details: () => null,
  price_model_id: () => null,
  tags: () => [],
  app_path: ({ run }) => appPath(run),
  attachments: () => ({}),
  thread_evaluation_time: () => null,
  is_in_dataset: ({ run }) => run.example_id !== null,
  last_queued_at: () => null,
  share_url: ({ run, base_url }) => shareUrl(base_url, run.share_token),
  feedback_stats: ({ feedback }) => feedbackStats(feedback),
};

export type NameV2 = keyof RunV2;

/** @param selects names of fields in capitals; the default is the id */
export function selectedNames(selects: readonly string[] | undefined): NameV2[] {
  const selected = new Set(selects && selects.length > 0 ? selects : ["ID"]);
  return (Object.keys(UPLOADED_RUN_V2) as NameV2[]).filter((name) => selected.has(name.toUpperCase()));
}

/** Returns a run with only these fields: computing all 45 to select 9 would take half the time of a page of 1,000 runs. */
export function runV2<R>(fields: FieldsV2<R>, row: RowV2<R>, names: readonly NameV2[]): Partial<RunV2> {
  const record: Partial<Record<NameV2, unknown>> = {};
  for (const name of names) record[name] = fields[name](row);
  return record as Partial<RunV2>;
}
