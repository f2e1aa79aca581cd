import { jsonOf } from "../thread-filter.ts";
import type { Message, ToolCall, ToolCallChunk } from "./messages.ts";

/** Merges a chunk into a message. Text and tool arguments are appended; other fields are replaced. */
export function withChunk(before: Message | undefined, chunk: Message): Message {
  const chunks = joinCalls(before?.tool_call_chunks ?? [], chunk.tool_call_chunks ?? []);
  const content = before ? joinContent(before.content, chunk.content) : chunk.content;
  if (chunks.length === 0) return { ...before, ...chunk, content };
  return { ...before, ...chunk, content, tool_call_chunks: chunks, tool_calls: chunks.map(callOf) };
}

type Block = { type?: string; index?: number; text?: string };

function joinContent(before: unknown, added: unknown): unknown {
  if (typeof before === "string" && typeof added === "string") return before + added;
  const blocks = blocksOf(before);
  for (const block of blocksOf(added)) {
    const at = blocks.findIndex((each) => each.type === block.type && each.index === block.index);
    const same = blocks[at];
    if (same && typeof same.text === "string" && typeof block.text === "string")
      blocks[at] = { ...same, text: same.text + block.text };
    else blocks.push(block);
  }
  return blocks;
}

const blocksOf = (content: unknown): Block[] => {
  if (typeof content === "string") return content === "" ? [] : [{ type: "text", text: content }];
  return Array.isArray(content)
    ? content.map((block) => (typeof block === "string" ? { type: "text", text: block } : block))
    : [];
};

/** Joins the chunks of tool calls. The first chunk of a call contains the name; later chunks contain parts of the JSON arguments. */
function joinCalls(before: readonly ToolCallChunk[], added: readonly ToolCallChunk[]): ToolCallChunk[] {
  const joined = [...before];
  for (const chunk of added) {
    const at = joined.findIndex(
      (each) => each.index === chunk.index && (!chunk.id || !each.id || each.id === chunk.id),
    );
    const same = joined[at];
    if (!same) joined.push(chunk);
    else
      joined[at] = {
        index: same.index,
        id: same.id ?? chunk.id,
        name: same.name ?? chunk.name,
        args: (same.args ?? "") + (chunk.args ?? ""),
      };
  }
  return joined;
}

const callOf = ({ id, name, args }: ToolCallChunk): ToolCall => ({ id, name: name ?? "", args: jsonOf(args ?? "") });
