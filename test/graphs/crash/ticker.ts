import { setTimeout as pause } from "node:timers/promises";
import { Annotation, type LangGraphRunnableConfig, StateGraph } from "@langchain/langgraph";

/** Five steps that tell something twenty times each, with time in between for a kill to fall into. */

const State = Annotation.Root({
  n: Annotation<number>(),
  items: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }),
});

const step = (name: string) => async (state: typeof State.State, config: LangGraphRunnableConfig) => {
  for (let i = 0; i < 20; i++) {
    config.writer?.({ n: state.n, step: name, i });
    await pause(1, undefined, { signal: config.signal });
  }
  return { items: [`${name}${state.n}`] };
};

export const ticker = new StateGraph(State)
  .addNode("a", step("a"))
  .addNode("b", step("b"))
  .addNode("c", step("c"))
  .addNode("d", step("d"))
  .addNode("e", step("e"))
  .addEdge("__start__", "a")
  .addEdge("a", "b")
  .addEdge("b", "c")
  .addEdge("c", "d")
  .addEdge("d", "e")
  .addEdge("e", "__end__")
  .compile();
