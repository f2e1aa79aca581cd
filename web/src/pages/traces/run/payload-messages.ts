import type { Message, ToolCall } from "../../threads/conversation/messages.ts";

/** A part of the inputs or outputs of a run: a conversation, a text, or other values. `name` is undefined for the complete payload. */
export type PayloadSection =
  | { kind: "messages"; name?: string; messages: readonly Message[] }
  | { kind: "text"; name: string; text: string }
  | { kind: "json"; name?: string; value: unknown };

type Fields = Record<string, unknown>;

const isObject = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * Divides a payload into sections. Recognizes messages of LangChain (constructors, generations, flat and stored messages), OpenAI (chat
 * completions and responses), Anthropic, Gemini and the OpenTelemetry conventions (`parts`).
 */
export function sectionsOf(payload: unknown): PayloadSection[] {
  const whole = messagesFrom(payload);
  if (whole) return [{ kind: "messages", messages: whole }];
  if (!isObject(payload)) return [{ kind: "json", value: payload }];
  const sections: PayloadSection[] = [];
  const others: [string, unknown][] = [];
  for (const [name, value] of Object.entries(payload)) {
    const messages = messagesFrom(value);
    if (messages) sections.push({ kind: "messages", name, messages });
    else if (typeof value === "string" && sections.length < MAX_SECTIONS)
      sections.push({ kind: "text", name, text: value });
    else others.push([name, value]);
  }
  // Moves parameters such as `model` to the other fields, so that the conversation comes first.
  if (sections.some(({ kind }) => kind === "messages"))
    for (const section of sections.splice(0))
      if (section.kind === "text" && PARAMETERS.has(section.name)) others.push([section.name, section.text]);
      else sections.push(section);
  if (sections.length === 0) return [{ kind: "json", value: payload }];
  if (others.length > 0) sections.push({ kind: "json", name: "Other fields", value: Object.fromEntries(others) });
  return sections;
}

/** After this number of sections, strings are shown in the JSON tree, because a payload may have thousands of strings. */
const MAX_SECTIONS = 20;

const PARAMETERS = new Set(["model", "id", "object", "type", "status", "user", "service_tier", "system_fingerprint"]);

/** Returns the messages in a value. Returns undefined if the value is not a message or a list of messages. */
function messagesFrom(value: unknown): Message[] | undefined {
  if (!Array.isArray(value)) return messageOf(value);
  if (value.length === 0) return undefined;
  // Lists may be nested: LangChain sends a list of messages per prompt, and `generations` contains a list of candidates per prompt.
  const messages: Message[] = [];
  for (const each of value) {
    const found = isTuple(each) ? tupleMessage(each) : messagesFrom(each);
    // Stops at the first element that is not a message, for example the first number of an embedding.
    if (!found) return undefined;
    messages.push(...found);
  }
  return messages;
}

/** Whether a value may be a message tuple such as `["user", "Hello"]`, which LangGraph accepts. */
const isTuple = (value: unknown): value is [string, string] =>
  Array.isArray(value) && value.length === 2 && value.every((part) => typeof part === "string");

const TUPLE_ROLES = new Set(["user", "human", "ai", "assistant", "system", "tool", "developer"]);

const tupleMessage = ([role, content]: [string, string]): Message[] | undefined =>
  TUPLE_ROLES.has(role) ? [{ role, content }] : undefined;

function messageOf(value: unknown): Message[] | undefined {
  if (!isObject(value)) return undefined;
  const { type, role } = value;
  if (value.lc === 1 && Array.isArray(value.id)) return constructorMessage(value);
  // An OpenAI completion choice or a LangChain generation.
  if (
    "message" in value &&
    ["finish_reason", "index", "text", "generation_info", "generationInfo"].some((key) => key in value)
  )
    return messageOf(value.message);
  if (typeof value.text === "string" && ("generation_info" in value || "generationInfo" in value))
    return [{ role: "assistant", content: value.text }];
  if (typeof type === "string" && isObject(value.data) && "content" in value.data && FLAT_TYPES.has(type))
    return contentMessages({ ...value.data, type });
  const item = typeof type === "string" ? RESPONSE_ITEMS[type]?.(value) : undefined;
  if (item) return item;
  if (typeof role === "string" && Array.isArray(value.parts))
    return contentMessages({ ...value, content: value.parts, role });
  if (typeof role === "string" && ("content" in value || "tool_calls" in value)) return contentMessages(value);
  if (typeof type === "string" && FLAT_TYPES.has(type) && "content" in value) return contentMessages(value);
  return undefined;
}

const FLAT_TYPES = new Set(["human", "ai", "system", "tool", "function", "developer", "chat", "AIMessageChunk"]);

