import { setTimeout as sleep } from "node:timers/promises";
import type { LangGraphRunnableConfig } from "@langchain/langgraph";

/**
 * How long an example waits between two steps it wants you to see.
 * A run sets it with `configurable.delay_ms`, the whole server with
 * EXAMPLES_DELAY_MS. Tests use 0.
 */
export function delayFor(config: LangGraphRunnableConfig, fallback: number): number {
  const wanted = config.configurable?.delay_ms ?? process.env.EXAMPLES_DELAY_MS ?? fallback;
  const ms = Number(wanted);
  return Number.isFinite(ms) && ms >= 0 ? ms : fallback;
}

/** Waits, and stops waiting at once when the run is cancelled. */
export async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  signal?.throwIfAborted();
  if (ms > 0) await sleep(ms, undefined, { signal });
}
