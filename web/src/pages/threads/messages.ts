/** A message as graphs keep it: LangChain's flat objects, or plain `{role, content}`. */
export interface Message {
  id?: string | null;
  type?: string;
  role?: string;
  name?: string | null;
  content: unknown;
  tool_calls?: readonly ToolCall[] | null;
  /** Pieces of tool calls, while they are being written. */
  tool_call_chunks?: readonly ToolCallChunk[];
  tool_call_id?: string;
  /** Of a tool's answer: `success` or `error`. */
  status?: string;
}

export interface ToolCall {
  id?: string | null;
  name: string;
  /** What it is called with; a text while that is not JSON yet. */
  args: unknown;
}

export interface ToolCallChunk {
  index?: number;
  id?: string | null;
  name?: string | null;
  args?: string | null;
}

/** Who speaks. */
export type Speaker = "person" | "agent" | "system" | "tool";

const SPEAKERS: Record<string, Speaker> = {
  human: "person",
  user: "person",
  ai: "agent",
  assistant: "agent",
  AIMessageChunk: "agent",
  system: "system",
  developer: "system",
  tool: "tool",
};

export const speakerOf = ({ type, role }: Message): Speaker => SPEAKERS[type ?? role ?? ""] ?? "agent";

/** The messages of a state; undefined when it keeps none under `messages`. */
export function messagesOf(values: unknown): readonly Message[] | undefined {
  const found = (values as { messages?: unknown } | null | undefined)?.messages;
  return Array.isArray(found) && found.every(isMessage) ? found : undefined;
}

const isMessage = (value: unknown): value is Message =>
  typeof value === "object" && value !== null && "content" in value && ("type" in value || "role" in value);

/** What is said, and the blocks of it that are no text: images, thoughts. Tool calls are told apart. */
export function partsOf({ content }: Message): { text: string; others: unknown[] } {
  if (typeof content === "string") return { text: content, others: [] };
  const blocks = Array.isArray(content) ? content : content === null || content === undefined ? [] : [content];
  const texts = blocks.map((block) => (typeof block === "string" ? block : block?.type === "text" ? block.text : null));
  return {
    text: texts.filter((text) => text !== null).join(""),
    others: blocks.filter((block, index) => texts[index] === null && !/tool_(use|call)/.test(block?.type ?? "")),
  };
}

/** Answers of tools by the id of the call; a call that is not in it has none yet. */
export const answersOf = (messages: readonly Message[]): ReadonlyMap<string, Message> =>
  new Map(messages.flatMap((message) => (message.tool_call_id ? [[message.tool_call_id, message] as const] : [])));

/** Those whose calls nobody will answer any more: somebody has spoken since, and it was no tool. */
export function passedBy(messages: readonly Message[]): ReadonlySet<Message> {
  const last = messages.findLastIndex((message) => speakerOf(message) !== "tool");
  return new Set(messages.slice(0, Math.max(last, 0)));
}
