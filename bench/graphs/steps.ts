import { Annotation, END, type LangGraphRunnableConfig, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({
  /** Steps taken by this run; the input sets it to 0. */
  count: Annotation<number>(),
  /** Steps to take. */
  until: Annotation<number>(),
  /** Whether the run then waits until it is stopped. */
  wait: Annotation<boolean>(),
});

const next = ({ count, until, wait }: typeof State.State) => {
  if (count < until) return "step";
  return wait ? "waitForStop" : END;
};

/** Says that it is there, then waits for its signal and for nothing else. */
function waitForStop(_: typeof State.State, { signal, writer }: LangGraphRunnableConfig): Promise<never> {
  writer?.("waiting");
  return new Promise((_, reject) => {
    if (!signal) return reject(new Error("There is no signal to wait for."));
    signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
  });
}

/** A loop of steps, each with a checkpoint of its own (and two for the input before them), and then perhaps a wait. */
export const graph = new StateGraph(State)
  .addNode("step", ({ count }) => ({ count: count + 1 }))
  .addNode("waitForStop", waitForStop)
  .addConditionalEdges(START, next, ["step", "waitForStop", END])
  .addConditionalEdges("step", next, ["step", "waitForStop", END])
  .compile();
