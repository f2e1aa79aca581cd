import { z } from "@hono/zod-openapi";
import {
  assistantId,
  errorResponses,
  jsonBody,
  jsonObject,
  jsonResponse,
  limit,
  nullable,
  offset,
  optional,
  paginationHeaders,
  searchable,
  selectOf,
  sortOrder,
  threadParams,
  timestamp,
  uuid,
  withDefault,
  withoutDefault,
} from "../../platform/contract/fields.ts";
import { routeGroup } from "../../platform/contract/operation.ts";
import { runCreate } from "./run-schemas.ts";

/** Creates a run at each tick of a schedule, on one thread, or on a new thread for each run. */
export const Cron = z
  .object({
    cron_id: z.string(),
    assistant_id: z.string(),
    thread_id: nullable(z.string()).openapi({ description: "Null if each run gets a new thread." }),
    on_run_completed: nullable(z.enum(["delete", "keep"])),
    end_time: nullable(timestamp),
    schedule: z.string(),
    timezone: nullable(z.string()),
    created_at: timestamp,
    updated_at: timestamp,
    user_id: nullable(z.string()),
    payload: jsonObject.openapi({ description: "Request fields for the runs that the cron creates." }),
    next_run_date: nullable(timestamp).openapi({ description: "Null if the cron is disabled or has ended." }),
    metadata: jsonObject,
    enabled: z.boolean(),
  })
  .openapi("Cron");
export type Cron = z.infer<typeof Cron>;

const PartialCron = Cron.partial().openapi("PartialCron");

/** Request fields for the runs that a cron creates. */
export const cronPayload = runCreate.pick({
  assistant_id: true,
  input: true,
  config: true,
  context: true,
  webhook: true,
  interrupt_before: true,
  interrupt_after: true,
  stream_mode: true,
  stream_subgraphs: true,
  stream_resumable: true,
  durability: true,
  checkpoint_during: true,
  multitask_strategy: true,
});

const MAX_SCHEDULE_LENGTH = 200;

const schedule = z
  .string()
  .max(MAX_SCHEDULE_LENGTH)
  .regex(
    /^\s*(@[a-z]+|\S+(\s+\S+){4})\s*$/i,
    "must have five fields (minute, hour, day of month, month and weekday) or be an alias such as @daily",
  )
  .openapi({ example: "0 9 * * 1-5" });

const timezone = z.string().min(1).max(100).openapi({
  description: "IANA time zone of the schedule. Default: UTC.",
  example: "Europe/Berlin",
});

/** The Python client may send times without an offset. The server interprets them as UTC. */
const endTime = z.iso
  .datetime({ offset: true, local: true, error: "must be an ISO 8601 time" })
  .transform((text) => new Date(/(z|[+-]\d\d:?\d\d)$/i.test(text) ? text : `${text}Z`))
  .openapi({ description: "No runs are created after this time." });

const timing = { schedule, timezone: optional(timezone), end_time: optional(endTime) };

/** If the thread is busy at a tick, the `multitask_strategy` applies. */
export const threadCronCreate = z
  .object({
    ...cronPayload.shape,
    ...timing,
    metadata: withDefault(searchable, {}),
    enabled: withDefault(z.boolean(), true),
    on_run_completed: optional(
      z.literal("keep", 'must be "keep" for a cron on an existing thread, because its runs never delete that thread'),
    ),
  })
  .openapi("ThreadCronCreate");
export type ThreadCronCreate = z.output<typeof threadCronCreate>;

const onRunCompleted = z.enum(["delete", "keep"]).openapi({
  description: "What to do with a run's thread when the run ends.",
});

export const cronCreate = threadCronCreate
  .extend({ on_run_completed: withDefault(onRunCompleted, "delete") })
  .openapi("CronCreate");
export type CronCreate = z.output<typeof cronCreate>;

const { config, stream_mode, stream_subgraphs, stream_resumable, multitask_strategy, ...fieldsWithoutDefault } =
  cronPayload.omit({ assistant_id: true, input: true }).shape;

