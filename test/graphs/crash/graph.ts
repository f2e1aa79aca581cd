import { Annotation, StateGraph } from "@langchain/langgraph";

/**
 * Three steps that write down their names. When the server was started to die in a step, one of them takes the
 * whole process with it: a worker thread has the process id of its process.
 */

const State = Annotation.Root({
  n: Annotation<number>(),
  items: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }),
});

let left = process.env.FAILPOINT === "in-step" ? Number(process.env.FAIL_AFTER) : Number.POSITIVE_INFINITY;

const step = (name: string) => async (state: typeof State.State) => {
  if (--left <= 0) process.kill(process.pid, "SIGKILL");
  await new Promise((resolve) => setTimeout(resolve, 5));
  return { items: [`${name}${state.n}`] };
};

export const ledger = new StateGraph(State)
  .addNode("a", step("a"))
  .addNode("b", step("b"))
  .addNode("c", step("c"))
  .addEdge("__start__", "a")
  .addEdge("a", "b")
  .addEdge("b", "c")
  .addEdge("c", "__end__")
  .compile();
