import { Annotation, END, type LangGraphRunnableConfig, START, StateGraph } from "@langchain/langgraph";

/** A list that every node adds to: the order of its items tells what ran, and on which state. */
export const Steps = Annotation.Root({
  steps: Annotation<string[]>({ reducer: (before, added) => before.concat(added), default: () => [] }),
});

export const adds = (name: string) => (_: typeof Steps.State, config: LangGraphRunnableConfig) => {
  config.writer?.({ at: name });
  return { steps: [name] };
};

/** a, b and c, one after the other: five checkpoints with the input's and the start's. */
export const chain = new StateGraph(Steps)
  .addNode("a", adds("a"))
  .addNode("b", adds("b"))
  .addNode("c", adds("c"))
  .addEdge(START, "a")
  .addEdge("a", "b")
  .addEdge("b", "c")
  .addEdge("c", END)
  .compile();

/** Turns round until `steps` has twelve items; with a low recursion limit it never gets there. */
export const loop = new StateGraph(Steps)
  .addNode("turn", adds("turn"))
  .addEdge(START, "turn")
  .addConditionalEdges("turn", ({ steps }) => (steps.length < 12 ? "turn" : END), ["turn", END])
  .compile();
