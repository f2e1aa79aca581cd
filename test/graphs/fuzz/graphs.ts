import { Annotation, interrupt, StateGraph } from "@langchain/langgraph";

// Graphs that accept whatever a fuzzer puts into them: one ends, one asks, one fails.

const State = Annotation.Root({
  items: Annotation<unknown[]>({ reducer: (a, b) => a.concat(b), default: () => [] }),
  x: Annotation<unknown>(),
});

const oneNode = (run: (state: typeof State.State) => { items: unknown[] }) =>
  new StateGraph(State).addNode("node", run).addEdge("__start__", "node").addEdge("node", "__end__").compile();

export const plain = oneNode((state) => ({ items: [state.x] }));
export const asks = oneNode(() => ({ items: [interrupt("what?")] }));
export const fails = oneNode(() => {
  throw new TypeError("as intended");
});
