import type { Dataset } from "../contract/experiments/datasets.ts";
import type { Example } from "../contract/experiments/examples.ts";
import type { Feedback } from "../contract/experiments/feedback.ts";
import type { Session } from "../contract/experiments/sessions.ts";
import type { JsonObject } from "../lib/json.ts";
import { isoOfMicroseconds, isoOfMilliseconds } from "../lib/times.ts";
import type { DatasetWithCounts } from "../storage/experiments/datasets.ts";
import type { VersionedExample } from "../storage/experiments/examples.ts";
import type { FullFeedback } from "../storage/experiments/feedback.ts";
import type { DatasetRow, ExperimentRow, FeedbackRow } from "../storage/experiments/schema.ts";
import type { ExperimentStats } from "./stats.ts";

/** JSON as a database keeps it. */
export const parsed = <T = JsonObject>(json: string | null): T | null => (json === null ? null : JSON.parse(json));
export const textOf = (value: unknown): string | null =>
  value === undefined || value === null ? null : JSON.stringify(value);

export function datasetOf(row: DatasetRow & Partial<DatasetWithCounts>): Dataset {
  const last = row.last_session_start_us ?? null;
  return {
    id: row.dataset_id,
    tenant_id: row.tenant_id,
    name: row.name,
    description: row.description,
    data_type: row.data_type as Dataset["data_type"],
    externally_managed: row.externally_managed === 1,
    inputs_schema_definition: parsed(row.inputs_schema),
    outputs_schema_definition: parsed(row.outputs_schema),
    transformations: parsed<JsonObject[]>(row.transformations),
    metadata: parsed(row.metadata),
    baseline_experiment_id: row.baseline_experiment_id,
    example_count: row.example_count,
    session_count: Number(row.session_count ?? 0),
    created_at: isoOfMilliseconds(row.created_at),
    modified_at: isoOfMilliseconds(row.modified_at),
    last_session_start_time: last === null ? null : isoOfMicroseconds(last),
  };
}

export function exampleOf(row: VersionedExample, dataset_id: string): Example {
  const splits = JSON.parse(row.splits) as string[];
  const metadata = parsed(row.metadata);
  return {
    id: row.example_id,
    dataset_id,
    name: `#${row.ord + 1}`,
    inputs: JSON.parse(row.inputs),
    outputs: parsed(row.outputs),
    metadata: splits.length > 0 ? { ...metadata, dataset_split: splits } : metadata,
    source_run_id: row.source_run_id,
    attachment_urls: null,
    created_at: isoOfMilliseconds(row.created_at),
    modified_at: isoOfMilliseconds(row.version_at),
  };
}

const UNSAID_COSTS = { total_cost: null, prompt_cost: null, completion_cost: null } as const;

/** What an upload does not say (in the contract: `unsaid`). */
export const UNSAID = {
  costs: UNSAID_COSTS,
  tokens: { total_tokens: null, prompt_tokens: null, completion_tokens: null, ...UNSAID_COSTS },
  first_tokens: { first_token_p50: null, first_token_p99: null },
} as const;

const UNSAID_STATS = { ...UNSAID.first_tokens, ...UNSAID.tokens, last_run_start_time_live: null } as const;

const WITHOUT_STATS = {
  ...UNSAID_STATS,
  run_count: null,
  latency_p50: null,
  latency_p99: null,
  last_run_start_time: null,
  feedback_stats: null,
  session_feedback_stats: null,
  run_facets: null,
  error_rate: null,
  streaming_rate: null,
} as const;

/** An experiment; `with_stats` false leaves all statistics null. */
export function sessionOf(row: ExperimentRow, dataset_id: string | null, with_stats: boolean): Session {
  return {
    id: row.experiment_id,
    tenant_id: row.tenant_id,
    name: row.name,
    description: row.description,
    start_time: isoOfMicroseconds(row.start_us),
    end_time: row.end_us === null ? null : isoOfMicroseconds(row.end_us),
    extra: parsed(row.extra),
    default_dataset_id: row.default_dataset_id,
    reference_dataset_id: dataset_id,
    trace_tier: row.trace_tier,
    test_run_number: row.test_run_number,
    ...(with_stats ? statsOf(row) : WITHOUT_STATS),
  };
}

function statsOf(row: ExperimentRow): Pick<Session, keyof typeof WITHOUT_STATS> {
  const { last_run_start_us, ...stats } = JSON.parse(row.stats) as ExperimentStats;
  const last_run_start_time = last_run_start_us === null ? null : isoOfMicroseconds(last_run_start_us);
  return { ...UNSAID_STATS, ...stats, last_run_start_time, run_facets: [] };
}

/** What a piece of feedback is about: ids that its row does not have. */
export type About = Pick<FullFeedback, "experiment_id" | "run_id" | "run_start_us">;

export function feedbackOf(row: FeedbackRow, about: About): Feedback {
  return {
    id: row.feedback_id,
    key: row.key,
    score: row.score,
    value: parsed<unknown>(row.value),
    comment: row.comment,
    correction: parsed<unknown>(row.correction),
    run_id: about.run_id,
    session_id: about.experiment_id,
    trace_id: about.run_id,
    start_time: about.run_start_us === null ? null : isoOfMicroseconds(about.run_start_us),
    is_root: about.run_id !== null,
    feedback_group_id: row.feedback_group_id,
    comparative_experiment_id: row.comparative_experiment_id,
    feedback_source: parsed<JsonObject & { type: string | null }>(row.source),
    feedback_thread_id: null,
    extra: parsed(row.extra),
    created_at: isoOfMicroseconds(row.created_us),
    modified_at: isoOfMicroseconds(row.modified_us),
  };
}
