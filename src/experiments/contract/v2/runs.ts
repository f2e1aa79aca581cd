import { z } from "@hono/zod-openapi";
import { jsonObject, optional, withDefault } from "../../../platform/contract/fields.ts";
import {
  experimentFilters,
  nullableTime,
  texts,
  time,
  timeText,
  unsupportedFilters,
  usage,
  uuidOrHex,
} from "../fields.ts";
import { FeedbackStats } from "../sessions.ts";

/** A run in version 2 of the API. Responses contain only the selected fields. */
export const RunV2 = z
  .object({
    id: z.string(),
    name: z.string(),
    run_type: z.string().openapi({ example: "CHAIN" }),
    status: z.enum(["PENDING", "SUCCESS", "ERROR"]),
    start_time: timeText,
    end_time: nullableTime,
    latency_seconds: z.number().nullable(),
    first_token_time: nullableTime,
    error: z.string().nullable(),
    error_preview: z.string().nullable(),
    extra: jsonObject.nullable(),
    metadata: jsonObject,
    events: z.array(jsonObject),
    inputs: jsonObject,
    inputs_preview: z.string().nullable(),
    outputs: jsonObject.nullable(),
    outputs_preview: z.string().nullable(),
    manifest: jsonObject.nullable(),
    parent_run_ids: z.array(z.string()),
    project_id: z.string(),
    trace_id: z.string(),
    thread_id: z.string().nullable(),
    dotted_order: z.string(),
    is_root: z.boolean(),
    reference_example_id: z.string().nullable(),
    reference_dataset_id: z.string().nullable(),
    ...usage.tokens,
    ...usage.details,
    price_model_id: z.null(),
    tags: z.array(z.string()),
    app_path: z.string(),
    attachments: jsonObject,
    thread_evaluation_time: z.null(),
    is_in_dataset: z.boolean(),
    last_queued_at: z.null(),
    share_url: z.string().nullable(),
    feedback_stats: FeedbackStats,
  })
  .openapi("RunV2");
export type RunV2 = z.output<typeof RunV2>;

/** Names that clients select and this service has no field for. They are ignored. */
const WITHOUT_FIELD = ["LS_USER_ID", "OP", "TURN_NUMBER"];

/** The field names in upper case. */
export const selectOf = (fields: object) =>
  z.enum([...Object.keys(fields).map((name) => name.toUpperCase()), ...WITHOUT_FIELD] as [string, ...string[]]);

const select = selectOf(RunV2.shape);

/** Selected fields on public routes. Unknown names are ignored, including `PARENT_RUN_ID`, which LangSmith defines. */
export const publicSelects = z.array(z.string());

export const RunQueryV2 = z
  .object({
    project_ids: optional(z.array(uuidOrHex).min(1).max(100)),
    reference_dataset_id: optional(uuidOrHex).describe(
      "Returns the runs of all experiments of this dataset. Alternative to `project_ids`.",
    ),
    ids: optional(z.array(uuidOrHex).max(1000)),
    reference_examples: optional(z.array(uuidOrHex).max(1000)),
    trace_id: optional(uuidOrHex),
    run_type: optional(z.string()),
    has_error: optional(z.boolean()),
    is_root: optional(z.boolean()),
    filter: optional(z.string()),
    trace_filter: optional(z.string()),
    tree_filter: optional(z.string()),
    ...unsupportedFilters,
    min_start_time: optional(time).describe("Default: no lower bound. (LangSmith's default is one day ago.)"),
    max_start_time: optional(time),
    cursor: optional(z.string()),
    page_size: withDefault(z.int().min(1).max(1000), 100),
    selects: optional(z.array(select)).describe("The fields to return. The default is `ID`."),
    sort_order: withDefault(z.enum(["ASC", "DESC"]), "DESC"),
  })
  .openapi("RunQueryV2");
export type RunQueryV2 = z.output<typeof RunQueryV2>;

export const pageOf = (items: z.ZodType) =>
  z.object({ items: z.array(items), has_more: z.boolean(), next_cursor: z.string().optional() });

export const selects = texts.pipe(z.array(select)).optional();

export const ExperimentRunsQuery = z
  .object({
    experiment_ids: z.array(uuidOrHex).min(1).max(100),
    example_ids: optional(z.array(uuidOrHex).max(1000)),
    comparative_experiment_id: optional(uuidOrHex),
    filters: experimentFilters,
    selects: optional(z.array(select)),
    sort: optional(z.object({ by: z.string(), order: withDefault(z.enum(["ASC", "DESC"]), "DESC") })),
    cursor: optional(z.string()),
    page_size: withDefault(z.int().min(1).max(1000), 20),
  })
  .openapi("ExperimentRunsQuery");
export type ExperimentRunsQuery = z.output<typeof ExperimentRunsQuery>;
