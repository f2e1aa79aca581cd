import { Annotation, END, type LangGraphRunnableConfig, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({ lengths: Annotation<number[]>() });

/** One node that writes custom events in one go, each with a text of so many characters. */
export const flood = new StateGraph(State)
  .addNode("write", ({ lengths }: typeof State.State, { writer }: LangGraphRunnableConfig) => {
    for (const [index, length] of lengths.entries()) writer?.({ index, text: "x".repeat(length) });
    return {};
  })
  .addEdge(START, "write")
  .addEdge("write", END)
  .compile();
