import type { JsonObject } from "../platform/lib/json/json.ts";
import { isoOfMicroseconds, isoOfMilliseconds } from "../platform/lib/times.ts";
import type { Dataset } from "./contract/datasets.ts";
import type { Example } from "./contract/examples.ts";
import type { Feedback } from "./contract/feedback.ts";
import type { Session } from "./contract/sessions.ts";
import { always, bare, type Field, Shape, stored, written } from "./shape.ts";
import type { ExperimentStats } from "./stats.ts";
import type { DatasetWithCounts } from "./storage/datasets.ts";
import type { VersionedExample } from "./storage/examples.ts";
import type { FullFeedback } from "./storage/feedback.ts";
import type { DatasetRow, ExperimentRow, FeedbackRow } from "./storage/schema.ts";

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

/** An example of the dataset with this id. */
export interface ExampleOfDataset {
  example: VersionedExample;
  dataset_id: string;
}

export const EXAMPLE = new Shape<ExampleOfDataset, Example>({
  id: bare(({ example }) => example.example_id),
  dataset_id: bare(({ dataset_id }) => dataset_id),
  name: bare(({ example }) => `#${example.ord + 1}`),
  inputs: stored(({ example }) => example.inputs) as Field<ExampleOfDataset, JsonObject>,
  outputs: stored(({ example }) => example.outputs),
  metadata: {
    value: metadataOf,
    text: (row) => (row.example.splits === "[]" ? (row.example.metadata ?? "null") : JSON.stringify(metadataOf(row))),
  },
  source_run_id: bare(({ example }) => example.source_run_id),
  attachment_urls: always(null),
  created_at: bare(({ example }) => isoOfMilliseconds(example.created_at)),
  modified_at: bare(({ example }) => isoOfMilliseconds(example.version_at)),
});

/** The splits are shown within it. */
function metadataOf({ example }: ExampleOfDataset): JsonObject | null {
  const splits = JSON.parse(example.splits) as string[];
  const metadata = parsed(example.metadata);
  return splits.length > 0 ? { ...metadata, dataset_split: splits } : metadata;
}

export const exampleOf = (example: VersionedExample, dataset_id: string): Example =>
  EXAMPLE.valueOf({ example, dataset_id });

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

export interface JudgedThing {
  row: FeedbackRow;
  about: About;
}

export const FEEDBACK = new Shape<JudgedThing, Feedback>({
  id: bare(({ row }) => row.feedback_id),
  key: written(({ row }) => row.key),
  score: written(({ row }) => row.score),
  value: stored(({ row }) => row.value),
  comment: written(({ row }) => row.comment),
  correction: stored(({ row }) => row.correction),
  run_id: bare(({ about }) => about.run_id),
  session_id: bare(({ about }) => about.experiment_id),
  trace_id: bare(({ about }) => about.run_id),
  start_time: bare(({ about }) => (about.run_start_us === null ? null : isoOfMicroseconds(about.run_start_us))),
  is_root: written(({ about }) => about.run_id !== null),
  feedback_group_id: bare(({ row }) => row.feedback_group_id),
  comparative_experiment_id: bare(({ row }) => row.comparative_experiment_id),
  feedback_source: stored(({ row }) => row.source),
  feedback_thread_id: always(null),
  extra: stored(({ row }) => row.extra),
  created_at: bare(({ row }) => isoOfMicroseconds(row.created_us)),
  modified_at: bare(({ row }) => isoOfMicroseconds(row.modified_us)),
});

export const feedbackOf = (row: FeedbackRow, about: About): Feedback => FEEDBACK.valueOf({ row, about });
