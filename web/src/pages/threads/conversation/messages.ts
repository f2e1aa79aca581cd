/** A message in a graph's state, as a flat LangChain object or as `{role, content}`. */
export interface Message {
  id?: string | null;
  type?: string;
  role?: string;
  name?: string | null;
  content: unknown;
  tool_calls?: readonly ToolCall[] | null;
  /** Chunks of tool calls. Present only while the message is being streamed. */
  tool_call_chunks?: readonly ToolCallChunk[];
  tool_call_id?: string;
  /** Status of a tool result: `success` or `error`. */
  status?: string;
}

export interface ToolCall {
  id?: string | null;
  name: string;
  /** Parsed arguments, or a string while the JSON is incomplete. */
  args: unknown;
}

export interface ToolCallChunk {
  index?: number;
  id?: string | null;
  name?: string | null;
  args?: string | null;
}

export type Role = "user" | "agent" | "system" | "tool";

const ROLES: Record<string, Role> = {
  human: "user",
  user: "user",
  ai: "agent",
  assistant: "agent",
  AIMessageChunk: "agent",
  model: "agent",
  system: "system",
  developer: "system",
  tool: "tool",
  function: "tool",
};

export const roleOf = ({ type, role }: Message): Role => ROLES[type ?? role ?? ""] ?? "agent";

/** Returns the messages of a state, or undefined if `messages` is not a list of messages. */
export function messagesOf(values: unknown): readonly Message[] | undefined {
  const found = (values as { messages?: unknown } | null | undefined)?.messages;
  return Array.isArray(found) && found.every(isMessage) ? found : undefined;
}

const isMessage = (value: unknown): value is Message =>
  typeof value === "object" && value !== null && "content" in value && ("type" in value || "role" in value);

export interface MessageParts {
  text: string;
  reasoning: string;
  /** Data URLs. */
  images: readonly string[];
  others: readonly unknown[];
}

/** Returns a message's text, reasoning and images, and its other content blocks. Tool call blocks are omitted. */
export function partsOf({ content }: Message): MessageParts {
  if (typeof content === "string") return { text: content, reasoning: "", images: [], others: [] };
  const blocks = Array.isArray(content) ? content : content === null || content === undefined ? [] : [content];
  const texts: string[] = [];
  const thoughts: string[] = [];
  const images: string[] = [];
  const others: unknown[] = [];
  for (const block of blocks) {
    const text = textOf(block);
    const image = imageOf(block);
    if (text !== undefined) (isReasoning(block) ? thoughts : texts).push(text);
    else if (image !== undefined) images.push(image);
    else if (!/tool_(use|call)/.test(block?.type ?? "")) others.push(block);
  }
  return { text: texts.join(""), reasoning: thoughts.join("\n"), images, others };
}

const REASONING = new Set(["reasoning", "thinking"]);
const isReasoning = (block: { type?: string }): boolean => REASONING.has(block?.type ?? "");

/** Returns a block's text: `text`, `thinking` or `reasoning` for LangChain, OpenAI and Anthropic, `content` for OpenTelemetry. */
function textOf(block: unknown): string | undefined {
  if (typeof block === "string") return block;
  const { type = "text", text, content, thinking, reasoning } = (block ?? {}) as Record<string, unknown>;
  if (!/^(text|(in|out)put_text|summary_text|reasoning|thinking)$/.test(String(type))) return undefined;
  return [text, thinking, reasoning, content].find((value) => typeof value === "string") as string | undefined;
}

/** Only images in data URLs are shown, because other URLs would cause requests to other hosts. */
const IMAGE_DATA = /^data:image\/(png|jpeg|gif|webp);base64,/i;

function imageOf(block: unknown): string | undefined {
  const { image_url, url, source, data, mime_type, content } = (block ?? {}) as Record<string, unknown>;
  const { media_type, data: bytes } = (source ?? {}) as Record<string, unknown>;
  const candidates = [
    image_url,
    (image_url as { url?: unknown } | undefined)?.url,
    url,
    `data:${media_type};base64,${bytes}`,
    `data:${mime_type};base64,${data ?? content}`,
  ];
  return candidates.find((value) => typeof value === "string" && IMAGE_DATA.test(value)) as string | undefined;
}

/** Maps call IDs to tool results. A call that is not in the map has no result yet. */
export const toolResultsOf = (messages: readonly Message[]): ReadonlyMap<string, Message> =>
  new Map(messages.flatMap((message) => (message.tool_call_id ? [[message.tool_call_id, message] as const] : [])));

/** Returns messages whose open tool calls can no longer get a result, because a message other than a tool result follows. */
export function droppedCallsOf(messages: readonly Message[]): ReadonlySet<Message> {
  const last = messages.findLastIndex((message) => roleOf(message) !== "tool");
  return new Set(messages.slice(0, Math.max(last, 0)));
}

/** State keys that may contain the question if a graph has no messages. A search request may extract at most ten state paths. */
export const TITLE_KEYS = ["question", "input", "query", "prompt", "topic", "task"] as const;

/** Metadata keys with which clients name threads. */
const NAME_KEYS = ["title", "name", "thread_name"] as const;

/** Returns the name that a client gave a thread in its metadata. */
export function nameOf(metadata: Record<string, unknown>): string | undefined {
  const name = NAME_KEYS.map((key) => metadata[key]).find((value) => typeof value === "string" && value.trim() !== "");
  return name === undefined ? undefined : asTitle(name as string);
}

const asTitle = (text: string): string | undefined => text.trim().replace(/\s+/g, " ").slice(0, 120) || undefined;

/** Returns the first message or question as one line. */
export function titleOf(values: unknown): string | undefined {
  const [first] = messagesOf(values) ?? [];
  const fields = (values ?? {}) as Record<string, unknown>;
  const question = TITLE_KEYS.map((key) => fields[key]).find((value) => typeof value === "string" && value !== "");
  const text = first ? partsOf(first).text : typeof question === "string" ? question : "";
  return asTitle(text);
}
