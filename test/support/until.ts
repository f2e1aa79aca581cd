import { setImmediate as nextTurn } from "node:timers/promises";

/** Asks again and again, in the next turn of the event loop, until the answer is yes; fails after `deadline_ms`. */
export async function until(
  what: string,
  holds: () => Promise<boolean | undefined>,
  deadline_ms = 30_000,
): Promise<void> {
  const end = performance.now() + deadline_ms;
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(`Waited ${deadline_ms} ms in vain until ${what}.`);
    await nextTurn();
  }
}
