import { Annotation, END, interrupt, START, StateGraph } from "@langchain/langgraph";

// A graph that stops for two answers, one at the root and one in a subgraph.

const State = Annotation.Root({
  answers: Annotation<string[]>({ reducer: (before, added) => [...new Set([...before, ...added])], default: () => [] }),
});

const ask = (question: string) => () => ({ answers: [String(interrupt({ question }))] });

const deeper = new StateGraph(State)
  .addNode("ask_size", ask("Which size?"))
  .addEdge(START, "ask_size")
  .addEdge("ask_size", END)
  .compile();

export const builder = new StateGraph(State)
  .addNode("greet", () => ({ answers: ["hello"] }))
  .addNode("ask_name", ask("Which name?"))
  .addNode("deeper", deeper)
  .addEdge(START, "greet")
  .addEdge("greet", "ask_name")
  .addEdge("ask_name", "deeper")
  .addEdge("deeper", END);

export const graph = builder.compile();
