import { END, START, StateGraph } from "@langchain/langgraph";
import { registry } from "@langchain/langgraph/zod";
import { z } from "zod";

// A graph that knows its schemas, with a subgraph in a subgraph. Each node leaves its name in the trail.

const trail = z.array(z.string()).register(registry, {
  reducer: { fn: (before: string[], added: string[]) => [...new Set([...before, ...added])] },
  default: () => [],
});
const State = z.object({ topic: z.string().optional(), trail });
const Context = z.object({ tone: z.string().optional() });

const leave = (name: string) => () => ({ trail: [name] });

const deepest = new StateGraph(State)
  .addNode("dig", leave("dig"))
  .addNode("fill", leave("fill"))
  .addEdge(START, "dig")
  .addEdge("dig", "fill")
  .addEdge("fill", END)
  .compile();

const inner = new StateGraph(State)
  .addNode("look", leave("look"))
  .addNode("deepest", deepest)
  .addEdge(START, "look")
  .addEdge("look", "deepest")
  .addEdge("deepest", END)
  .compile();

export const graph = new StateGraph(State, Context)
  .addNode("begin", leave("begin"))
  .addNode("inner", inner)
  .addNode("finish", (_state, { context }) => ({ trail: [`finish ${context?.tone ?? "plainly"}`] }))
  .addEdge(START, "begin")
  .addEdge("begin", "inner")
  .addEdge("inner", "finish")
  .addEdge("finish", END)
  .compile();
