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
  system: "system",
  developer: "system",
  tool: "tool",
};

export const roleOf = ({ type, role }: Message): Role => ROLES[type ?? role ?? ""] ?? "agent";

/** Returns the messages of a state, or undefined if `messages` is not a list of messages. */
export function messagesOf(values: unknown): readonly Message[] | undefined {
  const found = (values as { messages?: unknown } | null | undefined)?.messages;
  return Array.isArray(found) && found.every(isMessage) ? found : undefined;
}

const isMessage = (value: unknown): value is Message =>
  typeof value === "object" && value !== null && "content" in value && ("type" in value || "role" in value);

/** Returns a message's text and its other content blocks, such as images and reasoning. Tool call blocks are omitted. */
export function partsOf({ content }: Message): { text: string; others: unknown[] } {
  if (typeof content === "string") return { text: content, others: [] };
  const blocks = Array.isArray(content) ? content : content === null || content === undefined ? [] : [content];
  const texts = blocks.map((block) => (typeof block === "string" ? block : block?.type === "text" ? block.text : null));
  return {
    text: texts.filter((text) => text !== null).join(""),
    others: blocks.filter((block, index) => texts[index] === null && !/tool_(use|call)/.test(block?.type ?? "")),
  };
}

/** Maps call IDs to tool results. A call that is not in the map has no result yet. */
export const toolResultsOf = (messages: readonly Message[]): ReadonlyMap<string, Message> =>
  new Map(messages.flatMap((message) => (message.tool_call_id ? [[message.tool_call_id, message] as const] : [])));

/** Returns messages whose open tool calls can no longer get a result, because a later message is not a tool result. */
export function droppedCallsOf(messages: readonly Message[]): ReadonlySet<Message> {
  const last = messages.findLastIndex((message) => roleOf(message) !== "tool");
  return new Set(messages.slice(0, Math.max(last, 0)));
}

/** State keys that may contain the question if a graph has no messages. A search request may extract at most ten paths. */
export const TITLE_KEYS = ["question", "input", "query", "prompt", "topic", "task"] as const;

/** Returns the first message or question as one line. */
export function titleOf(values: unknown): string | undefined {
  const [first] = messagesOf(values) ?? [];
  const fields = (values ?? {}) as Record<string, unknown>;
  const question = TITLE_KEYS.map((key) => fields[key]).find((value) => typeof value === "string" && value !== "");
  const text = first ? partsOf(first).text : typeof question === "string" ? question : "";
  return text.replace(/\s+/g, " ").slice(0, 120) || undefined;
}
