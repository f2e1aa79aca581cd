import { Annotation, END, interrupt, START, StateGraph } from "@langchain/langgraph";

// A graph that asks, in a subgraph, and keeps the answer as it comes.

const State = Annotation.Root({ question: Annotation<string>(), answer: Annotation<unknown>() });

const desk = new StateGraph(State)
  .addNode("ask", ({ question }) => ({ answer: interrupt(question) }))
  .addEdge(START, "ask")
  .addEdge("ask", END)
  .compile();

export const graph = new StateGraph(State).addNode("desk", desk).addEdge(START, "desk").addEdge("desk", END).compile();
