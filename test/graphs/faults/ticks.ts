import { appendFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { Annotation, type LangGraphRunnableConfig, StateGraph } from "@langchain/langgraph";
import { STEPS } from "../../faults/history.ts";

/** Short steps, each of which notes in the history when and in which process it begins. */

const State = Annotation.Root({
  history: Annotation<string>(),
  // The input of a run is empty, which removes the steps of the run before it.
  steps: Annotation<number[]>({ reducer: (a, b) => (b.length === 0 ? [] : a.concat(b)), default: () => [] }),
});

export const ticks = new StateGraph(State)
  .addNode("tick", async ({ history, steps }, { configurable, signal }: LangGraphRunnableConfig) => {
    const step = steps.length;
    const entry = { t: Date.now(), kind: "step", run_id: configurable?.run_id, step, pid: process.pid };
    appendFileSync(history, `${JSON.stringify(entry)}\n`);
    await pause(150, undefined, { signal });
    return { steps: [step] };
  })
  .addEdge("__start__", "tick")
  .addConditionalEdges("tick", ({ steps }) => (steps.length < STEPS ? "tick" : "__end__"))
  .compile();
