import { END, interrupt, START, StateGraph } from "@langchain/langgraph";
import { adds, Steps } from "./chain.ts";

// Two nodes: LangGraph draws a subgraph of one node as that node.
const grandchild = new StateGraph(Steps)
  .addNode("deep", adds("deep"))
  .addNode("deeper", adds("deeper"))
  .addEdge(START, "deep")
  .addEdge("deep", "deeper")
  .addEdge("deeper", END)
  .compile();

/** Asks when the input says so, so that a thread can be looked at while it is paused within the subgraph. */
const ask = ({ steps }: typeof Steps.State) =>
  steps.includes("pause") ? { steps: [`answer ${interrupt("go on?")}`] } : {};

const child = new StateGraph(Steps)
  .addNode("inner", adds("inner"))
  .addNode("ask", ask)
  .addNode("grandchild", grandchild)
  .addEdge(START, "inner")
  .addEdge("inner", "ask")
  .addEdge("ask", "grandchild")
  .addEdge("grandchild", END)
  .compile();

/** A graph with a subgraph that has a subgraph. */
export const parent = new StateGraph(Steps)
  .addNode("before", adds("before"))
  .addNode("child", child)
  .addNode("after", adds("after"))
  .addEdge(START, "before")
  .addEdge("before", "child")
  .addEdge("child", "after")
  .addEdge("after", END)
  .compile();
