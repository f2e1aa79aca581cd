import { isMessage, type Message } from "./wire.ts";

/** An event of the channel `messages` of the thread protocol, from one node. */
export interface MessageEvent {
  namespace: string[];
  node: string | undefined;
  data: { event: string; [field: string]: unknown };
}

type Part = { type: string; index?: number | string; [field: string]: unknown };

interface ToolCallChunk {
  index?: number;
  id?: string;
  name?: string;
  args?: string;
}

interface Block {
  key: string;
  isFinished: boolean;
  /** The block without its streamed text. */
  content: Part;
  field: "text" | "reasoning" | "args" | undefined;
  text: string;
}

interface OpenMessage extends Omit<MessageEvent, "data"> {
  id: string;
  blocks: Block[];
  /** All chunks together. */
  whole: Message & { concat?(next: unknown): Message };
}

interface ModelMetadata {
  langgraph_checkpoint_ns?: string;
  checkpoint_ns?: string;
  langgraph_node?: string;
  ls_provider?: string;
  ls_model_name?: string;
}

/**
 * Converts the messages of a graph to content blocks. LangChain's own conversion (`streamEvents` v3) changes the messages that the graph
 * gets: a tool call with the index of a text block is lost (@langchain/core 1.4.0).
 */
export class MessageBlocks {
  readonly #open = new Map<string, OpenMessage>();

