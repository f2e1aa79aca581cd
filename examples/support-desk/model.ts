import { randomUUID } from "node:crypto";
import type { CallbackManagerForLLMRun } from "@langchain/core/callbacks/manager";
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, AIMessageChunk, type AIMessageChunkFields, type BaseMessage } from "@langchain/core/messages";
import { ChatGenerationChunk, type ChatResult } from "@langchain/core/outputs";
import { pause } from "../shared/pause.ts";
import { nextReply } from "./rules.ts";

/**
 * A chat model without a network: it follows rules.ts, and streams its answer
 * token by token the way a hosted model does.
 */
export class ScriptedChatModel extends BaseChatModel {
  readonly tokenDelay: number;

  constructor(tokenDelay: number) {
    super({});
    this.tokenDelay = tokenDelay;
  }

  _llmType(): string {
    return "scripted";
  }

  override async *_streamResponseChunks(
    messages: BaseMessage[],
    options: this["ParsedCallOptions"],
    runManager?: CallbackManagerForLLMRun,
  ): AsyncGenerator<ChatGenerationChunk> {
    // Every chunk carries the same id: readers join chunks into messages by it.
    const id = `msg-${randomUUID()}`;
    for (const fields of answerParts(messages)) {
      await pause(this.tokenDelay, options.signal);
      const message = new AIMessageChunk({ id, ...fields });
      const chunk = new ChatGenerationChunk({ message, text: message.text });
      yield chunk;
      // This is what reaches the `messages` stream while the model still speaks.
      await runManager?.handleLLMNewToken(chunk.text, undefined, undefined, undefined, undefined, { chunk });
    }
  }

  /** Called when nobody listens to tokens: the same answer in one piece. */
  async _generate(
    messages: BaseMessage[],
    options: this["ParsedCallOptions"],
    runManager?: CallbackManagerForLLMRun,
  ): Promise<ChatResult> {
    let whole: AIMessageChunk | undefined;
    for await (const { message } of this._streamResponseChunks(messages, options, runManager)) {
      const chunk = message as AIMessageChunk;
      whole = whole ? whole.concat(chunk) : chunk;
    }
    if (!whole) throw new Error("The scripted model had nothing to say.");
    const { id, content, tool_calls, usage_metadata } = whole;
    const message = new AIMessage({ id, content, tool_calls, usage_metadata });
    return { generations: [{ message, text: message.text }] };
  }
}

/** One reply as the parts of a stream: text, then the tool call, then the token count. */
function* answerParts(messages: BaseMessage[]): Generator<AIMessageChunkFields> {
  const { text, toolCall } = nextReply(messages);
  const words = splitWords(text);
  for (const word of words) yield { content: word };

  if (toolCall) {
    // As hosted models do: the first part names the call, the next ones bring its JSON.
    // The call id is new each time, because results are matched to calls by it.
    const start = { name: toolCall.name, id: `call_${randomUUID()}`, args: "" };
    const rest = JSON.stringify(toolCall.args).match(/.{1,8}/gs) ?? [];
    for (const part of [start, ...rest.map((args) => ({ args }))]) {
      yield { content: "", tool_call_chunks: [{ type: "tool_call_chunk", index: 0, ...part }] };
    }
  }

  // A word counts as a token here.
  const input = messages.reduce((sum, message) => sum + splitWords(message.text).length, 0);
  const output = words.length;
  yield {
    content: "",
    usage_metadata: { input_tokens: input, output_tokens: output, total_tokens: input + output },
  };
}

function splitWords(text: string): string[] {
  return text.match(/\S+\s*/g) ?? [];
}
