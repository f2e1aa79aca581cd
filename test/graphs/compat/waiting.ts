import { Annotation, END, type LangGraphRunnableConfig, START, StateGraph } from "@langchain/langgraph";

// A graph that says when it has begun, and then does not end by itself.

const State = Annotation.Root({
  steps: Annotation<string[]>({ reducer: (before, added) => [...before, ...added], default: () => [] }),
});

async function wait(
  _state: typeof State.State,
  { signal, writer }: LangGraphRunnableConfig,
): Promise<typeof State.Update> {
  signal?.throwIfAborted();
  writer?.("waiting");
  await new Promise((_, reject) => signal?.addEventListener("abort", () => reject(signal.reason)));
  return { steps: ["waited"] };
}

export const graph = new StateGraph(State)
  .addNode("arrive", () => ({ steps: ["arrived"] }))
  .addNode("wait", wait)
  .addEdge(START, "arrive")
  .addEdge("arrive", "wait")
  .addEdge("wait", END)
  .compile();
