import { Annotation, END, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({ text: Annotation<string>(), reply: Annotation<string>() });

/** One node with trivial work, to measure the overhead of a run. */
export const graph = new StateGraph(State)
  .addNode("answer", (state) => ({ reply: `You said ${state.text}.` }))
  .addEdge(START, "answer")
  .addEdge("answer", END)
  .compile();
