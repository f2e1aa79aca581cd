import { setTimeout as sleep } from "node:timers/promises";
import type { LangGraphRunnableConfig } from "@langchain/langgraph";

/**
 * The delay between two visible steps of an example, in ms. Set it for a run
 * with `configurable.delay_ms`, for the server with EXAMPLES_DELAY_MS.
 * Tests use 0.
 */
export function delayFor(config: LangGraphRunnableConfig, fallback: number): number {
  const value = config.configurable?.delay_ms ?? process.env.EXAMPLES_DELAY_MS ?? fallback;
  const ms = Number(value);
  return Number.isFinite(ms) && ms >= 0 ? ms : fallback;
}

/** Waits until the delay is over or the run is cancelled. */
export async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  signal?.throwIfAborted();
  if (ms > 0) await sleep(ms, undefined, { signal });
}