/** Missing fields stay unchanged. `metadata` is merged key by key, and null removes `end_time`. */
export const cronPatch = z
  .object({
    schedule: optional(schedule),
    timezone: timing.timezone,
    end_time: nullable(endTime).optional(),
    enabled: optional(z.boolean()),
    metadata: optional(searchable),
    on_run_completed: optional(onRunCompleted),
    ...fieldsWithoutDefault,
    input: z.unknown().optional(),
    config: withoutDefault(config),
    stream_mode: withoutDefault(stream_mode),
    stream_subgraphs: withoutDefault(stream_subgraphs),
    stream_resumable: withoutDefault(stream_resumable),
    multitask_strategy: withoutDefault(multitask_strategy),
  })
  .openapi("CronPatch");
export type CronPatch = z.output<typeof cronPatch>;

export const cronFilter = z
  .object({
    assistant_id: optional(assistantId),
    thread_id: optional(uuid),
    enabled: optional(z.boolean()),
    metadata: optional(searchable),
  })
  .openapi("CronFilter");
export type CronFilter = z.output<typeof cronFilter>;

const SORT_KEYS = [
  "cron_id",
  "assistant_id",
  "thread_id",
  "created_at",
  "updated_at",
  "next_run_date",
  "end_time",
] as const;

export const cronSearch = z
  .object({
    ...cronFilter.shape,
    limit,
    offset,
    sort_by: withDefault(z.enum(SORT_KEYS), "created_at"),
    sort_order: sortOrder,
    // `now` is a field in the official clients only.
    select: optional(selectOf([...Cron.keyof().options, "now"])),
  })
  .openapi("CronSearch");
export type CronSearch = z.output<typeof cronSearch>;

const params = z.object({ cron_id: uuid });

export const cronRoutes = routeGroup("Crons", {
  /** 404: unknown assistant. 422: an invalid schedule or time zone, or a schedule without a future run. */
  createCron: {
    method: "post",
    path: "/runs/crons",
    summary: "Create a cron that starts each run on a new thread",
    request: { body: jsonBody(cronCreate) },
    responses: { 200: jsonResponse(Cron, "The cron."), ...errorResponses(404, 422) },
  },

  /** 404: unknown thread or assistant. */
  createThreadCron: {
    method: "post",
    path: "/threads/{thread_id}/runs/crons",
    summary: "Create a cron whose runs use an existing thread",
    request: { params: threadParams, body: jsonBody(threadCronCreate) },
    responses: { 200: jsonResponse(Cron, "The cron."), ...errorResponses(404, 422) },
  },

  searchCrons: {
    method: "post",
    path: "/runs/crons/search",
    summary: "Search crons",
    request: { body: jsonBody(cronSearch) },
    responses: {
      200: { ...jsonResponse(z.array(PartialCron), "A page of crons."), headers: paginationHeaders },
      ...errorResponses(422),
    },
  },

  countCrons: {
    method: "post",
    path: "/runs/crons/count",
    summary: "Count crons",
    request: { body: jsonBody(cronFilter) },
    responses: { 200: jsonResponse(z.int(), "The number of matching crons."), ...errorResponses(422) },
  },

  getCron: {
    method: "get",
    path: "/runs/crons/{cron_id}",
    summary: "Get a cron",
    request: { params },
    responses: { 200: jsonResponse(Cron, "The cron."), ...errorResponses(404, 422) },
  },

  patchCron: {
    method: "patch",
    path: "/runs/crons/{cron_id}",
    summary: "Update a cron",
    description:
      "If the update changes request fields of the runs (input, config, metadata, webhook and so on), later runs use the identity and permissions of the caller.",
    request: { params, body: jsonBody(cronPatch) },
    responses: { 200: jsonResponse(Cron, "The updated cron."), ...errorResponses(404, 422) },
  },

  /** The response has a body because the JavaScript client parses the body of a 200. */
  deleteCron: {
    method: "delete",
    path: "/runs/crons/{cron_id}",
    summary: "Delete a cron",
    description: "Runs that the cron has already created are not affected.",
    request: { params },
    responses: { 200: jsonResponse(z.object({}), "Deleted."), ...errorResponses(404, 422) },
  },
});
