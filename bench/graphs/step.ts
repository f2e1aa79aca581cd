import { Annotation, END, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({ text: Annotation<string>(), reply: Annotation<string>() });

/** One node that does nothing to speak of: what is left is the cost of a run. */
export const graph = new StateGraph(State)
  .addNode("answer", (state) => ({ reply: `You said ${state.text}.` }))
  .addEdge(START, "answer")
  .addEdge("answer", END)
  .compile();
