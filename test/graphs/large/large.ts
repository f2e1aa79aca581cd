import { Annotation, StateGraph } from "@langchain/langgraph";

/** 20 steps with a value of 5 MB: another one in each step, or the same for all of them. */

const State = Annotation.Root({
  changes: Annotation<boolean>(),
  step: Annotation<number>({ reducer: (_, step) => step, default: () => 0 }),
  value: Annotation<string>(),
});

export const large = new StateGraph(State)
  .addNode("grow", ({ changes, step }) => ({
    step: step + 1,
    ...((changes || step === 0) && { value: `${step} `.repeat(5e6).slice(0, 5e6) }),
  }))
  .addEdge("__start__", "grow")
  .addConditionalEdges("grow", ({ step }) => (step < 20 ? "grow" : "__end__"))
  .compile();
