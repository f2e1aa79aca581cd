import { Annotation, END, type LangGraphRunnableConfig, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({
  /** Steps of this run so far; the input sets it to 0. */
  count: Annotation<number>(),
  /** Number of steps. */
  until: Annotation<number>(),
  /** Whether the run waits to be stopped after its steps. */
  wait: Annotation<boolean>(),
});

const next = ({ count, until, wait }: typeof State.State) => {
  if (count < until) return "step";
  return wait ? "waitForStop" : END;
};

/** Writes an event, then waits for its abort signal. */
function waitForStop(_: typeof State.State, { signal, writer }: LangGraphRunnableConfig): Promise<never> {
  writer?.("waiting");
  return new Promise((_, reject) => {
    if (!signal) return reject(new Error("The node has no abort signal."));
    signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
  });
}

/** A loop of steps with one checkpoint each (plus two for the input), then optionally a wait. */
export const graph = new StateGraph(State)
  .addNode("step", ({ count }) => ({ count: count + 1 }))
  .addNode("waitForStop", waitForStop)
  .addConditionalEdges(START, next, ["step", "waitForStop", END])
  .addConditionalEdges("step", next, ["step", "waitForStop", END])
  .compile();
