import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Annotation, interrupt, type LangGraphRunnableConfig, StateGraph } from "@langchain/langgraph";

// One graph for all kinds of runs of the model test, so that any of them can go on where another has stopped. Every node
// adds `<token>:<node>` to the items: they tell which runs have done what, how often, and in which order.

const Own = {
  items: Annotation<string[]>({ reducer: (before, added) => before.concat(added), default: () => [] }),
  /** The run whose input it was, or who gave the last answer. */
  token: Annotation<string>(),
  kind: Annotation<string>(),
  /** A folder. A file with the name of a token opens the door of that run, the file `all` opens every door. */
  doors: Annotation<string>(),
};
const State = Annotation.Root(Own);
type State = typeof State.State;

const adds =
  (name: string) =>
  ({ token }: State) => ({ items: [`${token}:${name}`] });

/** The test decides when a run goes on. */
async function door({ doors }: State, token: string, signal?: AbortSignal): Promise<void> {
  const files = [join(doors, token), join(doors, "all")];
  while (!files.some((file) => existsSync(file))) await pause(5, undefined, { signal });
}

const waits =
  (name: string, { unabortable = false } = {}) =>
  async (state: State, { signal }: LangGraphRunnableConfig) => {
    await door(state, state.token, unabortable ? undefined : signal);
    return { items: [`${state.token}:${name}`] };
  };

/** Two questions in one node, each followed by a door: several runs write on the same checkpoint. */
async function ask(state: State, { signal }: LangGraphRunnableConfig) {
  const first: string = interrupt("first?");
  await door(state, first, signal);
  const second: string = interrupt("second?");
  await door(state, second, signal);
  return { items: [`${first}:q1`, `${second}:q2`], token: second };
}

function boom(): never {
  throw new TypeError("boom");
}

// It starts without items of its own, so that it hands its parent the new ones alone.
const Given = Annotation.Root({ token: Own.token, kind: Own.kind, doors: Own.doors });
const Made = Annotation.Root({ items: Own.items });
const child = new StateGraph({ stateSchema: State, input: Given, output: Made })
  .addNode("x", adds("x"))
  .addNode("y", waits("y"))
  .addEdge("__start__", "x")
  .addEdge("x", "y")
  .addEdge("y", "__end__")
  .compile();

/** The first node of each kind of run. */
const FIRST = {
  chain: "a",
  slow: "begin",
  unabortable: "listen",
  nested: "enter",
  gate: "open",
  fails: "try",
} as const;

export const graph = new StateGraph(State)
  .addNode("a", adds("a"))
  .addNode("b", adds("b"))
  .addNode("c", adds("c"))
  .addNode("begin", adds("begin"))
  .addNode("wait", waits("wait"))
  .addNode("listen", adds("listen"))
  .addNode("unabortable", waits("unabortable", { unabortable: true }))
  .addNode("enter", adds("enter"))
  .addNode("child", child)
  .addNode("leave", adds("leave"))
  .addNode("open", adds("open"))
  .addNode("ask", ask)
  .addNode("close", adds("close"))
  .addNode("try", adds("try"))
  .addNode("boom", boom)
  .addConditionalEdges("__start__", ({ kind }) => FIRST[kind as keyof typeof FIRST], Object.values(FIRST))
  .addEdge("a", "b")
  .addEdge("b", "c")
  .addEdge("begin", "wait")
  .addEdge("listen", "unabortable")
  .addEdge("enter", "child")
  .addEdge("child", "leave")
  .addEdge("open", "ask")
  .addEdge("ask", "close")
  .addEdge("try", "boom")
  .compile();
