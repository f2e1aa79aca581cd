import { appendFileSync, existsSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { Annotation, interrupt, type LangGraphRunnableConfig, StateGraph } from "@langchain/langgraph";

/** Three steps that tell in which process they are. Each begins when its gate is there, and notes in a log when it begins and ends. */

const State = Annotation.Root({
  /** Paths of files by step: it waits for this one. */
  gates: Annotation<Record<string, string>>(),
  log: Annotation<string | undefined>(),
  /** The step that ends its process. */
  ends: Annotation<string | undefined>(),
  /** Whether its steps ignore the abort signal. */
  ignores_abort: Annotation<boolean | undefined>(),
  pids: Annotation<number[]>({ reducer: (a, b) => a.concat(b), default: () => [] }),
});

const step = (name: string) => async (state: typeof State.State, config: LangGraphRunnableConfig) => {
  const { gates = {}, log } = state;
  const note = (what: string) => log && appendFileSync(log, `${what} ${config.configurable?.run_id}\n`);
  note("begins");
  for (let i = 0; i < 5; i++) config.writer?.({ step: name, i, pid: process.pid });
  const gate = gates[name];
  if (state.ends === name) process.kill(process.pid, "SIGKILL");
  const signal = state.ignores_abort ? undefined : config.signal;
  while (gate && !existsSync(gate)) await pause(5, undefined, { signal });
  note("ends");
  return { pids: [process.pid] };
};

export const steps = new StateGraph(State)
  .addNode("a", step("a"))
  .addNode("b", step("b"))
  .addNode("c", step("c"))
  .addEdge("__start__", "a")
  .addEdge("a", "b")
  .addEdge("b", "c")
  .addEdge("c", "__end__")
  .compile();

/** Asks in two branches at the same time. Each waits for its gate after its answer. */
const Answers = Annotation.Root({
  ...State.spec,
  answers: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }),
});

const asking = (name: string) => async (state: typeof Answers.State, config: LangGraphRunnableConfig) => {
  const answer = interrupt(name);
  config.writer?.({ step: name, answer });
  const gate = state.gates?.[name];
  while (gate && !existsSync(gate)) await pause(5, undefined, { signal: config.signal });
  return { answers: [answer] };
};

export const asks = new StateGraph(Answers)
  .addNode("left", asking("left"))
  .addNode("right", asking("right"))
  .addEdge("__start__", "left")
  .addEdge("__start__", "right")
  .compile();
