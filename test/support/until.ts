import { setTimeout as pause } from "node:timers/promises";

/** Short enough that no test waits for long, long enough that waiting takes no CPU from what is waited for. */
const INTERVAL_MS = 20;

/** Asks every 20 ms until the answer is truthy, and returns it; fails after `deadline_ms`. */
export async function until<T>(what: string, holds: () => Promise<T>, deadline_ms = 30_000): Promise<NonNullable<T>> {
  const end = performance.now() + deadline_ms;
  for (;;) {
    const found = await holds();
    if (found) return found;
    if (performance.now() > end) throw new Error(`Waited ${deadline_ms} ms until ${what}.`);
    await pause(INTERVAL_MS);
  }
}
