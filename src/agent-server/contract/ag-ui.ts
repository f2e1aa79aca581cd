import { z } from "@hono/zod-openapi";
import {
  assistantId,
  errorResponses,
  eventStream,
  jsonBody,
  jsonObject,
  optional,
  responseHeaders,
  searchable,
  withDefault,
} from "../../platform/contract/fields.ts";
import { routeGroup } from "../../platform/contract/operation.ts";
import { Config } from "./records.ts";
import { command } from "./run-schemas.ts";

/** Clients choose the IDs of threads, runs, messages and tool calls. They are stored in searchable metadata and in the state. */
const id = z.string().min(1).max(1000);

const textPart = z.object({ type: z.literal("text"), text: z.string() });
const source = z.discriminatedUnion("type", [
  z.object({ type: z.literal("url"), value: z.string() }),
  z.object({ type: z.literal("data"), value: z.string(), mimeType: z.string() }),
]);
const mediaPart = z.object({ type: z.enum(["image", "audio", "video", "document"]), source });
/** The media part of clients before version 0.0.46. */
const binaryPart = z
  .object({
    type: z.literal("binary"),
    mimeType: z.string(),
    url: optional(z.string()),
    data: optional(z.string()),
  })
  .refine(({ url, data }) => url !== undefined || data !== undefined, "must contain `url` or `data`");

const part = z.discriminatedUnion("type", [textPart, mediaPart, binaryPart]);
export type AgUiPart = z.output<typeof part>;

const content = z.union([z.string(), z.array(part)], "must be a string or a list of text, media and binary parts");

const toolCall = z.object({
  id,
  function: z.object({ name: z.string().min(1), arguments: withDefault(z.string(), "") }),
});

const message = z.discriminatedUnion("role", [
  z.object({ role: z.literal("user"), id, content }),
  z.object({
    role: z.literal("assistant"),
    id,
    content: withDefault(content, ""),
    toolCalls: withDefault(z.array(toolCall), []),
  }),
  z.object({ role: z.literal("tool"), id, content, toolCallId: id, error: optional(z.string()) }),
  z.object({ role: z.literal("system"), id, content }),
  // These are not input of the graph: the first configures the agent, the others are for display.
  z.object({ role: z.enum(["developer", "reasoning", "activity"]), id }),
]);
export type AgUiMessage = z.output<typeof message>;

const tool = z.object({
  name: z.string().min(1),
  description: withDefault(z.string(), ""),
  parameters: z.unknown().optional(),
});

const resumeEntry = z.object({
  interruptId: id,
  status: z.enum(["resolved", "cancelled"]),
  payload: z.unknown().optional(),
});

const forwardedProps = z.object({
  command: optional(command).openapi({
    description:
      "Command for the graph. If `command.resume` is a string that contains JSON, the string is parsed. The request's own field `resume` takes precedence over the command.",
  }),
  config: withDefault(Config, {}),
  context: optional(jsonObject).openapi({ description: "Static context of the graph (`context` of a run)." }),
  metadata: withDefault(searchable, {}).openapi({
    description: "Metadata of the run, and of the thread if it is new.",
  }),
});

/** AG-UI's RunAgentInput. Clients before version 1.0 send null for missing fields, which the schemas of `@ag-ui/core` refuse. */
export const runAgentInput = z
  .object({
    threadId: id.openapi({
      description:
        "The UUID of a thread, or any other text that identifies a thread. The thread is created if it does not exist.",
    }),
    runId: id.openapi({
      description: "The client's ID for the run, returned in the events. The server assigns its own ID to the run.",
    }),
    protocolVersion: optional(z.string()),
    state: optional(jsonObject).openapi({
      description: "State of the client. Keys whose values differ from the thread's state become input.",
    }),
    messages: withDefault(z.array(message), []).openapi({
      description:
        "Messages of the client. Messages that the thread does not contain become input. If the first message of the request is a system message, it is ignored.",
    }),
    tools: withDefault(z.array(tool), []).openapi({ description: "Tools that the client executes." }),
    context: withDefault(z.array(z.object({ description: z.string(), value: z.string() })), []),
    forwardedProps: withDefault(forwardedProps, { config: {}, metadata: {} }),
    resume: withDefault(z.array(resumeEntry), []).openapi({ description: "Responses to open interrupts." }),
  })
  .openapi("RunAgentInput");
export type RunAgentInput = z.output<typeof runAgentInput>;

export const agUiRoutes = routeGroup("AG-UI", {
  /** 404: unknown assistant; a thread of another workspace or user. 422 also for a response to an interrupt that is not open. */
  runAgent: {
    method: "post",
    path: "/ag-ui/{assistant_id}",
    summary: "Run an assistant for an AG-UI client",
    description:
      "Creates a run and streams its events over the AG-UI protocol. The run is cancelled if the client disconnects.",
    request: { params: z.object({ assistant_id: assistantId }), body: jsonBody(runAgentInput) },
    responses: {
      200: {
        ...eventStream("AG-UI events, from RUN_STARTED to RUN_FINISHED or RUN_ERROR."),
        headers: responseHeaders({
          "Content-Location":
            "Path of the created run. Absent if the response only repeats the thread's open interrupts and no run is created.",
        }),
      },
      ...errorResponses(404, 409, 413, 422),
    },
  },
});
