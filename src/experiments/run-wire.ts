import type { JsonObject } from "../platform/lib/json/json.ts";
import { isoOfMicroseconds } from "../platform/lib/times.ts";
import type { ExperimentRun } from "./contract/runs.ts";
import type { RunV2 } from "./contract/v2.ts";
import { always, bare, type Field, Shape, stored, written } from "./shape.ts";
import { feedbackStats, feedbackStatsText, secondsOf } from "./stats.ts";
import type { Judgement } from "./storage/feedback.ts";
import type { FullRun } from "./storage/runs.ts";
import { parsed, UNSAID } from "./wire.ts";

const metadataOf = (run: FullRun): JsonObject => parsed<JsonObject>(run.metadata) ?? {};

/** Orders runs of a trace by start; an uploaded run is a trace of its own: `20260131T120000123456Z<id>`. */
function dottedOrder({ start_us, run_id }: FullRun): string {
  const [time = "", rest = ""] = isoOfMicroseconds(start_us).slice(0, -"+00:00".length).split(".");
  return `${time.replaceAll(/[-:]/g, "")}${rest.padEnd(6, "0")}Z${run_id}`;
}

/** Where the web app shows the run. */
const appPath = (run: FullRun): string => `/o/${run.tenant_id}/projects/p/${run.experiment_id}/r/${run.run_id}`;

/** A run with the feedback on it. */
export interface JudgedRun<F extends Judgement = Judgement> {
  run: FullRun;
  feedback: readonly F[];
}

/**
 * The beginning of a payload. Of one that was cut the last character is …, for which V8 would hold all the text that it is
 * written into in two bytes a character: 6 MB a page instead of 3. So it is written as an escape, and the rest copied.
 */
const preview = <V extends string | null>(value: (row: JudgedRun) => V): Field<JudgedRun, V> => ({
  value,
  text(row) {
    const json = JSON.stringify(value(row));
    if (!CUT_LATIN.test(json)) return json;
    return `${Buffer.from(json, "latin1").toString("latin1", 0, json.length - 2)}\\u2026"`;
  },
});

const CUT_LATIN = /^[\0-\xff]*…"$/;

/** A run as version 1 shows it. */
export const RUN = new Shape<JudgedRun, ExperimentRun>({
  id: bare(({ run }) => run.run_id),
  name: written(({ run }) => run.name),
  run_type: always("chain"),
  status: bare(({ run }) => (run.error === null ? "success" : "error")),
  start_time: bare(({ run }) => isoOfMicroseconds(run.start_us)),
  end_time: bare(({ run }) => isoOfMicroseconds(run.end_us)),
  error: written(({ run }) => run.error),
  inputs: stored(({ run }) => run.inputs),
  inputs_preview: preview(({ run }) => run.inputs_preview),
  outputs: stored(({ run }) => run.outputs),
  outputs_preview: preview(({ run }) => run.outputs_preview),
  extra: {
    value: ({ run }) => ({ metadata: metadataOf(run) }),
    text: ({ run }) => `{"metadata":${run.metadata ?? "{}"}}`,
  },
  events: always([]),
  tags: always([]),
  serialized: always(null),
  execution_order: always(1),
  trace_id: bare(({ run }) => run.run_id),
  dotted_order: bare(({ run }) => dottedOrder(run)),
  parent_run_id: always(null),
  parent_run_ids: always([]),
  child_run_ids: always([]),
  session_id: bare(({ run }) => run.experiment_id),
  reference_example_id: bare(({ run }) => run.example_id),
  reference_dataset_id: bare(({ run }) => run.dataset_id),
  feedback_stats: {
    value: ({ feedback }) => feedbackStats(feedback),
    text: ({ feedback }) => feedbackStatsText(feedback),
  },
  total_tokens: always(0),
  prompt_tokens: always(0),
  completion_tokens: always(0),
  total_cost: always(null),
  prompt_cost: always(null),
  completion_cost: always(null),
  first_token_time: always(null),
  app_path: written(({ run }) => appPath(run)),
  in_dataset: written(({ run }) => run.example_id !== null),
  share_token: always(null),
  trace_tier: always("longlived"),
  thread_id: always(null),
});

export const runOf = (run: FullRun, feedback: readonly Judgement[]): ExperimentRun => RUN.valueOf({ run, feedback });

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
