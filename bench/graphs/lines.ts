import { Annotation, END, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({
  text: Annotation<string>(),
  lines: Annotation<string[]>({ reducer: (before, added) => before.concat(added), default: () => [] }),
});

/** One node that adds a short string to a list on each run. */
export const graph = new StateGraph(State)
  .addNode("append", (state) => ({ lines: [state.text] }))
  .addEdge(START, "append")
  .addEdge("append", END)
  .compile();
