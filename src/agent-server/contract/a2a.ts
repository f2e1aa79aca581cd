import { z } from "@hono/zod-openapi";
import {
  assistantId,
  errorResponses,
  jsonBody,
  jsonObject,
  jsonResponse,
  optional,
  searchable,
} from "../../platform/contract/fields.ts";
import { routeGroup } from "../../platform/contract/operation.ts";

// The SDK converts the messages of both versions of the protocol to objects, which these schemas check.

/** Clients choose the IDs of contexts and messages. They are stored in searchable metadata and in the state. */
const id = z.string().max(1000);

const part = z.object({
  mediaType: z.string(),
  content: z.discriminatedUnion(
    "$case",
    [
      z.object({ $case: z.literal("text"), value: z.string() }),
      z.object({ $case: z.literal("url"), value: z.string() }),
      z.object({ $case: z.literal("raw"), value: z.instanceof(Uint8Array) }),
      z.object({ $case: z.literal("data"), value: z.unknown() }),
    ],
    "must contain `text`, `raw`, `url` or `data`",
  ),
});
export type A2aPart = z.output<typeof part>;

/** A header that contains a line break could add another header. */
const headerText = z
  .string()
  .max(4000)
  .regex(/^[\x20-\x7e]*$/, "must contain only printable ASCII characters");

export const pushConfigCreate = z.object({
  id,
  url: z.string(),
  token: headerText,
  authentication: optional(
    z.object({
      scheme: headerText.regex(/^[\w-]+$/, "must be the name of an HTTP authentication scheme"),
      credentials: headerText,
    }),
  ),
});
export type PushConfigCreate = z.output<typeof pushConfigCreate>;

const historyLength = optional(z.int().min(0, "must not be negative").max(10, "must be at most 10"));

export const messageSend = z.object({
  message: z.object({
    messageId: id.min(1),
    contextId: id,
    taskId: z.string(),
    role: z.literal(1, 'must be the role of the user: "user" (version 0.3) or "ROLE_USER" (version 1.0)'),
    parts: z.array(part).min(1, "must not be empty").max(1000),
  }),
  configuration: optional(
    z.object({
      acceptedOutputModes: z.array(z.string()),
      taskPushNotificationConfig: optional(pushConfigCreate),
      historyLength,
      returnImmediately: z.boolean(),
    }),
  ),
  metadata: optional(searchable),
});
export type MessageSend = z.output<typeof messageSend>;

export const taskGet = z.object({ historyLength });

export const taskList = z.object({
  contextId: id,
  status: z.int().min(0, "must be a task state"),
  pageSize: optional(z.int().min(1).max(100)),
  pageToken: z.string().regex(/^(\d{1,15}\.\d{1,15})?$/, "must be the nextPageToken of a previous response"),
  historyLength,
  statusTimestampAfter: optional(
    z.iso.datetime({ offset: true, error: "must be an ISO 8601 time with a UTC offset or Z" }),
  ),
  includeArtifacts: optional(z.boolean()),
});
export type TaskList = z.output<typeof taskList>;

const card = jsonResponse(
  jsonObject,
  "The agent card. The request header `A2A-Version` selects the version of the card's format. Without this header, version 0.3 is used.",
);

export const a2aRoutes = routeGroup("A2A", {
  /** The handler checks the body and authorizes each method. */
  callAgent: {
    method: "post",
    path: "/a2a/{assistant_id}",
    summary: "Call a method of the A2A protocol",
    description:
      "JSON-RPC 2.0 with the methods of A2A 1.0 and 0.3. Streaming methods respond with server-sent events. If a method fails, the JSON-RPC response contains the error, and the HTTP status is still 200.",
    request: { params: z.object({ assistant_id: assistantId }), body: jsonBody(jsonObject) },
    responses: { 200: jsonResponse(jsonObject, "The JSON-RPC response."), ...errorResponses(404, 413) },
  },

  /** 404 also for an assistant whose graph has no messages in its input. 422: there are several graphs and no `assistant_id`. */
  findAgentCard: {
    method: "get",
    path: "/.well-known/agent-card.json",
    summary: "Get the agent card of an assistant",
    request: {
      query: z.object({
        assistant_id: assistantId.optional().openapi({
          description:
            "Required if the project has several graphs. Default for a project with one graph: the graph's default assistant.",
        }),
      }),
    },
    responses: { 200: card, ...errorResponses(404, 422) },
  },

  getAgentCard: {
    method: "get",
    path: "/a2a/{assistant_id}/.well-known/agent-card.json",
    summary: "Get an assistant's agent card by the assistant's ID",
    request: { params: z.object({ assistant_id: assistantId }) },
    responses: { 200: card, ...errorResponses(404, 422) },
  },
});
