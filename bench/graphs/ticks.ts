import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { Annotation, END, type LangGraphRunnableConfig, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({
  count: Annotation<number>(),
  every_ms: Annotation<number>(),
  /** Path of a file; the node writes when the file exists. */
  go: Annotation<string>(),
});

const EVENT_BYTES = 200;
/** Minimum; rare events do not need more polls, which would use the host of a thousand runs. */
const POLL_MS = 20;

/** The monotonic clock of the machine in ms, which all processes share. */
const clock = () => Number(process.hrtime.bigint()) / 1e6;

/** An event of 200 bytes of JSON with the time of its write. */
function tick(index: number): object {
  const event = { at: clock(), index, pad: "" };
  return { ...event, pad: "x".repeat(EVENT_BYTES - JSON.stringify(event).length) };
}

/** One node that writes a custom event at fixed times, which delays do not shift. */
async function write(state: typeof State.State, { writer }: LangGraphRunnableConfig): Promise<typeof State.Update> {
  while (!existsSync(state.go)) await sleep(Math.max(POLL_MS, state.every_ms));
  const started_at = clock();
  for (let index = 0; index < state.count; index++) {
    const early_ms = started_at + index * state.every_ms - clock();
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
