import { z } from "@hono/zod-openapi";
import {
  errorResponses,
  eventStream,
  jsonBody,
  jsonObject,
  jsonResponse,
  optional,
  threadParams,
  withDefault,
} from "../../platform/contract/fields.ts";
import { routeGroup } from "../../platform/contract/operation.ts";
import { isObject, type JsonObject } from "../../platform/lib/json/json.ts";
import { command, runCreate } from "./run-schemas.ts";

/** The fields and names are those of the package `@langchain/protocol`. */

const namespace = z.array(z.string().max(1_000)).max(100);

/** Selects events: those of the channels, in namespaces that begin with one of `namespaces` and continue for at most `depth` segments. */
export const eventSelection = z
  .object({
    channels: z.array(z.string().max(200)).min(1).max(100).openapi({
      description:
        "`values`, `updates`, `messages`, `tools`, `lifecycle`, `input`, `checkpoints`, `tasks`, `custom` (all custom events) or `custom:<name>`. Other names match no events.",
    }),
    namespaces: optional(z.array(namespace).max(1_000)).openapi({
      description:
        "Prefixes of namespaces. A segment without `:` is the name of a node and matches all tasks of this node. Without prefixes, all namespaces match.",
    }),
    depth: optional(z.int().min(0)).openapi({
      description: "Maximum number of segments that follow the matching prefix. Has no effect without `namespaces`.",
    }),
    since: optional(z.int().min(0)).openapi({
      description:
        "`seq` of the last event that the client has received. The stream continues after this event; with the value 0, it contains all stored events. Without `since`, the stream starts with the most recently started run. If runs before it ended less than 10 s ago, the stream includes them, too, and starts with the first of them. If the most recently started run has ended and an active run was created after its end, the stream starts with this active run instead.",
    }),
  })
  .openapi("EventSelection");
export type EventSelection = z.output<typeof eventSelection>;

export const protocolCommand = z
  .object({
    id: z.int().min(0),
    method: z.string().min(1).max(100),
    params: withDefault(jsonObject, {}),
  })
  .openapi("ProtocolCommand");
export type ProtocolCommand = z.output<typeof protocolCommand>;

/** Returns the parameters of `run.start` with the command that RemoteGraph sends as the input. */
export function withCommand(params: JsonObject): JsonObject {
  const { input } = params;
  return isObject(input) && input.lg_name === "Command" ? { ...params, input: null, command: input } : params;
}

const interruptResponse = z.object({ interrupt_id: z.string().min(1), response: z.unknown() });

/** Parameters of `input.respond`: one response, or several in `responses`. */
export const responseParams = z.object({
  ...runCreate.pick({ config: true, metadata: true, context: true, langsmith_tracer: true }).shape,
  ...command.pick({ update: true, goto: true }).shape,
  ...interruptResponse.partial().shape,
  responses: optional(z.array(interruptResponse).min(1).max(1_000)),
});

/** Parameters of `agent.getTree`. */
export const treeParams = z.object({ run_id: optional(z.uuid()) });

/** Parameters of `state.get`. */
export const stateParams = z.object({ namespace: withDefault(namespace, []), keys: optional(z.array(z.string())) });

export const ProtocolErrorCode = z.enum([
  "invalid_argument",
  "unknown_command",
  "unknown_error",
  "no_such_run",
  "no_such_subscription",
  "no_such_namespace",
  "no_such_interrupt",
  "no_such_checkpoint",
  "permission_denied",
  "not_supported",
]);
export type ProtocolErrorCode = z.infer<typeof ProtocolErrorCode>;

const meta = z.object({
  thread_id: z.string(),
  applied_through_seq: z
    .int()
    .optional()
    .openapi({ description: "The events of the command's run have a `seq` higher than this value." }),
});

export const protocolResponse = z
  .union([
    z.object({ type: z.literal("success"), id: z.int(), result: jsonObject, meta }),
    z.object({
      type: z.literal("error"),
      id: z.int().nullable(),
      error: ProtocolErrorCode,
      message: z.string(),
      meta: meta.optional(),
    }),
  ])
  .openapi("ProtocolResponse");
export type ProtocolResponse = z.output<typeof protocolResponse>;

export const threadProtocolRoutes = routeGroup("Thread Protocol", {
  /** A failed command has the status 200 and a body with the type `error`. 400: the body is not a command. */
  sendCommand: {
    method: "post",
    path: "/threads/{thread_id}/commands",
    summary: "Send a command of the thread protocol",
    request: { params: threadParams, body: jsonBody(protocolCommand) },
    responses: {
      200: jsonResponse(protocolResponse, "The result or the error of the command."),
      ...errorResponses(400),
    },
  },

  /** A thread that does not exist yet has no events until a command creates it. */
  streamEvents: {
    method: "post",
    path: "/threads/{thread_id}/stream/events",
    summary: "Stream the events of a thread, across runs",
    request: { params: threadParams, body: jsonBody(eventSelection) },
    responses: {
      200: eventStream(
        "Events of the thread protocol. The stream stays open between runs, until the client closes it or the thread is deleted.",
      ),
      ...errorResponses(400, 404),
    },
  },

  /** 426: the request does not open a WebSocket. */
  openSocket: {
    method: "get",
    path: "/threads/{thread_id}/stream/events",
    summary: "Send commands and receive events through a WebSocket",
    description:
      "Each message from the client is one command. `subscription.subscribe` takes an event selection as its parameters and streams the matching events until `subscription.unsubscribe`.",
    request: { params: threadParams },
    responses: { 101: { description: "The WebSocket is open." }, ...errorResponses(422) },
  },
});