/** Message types by LangChain class name. */
const CLASSES: Record<string, string> = {
  HumanMessage: "human",
  AIMessage: "ai",
  SystemMessage: "system",
  ToolMessage: "tool",
  FunctionMessage: "tool",
  ChatMessage: "chat",
};

function constructorMessage({ id, kwargs }: Fields): Message[] | undefined {
  const type = CLASSES[String((id as unknown[]).at(-1)).replace(/Chunk$/, "")];
  return type && isObject(kwargs) ? contentMessages({ ...kwargs, type }) : undefined;
}

/** Functions that convert OpenAI response items other than messages, by item type. */
const RESPONSE_ITEMS: Record<string, (item: Fields) => Message[] | undefined> = {
  function_call: ({ call_id, name, arguments: args }) =>
    typeof name === "string"
      ? [{ role: "assistant", content: "", tool_calls: [toolCall(call_id, name, args)] }]
      : undefined,
  function_call_output: ({ call_id, output }) =>
    typeof call_id === "string" ? [{ role: "tool", tool_call_id: call_id, content: asContent(output) }] : undefined,
  reasoning: ({ summary }) =>
    Array.isArray(summary)
      ? [{ role: "assistant", content: [{ type: "reasoning", text: textsOf(summary) }] }]
      : undefined,
};

const textsOf = (blocks: readonly unknown[]): string =>
  blocks.map((block) => (isObject(block) && typeof block.text === "string" ? block.text : "")).join("\n");

/** Converts a message to the LangChain format. Tool results in content blocks become separate messages. */
function contentMessages(given: Fields): Message[] {
  const { role, type, name, id, tool_call_id, status } = given as unknown as Message;
  const blocks = Array.isArray(given.content) ? given.content : undefined;
  const base = {
    ...(typeof id === "string" && { id }),
    ...(typeof role === "string" ? { role } : { type }),
    ...(typeof name === "string" && { name }),
    ...(typeof status === "string" && { status }),
  };
  const results = (blocks ?? []).flatMap(resultOf);
  const rest = blocks?.filter((block) => resultOf(block).length === 0);
  const calls = [...toolCallsOf(given), ...(blocks ?? []).flatMap(callOf)];
  const known = new Set<string>();
  const tool_calls = calls.filter((call) => !call.id || (!known.has(call.id) && known.add(call.id)));
  if (rest?.length === 0 && results.length > 0) return results;
  const message: Message = {
    ...base,
    content: rest ?? given.content ?? "",
    ...(tool_calls.length > 0 && { tool_calls }),
    ...(typeof tool_call_id === "string" && { tool_call_id }),
  };
  return [message, ...results];
}

/** Returns the tool calls outside the content: LangChain calls have `args`, OpenAI calls have `function`. */
function toolCallsOf({ tool_calls, additional_kwargs, function_call }: Fields): ToolCall[] {
  const nested = isObject(additional_kwargs) ? additional_kwargs.tool_calls : undefined;
  const listed = [tool_calls, nested].find((list) => Array.isArray(list) && list.length > 0);
  const all = Array.isArray(listed) ? listed : isObject(function_call) ? [{ function: function_call }] : [];
  return all.filter(isObject).map((call) => {
    const { name, arguments: args } = isObject(call.function)
      ? call.function
      : { name: call.name, arguments: call.args };
    return toolCall(call.id, String(name ?? "tool"), args);
  });
}

/** Returns the tool call in a content block: `tool_use` of Anthropic, `tool_call` of the OpenTelemetry conventions. */
function callOf(block: unknown): ToolCall[] {
  if (!isObject(block) || typeof block.name !== "string") return [];
  if (block.type === "tool_use") return [toolCall(block.id, block.name, block.input)];
  return block.type === "tool_call" ? [toolCall(block.id, block.name, block.arguments ?? block.args)] : [];
}

/** Returns the tool result in a content block: `tool_result` of Anthropic, `tool_call_response` of the OpenTelemetry conventions. */
function resultOf(block: unknown): Message[] {
  if (!isObject(block)) return [];
  if (block.type === "tool_result" && typeof block.tool_use_id === "string")
    return [
      {
        role: "tool",
        tool_call_id: block.tool_use_id,
        content: asContent(block.content),
        ...(block.is_error === true && { status: "error" }),
      },
    ];
  if (block.type === "tool_call_response" && typeof block.id === "string")
    return [{ role: "tool", tool_call_id: block.id, content: asContent(block.response ?? block.result) }];
  return [];
}

const asContent = (value: unknown): unknown =>
  typeof value === "string" || Array.isArray(value) ? value : value === undefined ? "" : JSON.stringify(value);

function toolCall(id: unknown, name: string, args: unknown): ToolCall {
  const call = typeof id === "string" ? { id, name } : { name };
  if (typeof args !== "string") return { ...call, args };
  try {
    return { ...call, args: JSON.parse(args) };
  } catch {
    return { ...call, args };
  }
}
