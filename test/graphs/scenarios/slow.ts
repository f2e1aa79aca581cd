import { existsSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { Annotation, END, type LangGraphRunnableConfig, START, StateGraph } from "@langchain/langgraph";
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

/** Never ends and does not hear the signal. */
export const deaf = new StateGraph(Steps)
  .addNode("begin", adds("begin"))
  .addNode("wait", () => new Promise<never>(() => undefined))
  .addEdge(START, "begin")
  .addEdge("begin", "wait")
  .addEdge("wait", END)
  .compile();
