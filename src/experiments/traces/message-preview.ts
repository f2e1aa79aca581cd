import { isObject, type JsonObject } from "../../platform/lib/json/json.ts";
import { previewOf } from "../upload/staging.ts";

/** A payload with one of these keys, or with the role of a message, is a conversation. */
const CONVERSATIONS = ["messages", "generations", "choices"];

/** Keys that lead to the text of a message in the formats of LangChain, OpenAI, Anthropic and OpenTelemetry. */
const CONTENTS = [...CONVERSATIONS, "message", "kwargs", "content", "parts", "text"];

/** The maximum number of items of a list that are searched for text, from the end. */
const MAX_MESSAGES = 5;
const MAX_DEPTH = 8;

/** Returns the beginning of the last text of a conversation. Without such a text, returns {@link previewOf} of the payload. */
export function messagePreview(payload: JsonObject): string {
  const isConversation = CONVERSATIONS.some((key) => Array.isArray(payload[key])) || typeof payload.role === "string";
  const text = isConversation ? lastText(payload, 0) : undefined;
  return previewOf(text === undefined ? payload : { text });
}

function lastText(value: unknown, depth: number): string | undefined {
  if (typeof value === "string") return value.trim() === "" ? undefined : value;
  if (depth > MAX_DEPTH || typeof value !== "object" || value === null) return undefined;
  if (Array.isArray(value)) return firstFound(value.slice(-MAX_MESSAGES).reverse(), depth);
  const fields = value as JsonObject;
  const found = firstFound(
    CONTENTS.map((key) => fields[key]),
    depth,
  );
  return found ?? calledTools(fields);
}

function firstFound(values: unknown[], depth: number): string | undefined {
  for (const value of values) {
    const text = lastText(value, depth + 1);
    if (text !== undefined) return text;
  }
  return undefined;
}

/** The names of the tools that a message without text calls. */
function calledTools({ tool_calls }: JsonObject): string | undefined {
  if (!Array.isArray(tool_calls)) return undefined;
  const names = tool_calls
    .filter(isObject)
    .map((call) => call.name ?? (isObject(call.function) ? call.function.name : ""));
  return names.filter((name) => typeof name === "string" && name !== "").join(", ") || undefined;
}
