import type { CallbackManagerForLLMRun } from "@langchain/core/callbacks/manager";
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, AIMessageChunk, type AIMessageChunkFields, type BaseMessage } from "@langchain/core/messages";
import { ChatGenerationChunk, type ChatResult } from "@langchain/core/outputs";

/**
 * A chat model that says the same to the same conversation, also under the same message id, and streams it in
 * pieces: first it asks for a tool, once that has answered it speaks.
 */
export class ReciteModel extends BaseChatModel {
  constructor() {
    super({});
  }

  _llmType(): string {
    return "recite";
  }

  override async *_streamResponseChunks(
    messages: BaseMessage[],
    _options: this["ParsedCallOptions"],
    runManager?: CallbackManagerForLLMRun,
  ): AsyncGenerator<ChatGenerationChunk> {
    for (const fields of piecesFor(messages)) {
      const message = new AIMessageChunk(fields);
      const chunk = new ChatGenerationChunk({ message, text: message.text });
      yield chunk;
      await runManager?.handleLLMNewToken(chunk.text, undefined, undefined, undefined, undefined, { chunk });
    }
  }

  /** Called when nobody listens to the pieces. */
  async _generate(messages: BaseMessage[]): Promise<ChatResult> {
    const { id, content, tool_calls, usage_metadata } = piecesFor(messages)
      .map((fields) => new AIMessageChunk(fields))
      .reduce((whole, piece) => whole.concat(piece));
    const message = new AIMessage({ id, content, tool_calls, usage_metadata });
    return { generations: [{ message, text: message.text }] };
  }
}

function piecesFor(messages: BaseMessage[]): AIMessageChunkFields[] {
  const id = `ai-${messages.length}`;
  if (messages.at(-1)?.getType() !== "human") {
    const usage_metadata = { input_tokens: messages.length, output_tokens: 3, total_tokens: messages.length + 3 };
    return [
      { id, content: "It is " },
      { id, content: "sunny" },
      { id, content: ".", usage_metadata },
    ];
  }
  const call = { type: "tool_call_chunk", index: 0 } as const;
  return [
    { id, content: "Looking" },
    { id, content: "", tool_call_chunks: [{ ...call, name: "weather", id: "call-1", args: "" }] },
    { id, content: "", tool_call_chunks: [{ ...call, args: '{"city":' }] },
    { id, content: "", tool_call_chunks: [{ ...call, args: '"Bonn"}' }] },
  ];
}
