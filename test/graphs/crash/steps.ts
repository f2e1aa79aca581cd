import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { Annotation, interrupt, StateGraph } from "@langchain/langgraph";

/** Three steps that write their names into a file as they begin; one of them takes the process with it the first time. */

const State = Annotation.Root({
  /** Path of the file. */
  log: Annotation<string>(),
  dies_in: Annotation<string>(),
  done: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }),
});

const step = (name: string) => (state: typeof State.State) => {
  const isFirst = !existsSync(state.log) || !readFileSync(state.log, "utf8").includes(name);
  appendFileSync(state.log, name);
  if (isFirst && state.dies_in === name) process.kill(process.pid, "SIGKILL");
  return { done: [name] };
};

export const steps = new StateGraph(State)
  .addNode("a", step("a"))
  .addNode("b", step("b"))
  .addNode("c", step("c"))
  .addEdge("__start__", "a")
  .addEdge("a", "b")
  .addEdge("b", "c")
  .addEdge("c", "__end__")
  .compile();

/** Asks twice in one node; between the two it waits until its log is there: until what it was answered is stored. */
export const asks = new StateGraph(State)
  .addNode("ask", async ({ log }) => {
    const first = interrupt("first?");
    while (!existsSync(log)) await pause(5);
    return { done: [String(first), String(interrupt("second?"))] };
  })
  .addEdge("__start__", "ask")
  .addEdge("ask", "__end__")
  .compile();
