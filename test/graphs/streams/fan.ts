import { Annotation, END, START, StateGraph } from "@langchain/langgraph";

// Two nodes in one step.

const State = Annotation.Root({
  words: Annotation<string[]>({ reducer: (before, added) => [...before, ...added], default: () => [] }),
});

export const builder = new StateGraph(State)
  .addNode("left", () => ({ words: ["left"] }))
  .addNode("right", () => ({ words: ["right"] }))
  .addNode("both", ({ words }) => ({ words: [words.join(" and ")] }))
  .addEdge(START, "left")
  .addEdge(START, "right")
  .addEdge(["left", "right"], "both")
  .addEdge("both", END);

export const graph = builder.compile();
