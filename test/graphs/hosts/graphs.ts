import { isMainThread } from "node:worker_threads";
import { Annotation, type LangGraphRunnableConfig, StateGraph } from "@langchain/langgraph";

// Graphs that misbehave in all the ways in which a host must hold out, and one that behaves.

const State = Annotation.Root({
  items: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }),
  ms: Annotation<number>(),
});

type Node = (state: typeof State.State, config: LangGraphRunnableConfig) => Promise<{ items: string[] }>;

const oneNode = (run: Node) =>
  new StateGraph(State).addNode("node", run).addEdge("__start__", "node").addEdge("node", "__end__").compile();

const pause = (ms: number, signal?: AbortSignal) =>
  new Promise<void>((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });

/** Three steps of `ms` each; every step says when it begins. */
export const steps = (() => {
  const step =
    (name: string): Node =>
    async (state, config) => {
      config.writer?.({ step: name });
      await pause(state.ms ?? 0, config.signal);
      return { items: [name] };
    };
  return new StateGraph(State)
    .addNode("a", step("a"))
    .addNode("b", step("b"))
    .addNode("c", step("c"))
    .addEdge("__start__", "a")
    .addEdge("a", "b")
    .addEdge("b", "c")
    .addEdge("c", "__end__")
    .compile();
})();

/** Says that it begins, then holds its thread for `ms` without giving anything else a turn. */
export const blocks = oneNode(async (state, config) => {
  config.writer?.({ blocking: true });
  // Three turns of the event loop let the event out, and are too short for a new run to get in.
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
  const end = Date.now() + state.ms;
  while (Date.now() < end);
  return { items: ["blocked"] };
});

export const exits = oneNode(async (state) => {
  await pause(state.ms ?? 0);
  process.exit(7);
});

/** Throws an error that nobody catches. */
export const throws = oneNode(async () => {
  setImmediate(() => {
    throw new TypeError("nobody catches this");
  });
  return pause(60_000) as never;
});

/** Throws null, which nobody catches. */
export const throwsNull = oneNode(async () => {
  setImmediate(() => {
    throw null;
  });
  return pause(60_000) as never;
});

/** Loses a promise that is rejected. */
export const loses = oneNode(async () => {
  void Promise.reject(new TypeError("lost"));
  await pause(50);
  return { items: ["kept"] };
});

/** Ends its thread; says which process it has for itself, and holds it for `ms`. */
export const leaves = oneNode(async ({ ms = 0 }, config) => {
  if (!isMainThread) process.exit(7);
  config.writer?.({ pid: process.pid });
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
  return { items: [String(process.pid)] };
});

export const eats = oneNode(async () => {
  const kept: number[][] = [];
  for (;;) kept.push(new Array(1_000_000).fill(Math.random()));
});

/** Ignores the abort signal. */
export const unabortable = oneNode(async (state, config) => {
  config.writer?.({ started: true });
  await pause(state.ms);
  return { items: ["late"] };
});

/** Waits for its signal. */
export const waits = oneNode(async (state, config) => {
  config.writer?.({ started: true });
  await pause(state.ms ?? 600_000, config.signal);
  return { items: ["done"] };
});
