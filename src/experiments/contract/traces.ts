import { createRoute, z } from "@hono/zod-openapi";
import { jsonBody, jsonObject, jsonResponse, optional } from "../../platform/contract/fields.ts";
import { traceTime, uuidOrHex } from "./fields.ts";
import { errors } from "./responses.ts";

const MAX_NAME_CHARS = 1_000;
const MAX_TYPE_CHARS = 64;
const MAX_TAG_CHARS = 200;
const MAX_TAGS = 100;

const cut = (chars: number) => z.string().transform((text) => text.slice(0, chars).toWellFormed());

/** The fields that both a new run and a change of a run may have. Null is "not given"; unknown fields are ignored. */
const changes = {
  name: optional(cut(MAX_NAME_CHARS)),
  run_type: optional(cut(MAX_TYPE_CHARS)),
  start_time: optional(traceTime),
  end_time: optional(traceTime).openapi({ description: "End time. A run without an end time is pending." }),
  inputs: optional(jsonObject),
  outputs: optional(jsonObject),
  error: optional(z.string()),
  events: optional(z.array(jsonObject)),
  extra: optional(jsonObject).openapi({ description: "`metadata`, `runtime`, `invocation_params` …" }),
  tags: optional(z.array(cut(MAX_TAG_CHARS)).transform((list) => list.slice(0, MAX_TAGS))),
  serialized: optional(jsonObject),
  session_name: optional(z.string().min(1).max(1000)),
  session_id: optional(uuidOrHex),
  address: optional(z.string()).openapi({
    description: "`lrn:agents/{id}/environments/{env}`: the session `{id}/{env}`.",
  }),
  trace_id: optional(uuidOrHex),
  parent_run_id: optional(uuidOrHex),
  dotted_order: optional(z.string().max(20_000)),
  reference_example_id: optional(uuidOrHex),
};

/** A change of a run. The path names the run; an `id` in the body is ignored. */
export const RunUpdate = z.object(changes).openapi("RunUpdate");

/** A new run. Without `dotted_order`, the run is below `parent_run_id`, or the root of a new trace. */
export const RunCreate = z
  .object({
    ...changes,
    id: optional(uuidOrHex),
    name: cut(MAX_NAME_CHARS).openapi({ description: "Empty for an anonymous function." }),
    run_type: z.string().min(1).pipe(cut(MAX_TYPE_CHARS)).openapi({ example: "llm" }),
  })
  .openapi("RunCreate");

/** The fields of a run that a client sent. Missing fields do not change. */
export type RunFields = z.output<typeof RunUpdate>;

const accepted = { 202: jsonResponse(z.object({}), "The runs are committed.") };

export const createRun = createRoute({
  method: "post",
  path: "/runs",
  operationId: "create_run",
  summary: "Create a run of a trace",
  request: { body: jsonBody(RunCreate) },
  responses: { ...accepted, ...errors(400, 413) },
});

export const updateRun = createRoute({
  method: "patch",
  path: "/runs/{run_id}",
  operationId: "update_run",
  summary: "Change a run of a trace",
  description: "If the run does not exist, it is created, and a later POST completes it.",
  request: { params: z.object({ run_id: uuidOrHex }), body: jsonBody(RunUpdate) },
  responses: { ...accepted, ...errors(400, 413) },
});

const RunBatch = z
  .object({
    post: optional(z.array(jsonObject)).openapi({ description: "New runs, as in `POST /runs`, with an `id`." }),
    patch: optional(z.array(jsonObject)).openapi({
      description: "Changes, as in `PATCH /runs/{run_id}`, with an `id`.",
    }),
  })
  .openapi("RunBatch");

export const ingestBatch = createRoute({
  method: "post",
  path: "/runs/batch",
  operationId: "ingest_runs_batch",
  summary: "Create and change runs of traces",
  description:
    "Valid runs are stored even if other runs are invalid. In that case the status is 400, and `detail` contains the reasons per run. Sending the same body again stores nothing twice.",
  request: { body: jsonBody(RunBatch) },
  responses: { ...accepted, ...errors(400, 413) },
});

export const ingestMultipart = createRoute({
  method: "post",
  path: "/runs/multipart",
  operationId: "ingest_runs_multipart",
  summary: "Create and change runs of traces, with attachments and feedback",
  description:
    "Parts: `post.{run_id}`, `patch.{run_id}`, the same with `.inputs`, `.outputs`, `.events`, `.extra`, `.error` or `.serialized`, " +
    "`attachment.{run_id}.{name}`, `feedback.{feedback_id}`. `Content-Encoding` may be gzip or zstd. Errors of single runs are as in " +
    "`POST /runs/batch`.",
  request: { body: { content: { "multipart/form-data": { schema: z.object({}).catchall(z.string()) } } } },
  responses: { ...accepted, ...errors(400, 413) },
});

/** OTLP over HTTP, in protobuf or JSON. The response has the type of the request. */
export const ingestSpans = createRoute({
  method: "post",
  path: "/otel/v1/traces",
  operationId: "ingest_spans",
  summary: "Create runs from OpenTelemetry spans",
  description:
    "Spans with attributes of the GenAI conventions, OpenInference, Traceloop or the Vercel AI SDK become runs of their type.",
  request: { body: jsonBody(jsonObject) },
  responses: {
    200: jsonResponse(jsonObject, "`partialSuccess` has the number of spans that were rejected, and why."),
    ...errors(400, 413),
  },
});
