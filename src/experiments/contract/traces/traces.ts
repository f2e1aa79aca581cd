import { createRoute, z } from "@hono/zod-openapi";
import { jsonBody, jsonObject, jsonResponse, optional } from "../../../platform/contract/fields.ts";
import { cutToIndex, indexedName, traceTime, uuidOrHex } from "../fields.ts";
import { errors } from "../responses.ts";

const MAX_NAME_CHARS = 1_000;
const MAX_TYPE_CHARS = 64;
const MAX_TAG_CHARS = 200;
const MAX_TAGS = 100;

const cut = (chars: number) => z.string().transform((text) => cutToIndex(text, chars));

/** The fields that a new run and a run update have in common. Null counts as a missing field; unknown fields are ignored. */
const changes = {
  name: optional(cut(MAX_NAME_CHARS)),
  run_type: optional(cut(MAX_TYPE_CHARS)),
  start_time: optional(traceTime),
  end_time: optional(traceTime).openapi({
    description: "End time. A run without an end time and without an error is pending.",
  }),
  inputs: optional(jsonObject),
  outputs: optional(jsonObject),
  error: optional(z.string()),
  events: optional(z.array(jsonObject)),
  extra: optional(jsonObject).openapi({
    description: "Additional data, such as `metadata`, `runtime` and `invocation_params`.",
  }),
  tags: optional(z.array(cut(MAX_TAG_CHARS)).transform((list) => list.slice(0, MAX_TAGS))),
  serialized: optional(jsonObject),
  session_name: optional(indexedName),
  session_id: optional(uuidOrHex),
  address: optional(indexedName).openapi({
    description:
      "Used if `session_name` is missing. The address `lrn:agents/{id}/environments/{env}` refers to the session `{id}/{env}`; other addresses are ignored.",
  }),
  trace_id: optional(uuidOrHex),
  parent_run_id: optional(uuidOrHex),
  dotted_order: optional(z.string().max(20_000)),
  reference_example_id: optional(uuidOrHex),
};

/** An update of a run. The path identifies the run; an `id` in the body is ignored. */
export const RunUpdate = z.object(changes).openapi("RunUpdate");

/** A new run. Without `dotted_order`, the run is a child of `parent_run_id`, or the root of a new trace. */
export const RunCreate = z
  .object({
    ...changes,
    id: optional(uuidOrHex),
    name: cut(MAX_NAME_CHARS).openapi({ description: "Name of the run; empty for an anonymous function." }),
    run_type: z.string().min(1).pipe(cut(MAX_TYPE_CHARS)).openapi({ example: "llm" }),
  })
  .openapi("RunCreate");

/** The fields of a run that a client sent. Missing fields do not change. */
export type RunFields = z.output<typeof RunUpdate>;

const accepted = { 202: jsonResponse(z.object({}), "The runs were stored.") };

const RunBatch = z
  .object({
    post: optional(z.array(jsonObject)).openapi({ description: "New runs, as in `POST /runs`, each with an `id`." }),
    patch: optional(z.array(jsonObject)).openapi({
      description: "Run updates, as in `PATCH /runs/{run_id}`, each with an `id`.",
    }),
  })
  .openapi("RunBatch");

export const traceRoutes = {
  createRun: createRoute({
    method: "post",
    path: "/runs",
    operationId: "create_run",
    summary: "Create a run in a trace",
    request: { body: jsonBody(RunCreate) },
    responses: { ...accepted, ...errors(400, 413) },
  }),

  updateRun: createRoute({
    method: "patch",
    path: "/runs/{run_id}",
    operationId: "update_run",
    summary: "Update a run in a trace",
    description: "If the run does not exist, it is created. A later POST request can add the missing fields.",
    request: { params: z.object({ run_id: uuidOrHex }), body: jsonBody(RunUpdate) },
    responses: { ...accepted, ...errors(400, 413) },
  }),

  ingestBatch: createRoute({
    method: "post",
    path: "/runs/batch",
    operationId: "ingest_runs_batch",
    summary: "Create and update runs in traces",
    description:
      "Valid runs are stored even if other runs are invalid. In that case the status is 400, and `detail` lists at most 100 reasons for rejections. Sending the same body again does not create duplicates.",
    request: { body: jsonBody(RunBatch) },
    responses: { ...accepted, ...errors(400, 413) },
  }),

  ingestMultipart: createRoute({
    method: "post",
    path: "/runs/multipart",
    operationId: "ingest_runs_multipart",
    summary: "Create and update runs in traces, with attachments and feedback",
    description:
      "Part names: `post.{run_id}` and `patch.{run_id}`, optionally with a suffix `.inputs`, `.outputs`, `.events`, `.extra`, `.error` or " +
      "`.serialized`; `attachment.{run_id}.{name}`; `feedback.{feedback_id}`. `Content-Encoding` may be gzip or zstd. Invalid runs are " +
      "reported as in `POST /runs/batch`.",
    request: { body: { content: { "multipart/form-data": { schema: z.object({}).catchall(z.string()) } } } },
    responses: { ...accepted, ...errors(400, 413) },
  }),

  /** OTLP over HTTP, in protobuf or JSON. The response has the content type of the request. */
  ingestSpans: createRoute({
    method: "post",
    path: "/otel/v1/traces",
    operationId: "ingest_spans",
    summary: "Create runs from OpenTelemetry spans",
    description:
      "Spans with attributes of the OpenTelemetry GenAI conventions, OpenInference, Traceloop or the Vercel AI SDK become runs of the matching type.",
    request: { body: jsonBody(jsonObject) },
    responses: {
      200: jsonResponse(jsonObject, "`partialSuccess` contains the number of rejected spans and the reasons."),
      ...errors(400, 413),
    },
  }),
};
