import { AIMessage, type BaseMessage, ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import {
  Annotation,
  END,
  type LangGraphRunnableConfig,
  MessagesAnnotation,
  START,
  StateGraph,
} from "@langchain/langgraph";
import { ToolNode } from "@langchain/langgraph/prebuilt";
import { z } from "zod";
import { ReciteModel } from "./model.ts";

// Everything that a stream can carry, and nothing that differs from one execution to the next besides the ids
// that LangGraph makes: a model that streams, a tool that reports, writers, and a subgraph with all of that.

const State = Annotation.Root({
  ...MessagesAnnotation.spec,
  // A set: the subgraph hands back what it was given, and that must not count twice.
  notes: Annotation<string[]>({ reducer: (before, added) => [...new Set([...before, ...added])], default: () => [] }),
});
type Step = (state: typeof State.State, config: LangGraphRunnableConfig) => Promise<typeof State.Update>;

const weather = tool(
  async function* ({ city }: { city: string }, { toolCallId }: { toolCallId: string }) {
    yield { asking: city };
    yield { heard: "sunny" };
    // With an id of its own: the state would give it a random one.
    return new ToolMessage({
      id: `tool-${city}`,
      tool_call_id: toolCallId,
      name: "weather",
      content: `sunny in ${city}`,
    });
  } as never,
  { name: "weather", description: "The weather of a city.", schema: z.object({ city: z.string() }) },
);

const prepare: Step = async (_state, { writer }) => {
  writer?.({ step: "prepare", done: 1 });
  writer?.("a plain text");
  return { notes: ["prepared"] };
};

const speak: Step = async ({ messages }, config) => ({ messages: [await new ReciteModel().invoke(messages, config)] });

const inspect: Step = async ({ messages }, { writer }) => {
  writer?.({ step: "inspect", messages: messages.length });
  return {
    notes: ["inspected"],
    messages: [new AIMessage({ id: "written", content: "A message that no model streamed." })],
  };
};

const asksForTool = ({ messages }: { messages: BaseMessage[] }): "tools" | "review" =>
  (messages.at(-1) as AIMessage).tool_calls?.length ? "tools" : "review";

const review = new StateGraph(State)
  .addNode("inspect", inspect)
  .addNode("comment", speak)
  .addEdge(START, "inspect")
  .addEdge("inspect", "comment")
  .addEdge("comment", END)
  .compile();

export const builder = new StateGraph(State)
  .addNode("prepare", prepare)
  .addNode("agent", speak)
  .addNode("tools", new ToolNode([weather]))
  .addNode("review", review)
  .addEdge(START, "prepare")
  .addEdge("prepare", "agent")
  .addConditionalEdges("agent", asksForTool, ["tools", "review"])
  .addEdge("tools", "agent")
  .addEdge("review", END);

export const graph = builder.compile();
