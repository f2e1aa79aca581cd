import { setImmediate } from "node:timers/promises";
import { Annotation, END, type LangGraphRunnableConfig, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({
  count: Annotation<number>(),
  /** Whether the node yields to the event loop after each event, as with the tokens of a model. */
  in_turns: Annotation<boolean>(),
});

/** One node that writes `count` custom events of about 50 bytes each. */
async function write(state: typeof State.State, config: LangGraphRunnableConfig): Promise<typeof State.Update> {
  for (let index = 0; index < state.count; index++) {
    config.writer?.({ index, text: "a token or two of an answer" });
    if (state.in_turns) await setImmediate();
  }
  return {};
}

export const graph = new StateGraph(State)
  .addNode("write", write)
  .addEdge(START, "write")
  .addEdge("write", END)
  .compile();
