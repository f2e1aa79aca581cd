import type { Interrupt as AgUiInterrupt, Message } from "@ag-ui/core";
import { isObject, JsonError, type JsonObject, parseUntrusted } from "../../../platform/lib/json/json.ts";
import type { AgUiMessage, AgUiPart } from "../../contract/ag-ui.ts";
import type { Interrupt } from "../../contract/records.ts";

/** A message of a graph, in its wire format. */
export type GraphMessage = JsonObject & { id?: string | null; type?: string };

/** Returns the graph's message for a message of a client; none for a message that is not input of a graph. */
export function toGraphMessage(message: AgUiMessage): GraphMessage[] {
  const { id, role } = message;
  switch (role) {
    case "user":
      return [{ type: "human", id, content: toGraphContent(message.content) }];
    case "assistant":
      return [{ type: "ai", id, content: toGraphContent(message.content), tool_calls: toolCallsOf(message) }];
    case "tool": {
      const status = message.error === undefined ? "success" : "error";
      return [{ type: "tool", id, content: toGraphContent(message.content), tool_call_id: message.toolCallId, status }];
    }
    case "system":
      return [{ type: "system", id, content: toGraphContent(message.content) }];
    default:
      return [];
  }
}

const toGraphContent = (content: string | AgUiPart[]) =>
  typeof content === "string" ? content : content.map(toGraphPart);

/** LangChain's content part for media of all types is `image_url`. */
function toGraphPart(part: AgUiPart): JsonObject {
  if (part.type === "text") return { type: "text", text: part.text };
  if (part.type === "binary")
    return { type: "image_url", image_url: { url: part.url ?? `data:${part.mimeType};base64,${part.data}` } };
  const { source } = part;
  const url = source.type === "url" ? source.value : `data:${source.mimeType};base64,${source.value}`;
  return { type: "image_url", image_url: { url } };
}

/** A stopped stream leaves a client with incomplete arguments. Such a call was not executed, so it is left out. */
const toolCallsOf = ({ toolCalls }: Extract<AgUiMessage, { role: "assistant" }>): JsonObject[] =>
  toolCalls.flatMap(({ id, function: { name, arguments: text } }) => {
    const args = text === "" ? {} : parsed(text);
    return isObject(args) ? [{ type: "tool_call", id, name, args }] : [];
  });

/** Returns the value of a client's JSON text, or the text itself if it is not JSON or exceeds the limits of bodies. */
export function parsed(text: string): unknown {
  try {
    return parseUntrusted(text);
  } catch (error) {
    if (error instanceof JsonError) return text;
    throw error;
  }
}

/** Returns the messages of a state in AG-UI's format. Messages without an ID and of other types are left out. */
export const toAgUiMessages = (messages: readonly unknown[]): Message[] =>
  messages.flatMap((message) => (isObject(message) ? toAgUiMessage(message as GraphMessage) : []));

function toAgUiMessage(message: GraphMessage): Message[] {
  const { id, type, content } = message;
  if (!id) return [];
  switch (type) {
    case "human":
      return [{ id, role: "user", content: toAgUiContent(content) }];
    case "system":
      return [{ id, role: "system", content: textOf(content) }];
    case "tool": {
      const toolCallId = String(message.tool_call_id);
      return [
        {
          id,
          role: "tool",
          content: textOf(content),
          toolCallId,
          ...(message.status === "error" && { error: "error" }),
        },
      ];
    }
    case "ai":
    case "AIMessageChunk":
      return [...reasoningMessage(id, content), assistantMessage(id, message)];
    default:
      return [];
  }
}

function assistantMessage(id: string, { content, tool_calls }: GraphMessage): Message {
  const calls = ((tool_calls as JsonObject[] | null | undefined) ?? []).map((call) => ({
    id: String(call.id),
    type: "function" as const,
    function: { name: String(call.name), arguments: JSON.stringify(call.args ?? {}) },
  }));
  return { id, role: "assistant", content: textOf(content), ...(calls.length > 0 && { toolCalls: calls }) };
}

function reasoningMessage(id: string, content: unknown): Message[] {
  const text = reasoningOf(content);
  return text === "" ? [] : [{ id: reasoningId(id), role: "reasoning", content: text }];
}

/** The reasoning of an AI message is a message of its own. */
export const reasoningId = (message_id: string): string => `${message_id}-reasoning`;

const partsOf = (content: unknown): JsonObject[] => (Array.isArray(content) ? content.filter(isObject) : []);

/** Returns the text of a message: a text, or the text parts of a list. */
export function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  return partsOf(content)
    .map((part) => (part.type === "text" && typeof part.text === "string" ? part.text : ""))
    .join("");
}

/** Returns the reasoning of a message. Its format depends on the provider. */
export function reasoningOf(content: unknown): string {
  return partsOf(content).map(reasoningOfPart).join("");
}

function reasoningOfPart({ type, thinking, reasoning, reasoning_content, summary }: JsonObject): string {
  if (type === "thinking") return String(thinking ?? "");
  if (type === "reasoning_content") return isObject(reasoning_content) ? String(reasoning_content.text ?? "") : "";
  if (type !== "reasoning") return "";
  if (Array.isArray(summary))
    return summary.map((entry) => (isObject(entry) ? String(entry.text ?? "") : "")).join("\n");
  return String(reasoning ?? "");
}

type UserContent = Extract<Message, { role: "user" }>["content"];

function toAgUiContent(content: unknown): UserContent {
  const parts = partsOf(content);
  if (parts.every(({ type }) => type === "text")) return textOf(content);
  return parts.flatMap(toAgUiPart);
}

function toAgUiPart({ type, text, image_url: image }: JsonObject): Exclude<UserContent, string> {
  if (type === "text") return [{ type, text: String(text) }];
  const url = isObject(image) ? image.url : image;
  if (type !== "image_url" || typeof url !== "string") return [];
  const [, mimeType, value] = /^data:([^;,]*);base64,(.*)$/s.exec(url) ?? [];
  const source = { type: "url" as const, value: url };
  if (mimeType === undefined || value === undefined) return [{ type: "image", source }];
  return [{ type: "image", source: { type: "data", value, mimeType } }];
}

/** Returns the tool calls in a message: parts of their arguments, or complete calls. */
export function callsOf({ tool_calls, tool_call_chunks }: GraphMessage): JsonObject[] {
  if (Array.isArray(tool_call_chunks) && tool_call_chunks.length > 0)
    return tool_call_chunks.map((chunk: JsonObject) => ({ ...chunk, index: chunk.index ?? chunk.id }));
  if (!Array.isArray(tool_calls)) return [];
  return tool_calls.map(({ id, name, args }: JsonObject) => ({
    index: id,
    id,
    name,
    args: JSON.stringify(args ?? {}),
  }));
}

/** Returns an interrupt in AG-UI's format, with the fields that LangGraph's own AG-UI integration takes from its value. */
export function toAgUiInterrupt({ id, value = null, namespace }: Interrupt): AgUiInterrupt {
  const fields = isObject(value) ? value : {};
  const text = (...names: string[]): string | undefined =>
    names.map((name) => fields[name]).find((found) => typeof found === "string");
  const responseSchema = [fields.responseSchema, fields.response_schema].find(isObject);
  // Undefined fields are not in the JSON text of the event.
  return {
    id,
    reason: text("reason") ?? "langgraph:interrupt",
    message: typeof value === "string" ? value : text("message"),
    toolCallId: text("toolCallId", "tool_call_id"),
    responseSchema,
    expiresAt: text("expiresAt", "expires_at"),
    metadata: { langgraph: { raw: value, ns: namespace } },
  };
}
