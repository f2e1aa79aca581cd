import { existsSync, writeFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { Annotation, END, getStore, type LangGraphRunnableConfig, START, StateGraph } from "@langchain/langgraph";

/** A method of the store with its arguments, `wait` with a file that a test creates, or `mark` with a file to create. */
type Call = ["get" | "put" | "search" | "delete" | "listNamespaces", ...unknown[]] | ["wait" | "mark", string];

const State = Annotation.Root({
  calls: Annotation<Call[]>(),
  results: Annotation<unknown[]>({ reducer: (before, added) => before.concat(added), default: () => [] }),
});

async function answer([method, ...args]: Call, store: LangGraphRunnableConfig["store"]): Promise<unknown> {
  if (method === "mark") return writeFileSync(String(args[0]), "");
  if (method !== "wait") return (store as never as Record<string, (...args: unknown[]) => unknown>)[method]?.(...args);
  while (!existsSync(String(args[0]))) await pause(5);
  return "waited";
}

/** Answers calls one after the other, by turns with the store of the config and with that of the context. */
async function call({ calls }: typeof State.State, config: LangGraphRunnableConfig) {
  const results: unknown[] = [];
  for (const [n, one] of calls.entries()) results.push(await answer(one, n % 2 ? getStore() : config.store));
  return { results };
}

const calling = new StateGraph(State).addNode("call", call).addEdge(START, "call").addEdge("call", END).compile();

export const graph = new StateGraph(State)
  .addNode("outer", call)
  .addNode("inner", calling)
  .addEdge(START, "outer")
  .addConditionalEdges("outer", ({ calls }) => (calls[0]?.[0] === "listNamespaces" ? "inner" : END))
  .addEdge("inner", END)
  .compile();

/** Writes the error of the last call to the file `${door}-error`, and ignores its abort. */
export const stubborn = new StateGraph(State)
  .addNode("call", async ({ calls }, { store }: LangGraphRunnableConfig) => {
    const [, door] = calls.find(([method]) => method === "wait") as ["wait", string];
    for (const one of calls)
      await answer(one, store).catch((error: Error) => writeFileSync(`${door}-error`, error.message));
    return { results: [] };
  })
  .addEdge(START, "call")
  .addEdge("call", END)
  .compile();
