import type { JsonObject } from "../../platform/lib/json/json.ts";
import { isoOfMicroseconds, isoOfMilliseconds } from "../../platform/lib/times.ts";
import { signAttachmentLink } from "../attachment-links.ts";
import type { Dataset } from "../contract/datasets/datasets.ts";
import type { Example } from "../contract/datasets/examples.ts";
import type { Feedback } from "../contract/feedback/feedback.ts";
import type { Session } from "../contract/sessions.ts";
import type { ExperimentStats } from "../sessions/stats.ts";
import type { DatasetWithCounts } from "../storage/datasets.ts";
import { BASE_SPLIT, type VersionedExample } from "../storage/examples.ts";
import type { FullFeedback, ShownFeedback } from "../storage/feedback.ts";
import type { DatasetRow, ExperimentRow } from "../storage/schema.ts";
import { constant, type Field, json, RecordSerializer, raw, storedJson } from "./record-serializer.ts";

export const parseJson = <T = JsonObject>(text: string | null): T | null => (text === null ? null : JSON.parse(text));

export const toJson = (value: unknown): string | null =>
  value === undefined || value === null ? null : JSON.stringify(value);

export const selectFields = <T extends object>(record: T, isSelected: (name: string) => boolean): Partial<T> =>
  Object.fromEntries(Object.entries(record).filter(([name]) => isSelected(name))) as Partial<T>;

export function toDataset(row: DatasetRow & Partial<DatasetWithCounts>): Dataset {
  const last = row.last_session_start_us ?? null;
  return {
    id: row.dataset_id,
    tenant_id: row.tenant_id,
    name: row.name,
    description: row.description,
    data_type: row.data_type as Dataset["data_type"],
    externally_managed: row.externally_managed === 1,
    inputs_schema_definition: parseJson(row.inputs_schema),
    outputs_schema_definition: parseJson(row.outputs_schema),
    transformations: parseJson<JsonObject[]>(row.transformations),
    metadata: parseJson(row.metadata),
    baseline_experiment_id: row.baseline_experiment_id,
    example_count: row.example_count,
    session_count: Number(row.session_count ?? 0),
    created_at: isoOfMilliseconds(row.created_at),
    modified_at: isoOfMilliseconds(row.modified_at),
    last_session_start_time: last === null ? null : isoOfMicroseconds(last),
  };
}

export interface ExampleOfDataset {
  example: VersionedExample;
  dataset_id: string;
  attachment_urls?: Example["attachment_urls"];
}

/** The metadata entry for an example without splits: responses contain the splits in the metadata. */
const IN_BASE = `"dataset_split":["${BASE_SPLIT}"]`;

export const EXAMPLE_SERIALIZER = new RecordSerializer<ExampleOfDataset, Example>({
  id: raw(({ example }) => example.example_id),
  dataset_id: raw(({ dataset_id }) => dataset_id),
  name: raw(({ example }) => `#${example.example_index + 1}`),
  inputs: storedJson(({ example }) => example.inputs) as Field<ExampleOfDataset, JsonObject>,
  outputs: storedJson(({ example }) => example.outputs),
  metadata: {
    value: exampleMetadata,
    json: (row) =>
      row.example.splits === "[]" && (row.example.metadata ?? "{}") === "{}"
        ? `{${IN_BASE}}`
        : JSON.stringify(exampleMetadata(row)),
  },
  source_run_id: raw(({ example }) => example.source_run_id),
  attachment_urls: {
    value: ({ attachment_urls }) => attachment_urls ?? null,
    json: ({ attachment_urls }) => (attachment_urls ? JSON.stringify(attachment_urls) : "null"),
  },
  created_at: raw(({ example }) => isoOfMilliseconds(example.created_at)),
  modified_at: raw(({ example }) => isoOfMilliseconds(example.version_at)),
});

function exampleMetadata({ example }: ExampleOfDataset): JsonObject {
  const splits = JSON.parse(example.splits) as string[];
  return { ...parseJson(example.metadata), dataset_split: splits.length > 0 ? splits : [BASE_SPLIT] };
}

export const toExample = (
  example: VersionedExample,
  dataset_id: string,
  attachment_urls: Example["attachment_urls"] = null,
): Example => EXAMPLE_SERIALIZER.toObject({ example, dataset_id, attachment_urls });

