import { randomUUID } from "node:crypto";
import type { CallbackManagerForLLMRun } from "@langchain/core/callbacks/manager";
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, AIMessageChunk, type AIMessageChunkFields, type BaseMessage } from "@langchain/core/messages";
import { ChatGenerationChunk, type ChatResult } from "@langchain/core/outputs";
import { pause } from "../shared/pause.ts";
import { nextReply } from "./rules.ts";

/**
 * A chat model without a network. It applies the rules in rules.ts and streams
 * its answer token by token, as a hosted model does.
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
    // All chunks have the same ID, by which clients join them into a message.
    const id = `msg-${randomUUID()}`;
    for (const fields of answerParts(messages)) {
      await pause(this.tokenDelay, options.signal);
      const message = new AIMessageChunk({ id, ...fields });
      const chunk = new ChatGenerationChunk({ message, text: message.text });
      yield chunk;
      // The callback sends the chunk to the `messages` stream.
      await runManager?.handleLLMNewToken(chunk.text, undefined, undefined, undefined, undefined, { chunk });
    }
  }

  /** Called without streaming: returns the same answer in one message. */
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
    if (!whole) throw new Error("The scripted model returned no answer.");
    const { id, content, tool_calls, usage_metadata } = whole;
    const message = new AIMessage({ id, content, tool_calls, usage_metadata });
    return { generations: [{ message, text: message.text }] };
  }
}

/** The parts of a streamed reply: text, tool call, token count. */
function* answerParts(messages: BaseMessage[]): Generator<AIMessageChunkFields> {
  const { text, toolCall } = nextReply(messages);
  const words = splitWords(text);
  for (const word of words) yield { content: word };

  if (toolCall) {
    // As with hosted models, the first part has the name of the call, the next ones its JSON.
    // The ID of the call is unique, because results are matched to calls by it.
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