  /** @param payload a chunk of LangGraph's mode `messages`: a message, or a part of one, and its metadata */
  take([message, metadata]: [unknown, ModelMetadata]): MessageEvent[] {
    if (!isMessage(message) || message._getType() === "tool" || message.id === undefined) return [];
    const namespace = (metadata.langgraph_checkpoint_ns ?? metadata.checkpoint_ns ?? "").split("|");
    const known = this.#open.get(message.id);
    const { id } = message;
    const open = known ?? { id, namespace, node: metadata.langgraph_node, blocks: [], whole: message };
    const events = known ? [] : [eventOf(open, { event: "message-start", ...startOf(message, metadata) })];
    if (known) known.whole = known.whole.concat?.(message) ?? message;
    events.push(...this.#parts(open, message));
    if ("concat" in message) this.#open.set(id, open);
    else events.push(...finish(open));
    return events;
  }

  /** Finishes the messages of a task that has ended. */
  endTask(namespace: readonly string[], { name, id }: { name: string; id: string }): MessageEvent[] {
    const task = [...namespace, `${name}:${id}`].join("|");
    return this.#end(finish, (message) => message.namespace.join("|") === task);
  }

  /** Finishes the messages of a node that has updated the state, unless several of its tasks have open messages. */
  endNode(namespace: readonly string[], node: string): MessageEvent[] {
    const prefix = [...namespace, `${node}:`].join("|");
    const tasks = [...this.#open.values()].map((message) => message.namespace.join("|"));
    const ended = new Set(tasks.filter((task) => task.startsWith(prefix) && !task.slice(prefix.length).includes("|")));
    return ended.size === 1 ? this.#end(finish, (message) => ended.has(message.namespace.join("|"))) : [];
  }

  /** Finishes the messages that are still open. */
  end = (): MessageEvent[] => this.#end(finish);

  /** Ends the messages that are still open with an error. */
  fail = (): MessageEvent[] =>
    this.#end((message) => [eventOf(message, { event: "error", message: "The message was not completed." })]);

  #end(close: (message: OpenMessage) => MessageEvent[], isEnded = (_: OpenMessage) => true): MessageEvent[] {
    const ended = [...this.#open.values()].filter(isEnded);
    for (const { id } of ended) this.#open.delete(id);
    return ended.flatMap(close);
  }

  #parts(open: OpenMessage, message: Message): MessageEvent[] {
    const { content, tool_call_chunks, tool_calls, additional_kwargs } = message;
    const parts = typeof content === "string" ? [{ type: "text", text: content }] : (content as Part[]);
    const { reasoning_content } = (additional_kwargs ?? {}) as { reasoning_content?: string };
    const calls = "concat" in message ? (tool_call_chunks as ToolCallChunk[]) : wholeCalls(tool_calls as ToolCall[]);
    return [
      ...(reasoning_content ? add(open, "reasoning", { type: "reasoning" }, "reasoning", reasoning_content) : []),
      ...parts.flatMap((part) => addPart(open, part)),
      ...(calls ?? []).flatMap(({ index, id, name, args }) =>
        add(open, `call ${index ?? id}`, { type: "tool_call_chunk", id, name }, "args", args ?? ""),
      ),
    ];
  }
}

interface ToolCall {
  id?: string;
  name: string;
  args: unknown;
}

const wholeCalls = (calls: ToolCall[] | undefined): ToolCallChunk[] =>
  (calls ?? []).map(({ id, name, args }, index) => ({ index, id, name, args: JSON.stringify(args) }) as ToolCallChunk);

/** Parts of providers that repeat what the message has as tool calls. */
const CALL_PARTS = new Set(["tool_use", "input_json_delta", "tool_call", "tool_call_chunk", "functionCall"]);

function addPart(open: OpenMessage, part: Part): MessageEvent[] {
  const { type, index, ...fields } = part;
  if (CALL_PARTS.has(type)) return [];
  const key = `${type} ${index ?? ""}`;
  const text = (fields.text ?? "") as string;
  if (type === "text") return text === "" ? [] : add(open, key, { type }, "text", text);
  const reasoning = (fields.reasoning ?? fields.thinking) as string | undefined;
  if (type === "reasoning" || type === "thinking")
    return reasoning ? add(open, key, { type: "reasoning" }, "reasoning", reasoning) : [];
  return add(open, index === undefined ? `${key}${open.blocks.length}` : key, part, undefined, "");
}

/** Adds text to the open block with the key, which is created if there is none. The blocks before a new one are finished first. */
function add(open: OpenMessage, key: string, content: Part, field: Block["field"], text: string): MessageEvent[] {
  const events: MessageEvent[] = [];
  let block = open.blocks.findLast((one) => one.key === key && !one.isFinished);
  if (!block) {
    events.push(...finishBlocks(open, mayFinish));
    block = { key, content, field, text: "", isFinished: false };
    open.blocks.push(block);
    const start = field ? { ...content, [field]: "" } : content;
    events.push(eventOf(open, { event: "content-block-start", index: open.blocks.length - 1, content: start }));
  }
  block.text += text;
  if (field === "args") block.content = { ...block.content, ...withoutEmpty({ id: content.id, name: content.name }) };
  const delta = field && text !== "" && { type: DELTAS[field], [field]: text };
  if (delta) events.push(eventOf(open, { event: "content-block-delta", index: open.blocks.indexOf(block), delta }));
  return events;
}

/** Some models stream the arguments of several tool calls alternately. */
const mayFinish = ({ field, content, text }: Block): boolean =>
  field !== "args" || (text !== "" && toolCall(content, text).type === "tool_call");

function finishBlocks(open: OpenMessage, isEnded = (_: Block) => true): MessageEvent[] {
  return open.blocks.flatMap((block, index) => {
    if (block.isFinished || !isEnded(block)) return [];
    block.isFinished = true;
    const { content, field, text } = block;
    const finished = field === "args" ? toolCall(content, text) : field ? { ...content, [field]: text } : content;
    return eventOf(open, { event: "content-block-finish", index, content: finished });
  });
}

const DELTAS = { text: "text-delta", reasoning: "reasoning-delta", args: "tool-call-delta" };

function finish(open: OpenMessage): MessageEvent[] {
  const { usage_metadata, response_metadata } = open.whole;
  const details = withoutEmpty({ usage: usage_metadata, metadata: response_metadata });
  return [...finishBlocks(open), eventOf(open, { event: "message-finish", ...details })];
}

function toolCall({ id = null, name = null }: Part, text: string): Part {
  try {
    const args: unknown = JSON.parse(text === "" ? "{}" : text);
    if (typeof args === "object" && args !== null) return { type: "tool_call", id, name, args };
  } catch {
    // The model has sent invalid JSON.
  }
  return { type: "invalid_tool_call", id, name, args: text, error: "The arguments are not a JSON object." };
}

const ROLES: Record<string, string> = { human: "human", system: "system" };

function startOf(message: Message, { langgraph_node, ls_provider, ls_model_name }: ModelMetadata) {
  const metadata = withoutEmpty({ langgraph_node, provider: ls_provider, model: ls_model_name });
  return { id: message.id, role: ROLES[message._getType()] ?? "ai", metadata };
}

const withoutEmpty = (fields: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value != null));

/** The Python client assigns events to concurrent messages by `message_id`, the JavaScript client by `run_id`. */
const eventOf = ({ id, namespace, node }: OpenMessage, data: MessageEvent["data"]): MessageEvent => ({
  namespace,
  node,
  data: { ...data, message_id: id, run_id: id },
});
