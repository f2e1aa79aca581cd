import { type AGUIEvent, EventType, type TokenUsage, tokenUsageFromLangChainMetadata } from "@ag-ui/core";
import { isObject, type JsonObject } from "../../../platform/lib/json/json.ts";
import { callsOf, type GraphMessage, reasoningId, reasoningOf, textOf } from "./messages.ts";

/** A message whose tokens are being sent. */
interface OpenMessage {
  /** Task that creates the message: `langgraph_checkpoint_ns`. */
  task: string;
  has_text: boolean;
  has_reasoning: boolean;
  /** IDs of the tool calls, by their index in the message. */
  calls: Map<unknown, string>;
}

/** Converts streamed messages to events of texts, reasoning and tool calls. Each that is open must be closed before the run ends. */
export class MessageEvents {
  readonly #emit: (event: AGUIEvent) => void;
  readonly #open = new Map<string, OpenMessage>();
  /** IDs of the messages that were sent. */
  readonly #sent = new Set<string>();
  /** Tokens of each call of a model. */
  readonly usage: TokenUsage[] = [];

  constructor(emit: (event: AGUIEvent) => void) {
    this.#emit = emit;
  }

  take(message: GraphMessage, metadata: JsonObject): void {
    const { id, type } = message;
    if (!id) return;
    if (type === "tool") this.#takeToolResult(id, message);
    else if (type === "ai" || type === "AIMessageChunk") this.#takeAiMessage(id, message, metadata);
  }

  #takeAiMessage(id: string, message: GraphMessage, metadata: JsonObject): void {
    const isChunk = Array.isArray(message.tool_call_chunks);
    // A node returns messages that its model has already sent token by token.
    if (isChunk || !this.#sent.has(id)) this.#takeContent(id, message, metadata);
    this.#sent.add(id);
    if (!isChunk) this.#close(id);
  }

  #takeToolResult(messageId: string, { tool_call_id, content }: GraphMessage): void {
    const toolCallId = String(tool_call_id);
    // A node may call the model and the tool.
    for (const [id, { calls }] of this.#open) if ([...calls.values()].includes(toolCallId)) this.#close(id);
    const result = { messageId, toolCallId, content: textOf(content), role: "tool" as const };
    this.#emit({ type: EventType.TOOL_CALL_RESULT, ...result });
  }

  #takeContent(id: string, message: GraphMessage, metadata: JsonObject): void {
    this.#addUsage(message, metadata);
    const open = this.#messageOf(id, metadata);
    const reasoning = reasoningOf(message.content);
    if (reasoning !== "") this.#takeReasoning(id, open, reasoning);
    if (isSent(metadata, "emit-messages")) this.#takeText(id, open, textOf(message.content));
    this.#takeCalls(id, open, message, metadata);
  }

  #messageOf(id: string, { langgraph_checkpoint_ns }: JsonObject): OpenMessage {
    const known = this.#open.get(id);
    if (known) return known;
    const task = String(langgraph_checkpoint_ns ?? "");
    const open = { task, has_text: false, has_reasoning: false, calls: new Map() };
    this.#open.set(id, open);
    return open;
  }

  #takeReasoning(id: string, open: OpenMessage, delta: string): void {
    const messageId = reasoningId(id);
    if (!open.has_reasoning) {
      this.#emit({ type: EventType.REASONING_START, messageId });
      this.#emit({ type: EventType.REASONING_MESSAGE_START, messageId, role: "reasoning" });
    }
    open.has_reasoning = true;
    this.#emit({ type: EventType.REASONING_MESSAGE_CONTENT, messageId, delta });
  }

  #takeText(messageId: string, open: OpenMessage, delta: string): void {
    if (delta === "") return;
    this.#closeReasoning(messageId, open);
    if (!open.has_text) this.#emit({ type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" });
    open.has_text = true;
    this.#emit({ type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta });
  }

  #isOpenCall(toolCallId: string): boolean {
    return [...this.#open.values()].some(({ calls }) => [...calls.values()].includes(toolCallId));
  }

  #takeCalls(parentMessageId: string, open: OpenMessage, message: GraphMessage, metadata: JsonObject): void {
    for (const { index, id, name, args } of callsOf(message)) {
      const isNew = typeof id === "string" && typeof name === "string" && !open.calls.has(index);
      // A node may return a copy of a message that is still being streamed.
      if (isNew && !this.#isOpenCall(id) && isSent(metadata, "emit-tool-calls", name)) {
        this.#closeReasoning(parentMessageId, open);
        open.calls.set(index, id);
        this.#predictState(name, metadata);
        this.#emit({ type: EventType.TOOL_CALL_START, toolCallId: id, toolCallName: name, parentMessageId });
      }
      const toolCallId = open.calls.get(index);
      if (toolCallId !== undefined && typeof args === "string" && args !== "")
        this.#emit({ type: EventType.TOOL_CALL_ARGS, toolCallId, delta: args });
    }
  }

  /** CopilotKit shows the arguments of these tool calls as the state, before the tool is executed. */
  #predictState(tool: string, metadata: JsonObject): void {
    const value = metadata["copilotkit:emit-intermediate-state"] ?? metadata.predict_state;
    if (Array.isArray(value) && value.some((entry) => isObject(entry) && entry.tool === tool))
      this.#emit({ type: EventType.CUSTOM, name: "PredictState", value });
  }

  #addUsage({ usage_metadata }: GraphMessage, { ls_provider, ls_model_name }: JsonObject): void {
    const provider = typeof ls_provider === "string" ? ls_provider : undefined;
    const model = typeof ls_model_name === "string" ? ls_model_name : undefined;
    const usage = tokenUsageFromLangChainMetadata(usage_metadata, { provider, model });
    if (usage) this.usage.push(usage);
  }

  #closeReasoning(id: string, open: OpenMessage): void {
    if (!open.has_reasoning) return;
    open.has_reasoning = false;
    this.#emit({ type: EventType.REASONING_MESSAGE_END, messageId: reasoningId(id) });
    this.#emit({ type: EventType.REASONING_END, messageId: reasoningId(id) });
  }

  #close(id: string): void {
    const open = this.#open.get(id);
    if (!open) return;
    this.#open.delete(id);
    this.#closeReasoning(id, open);
    if (open.has_text) this.#emit({ type: EventType.TEXT_MESSAGE_END, messageId: id });
    for (const toolCallId of open.calls.values()) this.#emit({ type: EventType.TOOL_CALL_END, toolCallId });
  }

  /** Closes the messages of a task and of the tasks below it. The empty text is the root of all tasks. */
  closeTask(task: string): void {
    for (const [id, open] of this.#open)
      if (task === "" || open.task === task || open.task.startsWith(`${task}|`)) this.#close(id);
  }

  /** Closes all messages. Those that the next attempt of the run sends again are new. */
  reset(): void {
    this.closeTask("");
    this.#sent.clear();
  }
}

/** Whether the metadata of a model call permits sending its text or a tool call. The rule is a boolean, or names of tools. */
function isSent(metadata: JsonObject, name: "emit-messages" | "emit-tool-calls", tool?: string): boolean {
  const rule = metadata[`copilotkit:${name}`] ?? metadata[name] ?? true;
  return typeof rule === "boolean" ? rule : tool !== undefined && [rule].flat().includes(tool);
}
