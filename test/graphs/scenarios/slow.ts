import { existsSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { Annotation, END, interrupt, type LangGraphRunnableConfig, START, StateGraph } from "@langchain/langgraph";
import { adds, Steps } from "./chain.ts";

const Door = Annotation.Root({ ...Steps.spec, door: Annotation<string | null>() });

/** Waits until the file `door` exists, or without one until the run is aborted: tests decide when it ends. */
async function wait({ door }: typeof Door.State, { signal }: LangGraphRunnableConfig) {
  while (!door || !existsSync(door)) await pause(5, undefined, { signal });
  return { steps: ["end"] };
}

export const slow = new StateGraph(Door)
  .addNode("begin", adds("begin"))
  .addNode("wait", wait)
  .addEdge(START, "begin")
  .addEdge("begin", "wait")
  .addEdge("wait", END)
  .compile();

/** Ignores the abort signal once it has written "unabortable", and never ends. */
export const unabortable = new StateGraph(Steps)
  .addNode("begin", adds("begin"))
  .addNode("wait", (_, { writer }) => {
    writer?.("unabortable");
    return new Promise<never>(() => undefined);
  })
  .addEdge(START, "begin")
  .addEdge("begin", "wait")
  .addEdge("wait", END)
  .compile();

/** Asks, waits for its door, asks again, and waits for a second door: all its runs write on one checkpoint. */
export const slowgate = new StateGraph(Door)
  .addNode("begin", adds("begin"))
  .addNode("ask", async ({ door, steps }, config: LangGraphRunnableConfig) => {
    const first = interrupt("first?");
    await wait({ door, steps }, config);
    const second = interrupt("second?");
    await wait({ door: door && `${door}-second`, steps }, config);
    return { steps: [String(first), String(second)] };
  })
  .addEdge(START, "begin")
  .addEdge("begin", "ask")
  .addEdge("ask", END)
  .compile();

const inner = new StateGraph(Door)
  .addNode("in", adds("in"))
  .addNode("wait", wait)
  .addEdge(START, "in")
  .addEdge("in", "wait")
  .addEdge("wait", END)
  .compile();

/** Waits within a subgraph. */
export const nested = new StateGraph(Door)
  .addNode("begin", adds("begin"))
  .addNode("inner", inner)
  .addEdge(START, "begin")
  .addEdge("begin", "inner")
  .addEdge("inner", END)
  .compile();
