import { existsSync, writeFileSync } from "node:fs";
import { AIMessage, AIMessageChunk } from "@langchain/core/messages";
import { ChatGenerationChunk } from "@langchain/core/outputs";
import {
  Annotation,
  END,
  interrupt,
  type LangGraphRunnableConfig,
  MessagesAnnotation,
  Send,
  START,
  StateGraph,
} from "@langchain/langgraph";
import { ReciteModel } from "../streams/model.ts";

const list = () => Annotation<string[]>({ reducer: (before, added) => [...before, ...added], default: () => [] });

const Frontend = Annotation.Root({
  ...MessagesAnnotation.spec,
  topic: Annotation<string>(),
  /** Grows with each value that is written. */
  notes: list(),
  tools: Annotation<{ name: string }[]>(),
  copilotkit: Annotation<{ actions: unknown[]; context: unknown[] }>(),
  "ag-ui": Annotation<unknown>(),
});

/** Calls the client's first tool, and answers when the result is there. */
export const frontend = new StateGraph(Frontend)
  .addNode("answer", ({ messages, tools, topic }) => {
    const last = messages.at(-1);
    const [tool] = tools ?? [];
    const call = { type: "tool_call" as const, id: "front-1", name: tool?.name ?? "", args: { topic } };
    const isCall = tool && last?.getType() === "human";
    const id = `answer-${messages.length}`;
    if (isCall) return { messages: [new AIMessage({ id, content: "", tool_calls: [call] })], notes: ["called"] };
    return { messages: [new AIMessage({ id, content: `You said: ${last?.content}` })], notes: ["answered"] };
  })
  .addEdge(START, "answer")
  .addEdge("answer", END)
  .compile();

const Words = Annotation.Root({ words: list() });

/** Two tasks of one node at the same time. */
export const workers = new StateGraph(Words)
  .addNode("work", ({ words }) => ({ words }))
  .addConditionalEdges(START, () => [new Send("work", { words: ["a"] }), new Send("work", { words: ["b"] })])
  .addEdge("work", END)
  .compile();

class ThinkingModel extends ReciteModel {
  override async *_streamResponseChunks(
    ...[, , runManager]: Parameters<ReciteModel["_streamResponseChunks"]>
  ): AsyncGenerator<ChatGenerationChunk> {
    const contents = [
      [{ type: "thinking", thinking: "Let me " }],
      [{ type: "thinking", thinking: "see." }],
      [{ type: "text", text: "Yes" }],
      [{ type: "text", text: "." }],
    ];
    for (const content of contents) {
      const message = new AIMessageChunk({ id: "thought-1", content: content as never });
      const chunk = new ChatGenerationChunk({ message, text: message.text });
      yield chunk;
      await runManager?.handleLLMNewToken(chunk.text, undefined, undefined, undefined, undefined, { chunk });
    }
  }
}

export const thinks = new StateGraph(MessagesAnnotation)
  .addNode("think", async ({ messages }, config) => ({
    messages: [await new ThinkingModel().invoke(messages, config)],
  }))
  .addEdge(START, "think")
  .addEdge("think", END)
  .compile();

const rules = {
  "emit-messages": false,
  predict_state: [{ state_key: "city", tool: "weather", tool_argument: "city" }],
};

/** A model whose text is not for the client, but its tool call is. */
export const silent = new StateGraph(MessagesAnnotation)
  .addNode("answer", async ({ messages }, config: LangGraphRunnableConfig) => {
    const metadata = { ...config.metadata, ...rules };
    return { messages: [await new ReciteModel().invoke(messages, { ...config, metadata })] };
  })
  .addEdge(START, "answer")
  .addEdge("answer", END)
  .compile();

/** Two questions at the same time. */
export const two = new StateGraph(Words)
  .addNode("left", () => ({ words: [String(JSON.stringify(interrupt({ message: "Left?", reason: "side" })))] }))
  .addNode("right", () => ({ words: [String(JSON.stringify(interrupt("Right?")))] }))
  .addEdge(START, "left")
  .addEdge(START, "right")
  .addEdge("left", END)
  .addEdge("right", END)
  .compile();

export const breaks = new StateGraph(Words)
  .addNode("first", () => ({ words: ["first"] }))
  .addNode("second", () => ({ words: ["second"] }))
  .addEdge(START, "first")
  .addEdge("first", "second")
  .addEdge("second", END)
  .compile({ interruptBefore: ["second"] });

/** Takes its graph host with it the first time, when the door is open. */
export const dying = new StateGraph(Annotation.Root({ ...MessagesAnnotation.spec, door: Annotation<string>() }))
  .addNode("answer", async ({ messages, door }, config: LangGraphRunnableConfig) => {
    const answer = await new ReciteModel().invoke(messages, config);
    config.writer?.("waiting");
    while (!existsSync(door)) await new Promise((resolve) => setTimeout(resolve, 10));
    if (!existsSync(`${door}-died`)) {
      writeFileSync(`${door}-died`, "");
      process.exit(1);
    }
    return { messages: [answer] };
  })
  .addEdge(START, "answer")
  .addEdge("answer", END)
  .compile();
