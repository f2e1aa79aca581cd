import { Annotation, StateGraph } from "@langchain/langgraph";

/** The graph of the smoke test of the packed package. */
const State = Annotation.Root({ name: Annotation<string>(), greeting: Annotation<string>() });

export const graph = new StateGraph(State)
  .addNode("greet", ({ name }) => ({ greeting: `Hello, ${name}!` }))
  .addEdge("__start__", "greet")
  .addEdge("greet", "__end__")
  .compile();
