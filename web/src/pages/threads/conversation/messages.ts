/** A message in a graph state: a flat LangChain object or `{role, content}`. */
export interface Message {
  id?: string | null;
  type?: string;
  role?: string;
  name?: string | null;
  content: unknown;
  tool_calls?: readonly ToolCall[] | null;
  /** Chunks of tool calls, while the message is being streamed. */
  tool_call_chunks?: readonly ToolCallChunk[];
  tool_call_id?: string;
  /** Of a tool result: `success` or `error`. */
  status?: string;
}

export interface ToolCall {
  id?: string | null;
  name: string;
  /** The arguments; a string while the JSON is incomplete. */
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
  system: "system",
  developer: "system",
  tool: "tool",
};

export const roleOf = ({ type, role }: Message): Role => ROLES[type ?? role ?? ""] ?? "agent";

/** The messages of a state; undefined if `messages` is not a list of messages. */
export function messagesOf(values: unknown): readonly Message[] | undefined {
  const found = (values as { messages?: unknown } | null | undefined)?.messages;
  return Array.isArray(found) && found.every(isMessage) ? found : undefined;
}

const isMessage = (value: unknown): value is Message =>
  typeof value === "object" && value !== null && "content" in value && ("type" in value || "role" in value);

/** The text of a message and its other content blocks (images, reasoning). Tool call blocks are left out. */
export function partsOf({ content }: Message): { text: string; others: unknown[] } {
  if (typeof content === "string") return { text: content, others: [] };
  const blocks = Array.isArray(content) ? content : content === null || content === undefined ? [] : [content];
  const texts = blocks.map((block) => (typeof block === "string" ? block : block?.type === "text" ? block.text : null));
  return {
    text: texts.filter((text) => text !== null).join(""),
    others: blocks.filter((block, index) => texts[index] === null && !/tool_(use|call)/.test(block?.type ?? "")),
  };
}

/** Tool results by call ID. A call without an entry has no result yet. */
export const toolResultsOf = (messages: readonly Message[]): ReadonlyMap<string, Message> =>
  new Map(messages.flatMap((message) => (message.tool_call_id ? [[message.tool_call_id, message] as const] : [])));

/** Messages whose open tool calls can no longer get a result: a later message is not a tool result. */
export function droppedCallsOf(messages: readonly Message[]): ReadonlySet<Message> {
  const last = messages.findLastIndex((message) => roleOf(message) !== "tool");
  return new Set(messages.slice(0, Math.max(last, 0)));
}

/** State keys that may contain the question if a graph has no messages. A search extracts at most ten paths. */
export const TITLE_KEYS = ["question", "input", "query", "prompt", "topic", "task"] as const;

/** The first message or question, on one line. */
export function titleOf(values: unknown): string | undefined {
  const [first] = messagesOf(values) ?? [];
  const fields = (values ?? {}) as Record<string, unknown>;
  const question = TITLE_KEYS.map((key) => fields[key]).find((value) => typeof value === "string" && value !== "");
  const text = first ? partsOf(first).text : typeof question === "string" ? question : "";
  return text.replace(/\s+/g, " ").slice(0, 120) || undefined;
}