interface AttachmentLink {
  name: string;
  mime_type: string;
  token: string;
}

/** @param base_url the address of this API as the client sees it */
export const attachmentUrl =
  (base_url: string) =>
  ({ token }: Pick<AttachmentLink, "token">): string =>
    `${base_url}/public/attachments/${signAttachmentLink(token, Date.now())}`;

/** The addresses of attachments, by `attachment.{name}`. */
export const toAttachmentUrls = (
  attachments: readonly AttachmentLink[],
  urlOf: (attachment: AttachmentLink) => string,
): NonNullable<Example["attachment_urls"]> =>
  Object.fromEntries(
    attachments.map((attachment) => [
      `attachment.${attachment.name}`,
      { presigned_url: urlOf(attachment), mime_type: attachment.mime_type },
    ]),
  );

const NO_COSTS = { total_cost: null, prompt_cost: null, completion_cost: null } as const;

/** The usage fields of the contract, for runs without recorded usage. */
export const NO_USAGE = {
  costs: NO_COSTS,
  tokens: { total_tokens: null, prompt_tokens: null, completion_tokens: null, ...NO_COSTS },
  details: {
    prompt_token_details: null,
    completion_token_details: null,
    prompt_cost_details: null,
    completion_cost_details: null,
  },
} as const;

/** Default values for statistics that an earlier version stored without these fields. */
const NO_USAGE_STATS = {
  first_token_p50: null,
  first_token_p99: null,
  ...NO_USAGE.tokens,
  last_run_start_time_live: null,
} as const;

const WITHOUT_STATS = {
  ...NO_USAGE_STATS,
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

/** @param with_stats false sets all statistics to null */
export function toSession(row: ExperimentRow, dataset_id: string | null, with_stats: boolean): Session {
  return {
    id: row.experiment_id,
    tenant_id: row.tenant_id,
    name: row.name,
    description: row.description,
    start_time: isoOfMicroseconds(row.start_us),
    end_time: row.end_us === null ? null : isoOfMicroseconds(row.end_us),
    extra: parseJson(row.extra),
    default_dataset_id: row.default_dataset_id,
    reference_dataset_id: dataset_id,
    trace_tier: row.trace_tier,
    test_run_number: row.test_run_number,
    ...(with_stats ? sessionStats(row) : WITHOUT_STATS),
  };
}

function sessionStats(row: ExperimentRow): Pick<Session, keyof typeof WITHOUT_STATS> {
  const { last_run_start_us, ...stats } = JSON.parse(row.stats) as ExperimentStats;
  const last_run_start_time = last_run_start_us === null ? null : isoOfMicroseconds(last_run_start_us);
  return { ...NO_USAGE_STATS, ...stats, last_run_start_time, run_facets: [] };
}

/** Feedback with the ids of its run and experiment, which its row does not contain. */
interface FeedbackRecord {
  row: ShownFeedback;
  target: Pick<FullFeedback, "experiment_id" | "run_id" | "run_start_us" | "trace_id">;
}

export const FEEDBACK_SERIALIZER = new RecordSerializer<FeedbackRecord, Feedback>({
  id: raw(({ row }) => row.feedback_id),
  key: json(({ row }) => row.key),
  score: json(({ row }) => row.score),
  value: storedJson(({ row }) => row.value),
  comment: json(({ row }) => row.comment),
  correction: storedJson(({ row }) => row.correction),
  run_id: raw(({ target }) => target.run_id),
  session_id: raw(({ target }) => target.experiment_id),
  trace_id: raw(({ target }) => target.trace_id),
  start_time: raw(({ target }) => (target.run_start_us === null ? null : isoOfMicroseconds(target.run_start_us))),
  is_root: json(({ target }) => target.run_id !== null && target.run_id === target.trace_id),
  feedback_group_id: raw(({ row }) => row.feedback_group_id),
  comparative_experiment_id: raw(({ row }) => row.comparative_experiment_id),
  feedback_source: storedJson(({ row }) => row.source),
  feedback_thread_id: constant(null),
  extra: storedJson(({ row }) => row.extra),
  created_at: raw(({ row }) => isoOfMicroseconds(row.created_us)),
  modified_at: raw(({ row }) => isoOfMicroseconds(row.modified_us)),
});

export const toFeedback = (row: FullFeedback): Feedback => FEEDBACK_SERIALIZER.toObject({ row, target: row });
