import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { Annotation, END, type LangGraphRunnableConfig, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({
  count: Annotation<number>(),
  every_ms: Annotation<number>(),
  /** A path: nothing is written before there is a file. */
  go: Annotation<string>(),
});

const EVENT_BYTES = 200;
const LOOK_EVERY_MS = 20;

/** The machine's steady clock, in ms: the same one in all its processes. */
const clock = () => Number(process.hrtime.bigint()) / 1e6;

/** An event of 200 bytes of JSON that says when it was written. */
function tick(index: number): object {
  const event = { at: clock(), index, pad: "" };
  return { ...event, pad: "x".repeat(EVENT_BYTES - JSON.stringify(event).length) };
}

/** One node that writes a custom event every so often, by a timetable that is not moved by delays. */
async function write(state: typeof State.State, { writer }: LangGraphRunnableConfig): Promise<typeof State.Update> {
  while (!existsSync(state.go)) await sleep(LOOK_EVERY_MS);
  const began = clock();
  for (let index = 0; index < state.count; index++) {
    const early_ms = began + index * state.every_ms - clock();
    if (early_ms > 0) await sleep(early_ms);
    writer?.(tick(index));
  }
  return {};
}

export const graph = new StateGraph(State)
  .addNode("write", write)
  .addEdge(START, "write")
  .addEdge("write", END)
  .compile();
