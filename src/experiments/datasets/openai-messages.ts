import { InvalidRequestError } from "../../platform/errors.ts";
import { isObject, type JsonObject } from "../../platform/lib/json/json.ts";
import type { Example } from "../contract/datasets/examples.ts";

/** OpenAI roles, keyed by LangChain message type. */
const ROLES: Record<string, string> = { human: "user", ai: "assistant", AIMessageChunk: "assistant" };

/** Keys under which clients and traces store messages, in order of precedence. */
const KEYS = ["messages", "input", "inputs", "output", "message", "generations", "answer", "question"];

/** Returns a line of an OpenAI fine-tuning file: the whole chat. @throws InvalidRequestError when the example is not a chat */
export const toFineTuningLine = (example: Example): JsonObject => ({
  messages: [...messagesOf(example, "inputs", "user"), ...messagesOf(example, "outputs", "assistant")],
});

/** Returns a line of an OpenAI evals file: the chat and the ideal answer. @throws InvalidRequestError when the example is not a chat */
export function toEvalLine(example: Example): JsonObject {
  const [answer] = messagesOf(example, "outputs", "assistant");
  return { input: messagesOf(example, "inputs", "user"), ideal: answer?.content ?? null };
}

function messagesOf(example: Example, field: "inputs" | "outputs", role: string): JsonObject[] {
  const values = example[field] ?? {};
  const key = KEYS.find((name) => Object.hasOwn(values, name)) ?? onlyKey(values);
  const given = key === undefined ? undefined : values[key];
  const messages = [given].flat(2).map((item) => toMessage(item, role));
  if (key !== undefined && messages.length > 0 && messages.every((message) => message !== undefined)) return messages;
  const msg = `Value error, the example ${example.name} (${example.id}) has no chat messages in its ${field}`;
  throw new InvalidRequestError([{ loc: ["path", "dataset_id"], msg, type: "value_error" }]);
}

function onlyKey(values: JsonObject): string | undefined {
  const keys = Object.keys(values);
  return keys.length === 1 ? keys[0] : undefined;
}

/** Converts a string, an OpenAI message, or a LangChain message in any of its forms to an OpenAI message. */
function toMessage(item: unknown, role: string): JsonObject | undefined {
  if (typeof item === "string") return { role, content: item };
  if (!isObject(item)) return undefined;
  if (typeof item.role === "string") return item;
  if (isObject(item.message)) return toMessage(item.message, role);
  // A LangChain message is `{type, data}` in examples, `{lc, id, kwargs}` when serialized, or `{type, content}`.
  const fields = [item.data, item.kwargs].find(isObject) ?? item;
  const type = typeof item.type === "string" && item.type !== "constructor" ? item.type : fields.type;
  const name =
    typeof type === "string"
      ? type
      : lastOf(item.id)
          .replace(/Message(Chunk)?$/, "")
          .toLowerCase();
  if (name === "" || !("content" in fields)) return undefined;
  const { content, additional_kwargs, tool_calls, tool_call_id } = fields;
  const kwargs = isObject(additional_kwargs) ? additional_kwargs : {};
  const calls = kwargs.tool_calls ?? openaiCalls(tool_calls);
  return {
    role: ROLES[name] ?? name,
    content,
    ...(calls !== undefined && { tool_calls: calls }),
    ...(kwargs.function_call !== undefined && { function_call: kwargs.function_call }),
    ...(tool_call_id !== undefined && { tool_call_id }),
  };
}

const lastOf = (id: unknown): string => (Array.isArray(id) ? String(id.at(-1)) : "");

/** Converts LangChain tool calls, whose arguments are objects, to OpenAI tool calls, whose arguments are JSON text. */
function openaiCalls(calls: unknown): JsonObject[] | undefined {
  if (!Array.isArray(calls) || calls.length === 0) return undefined;
  return calls.filter(isObject).map(({ id, name, args }) => ({
    id,
    type: "function",
    function: { name, arguments: JSON.stringify(args ?? {}) },
  }));
}
