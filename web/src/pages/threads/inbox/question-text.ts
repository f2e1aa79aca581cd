import { questionOf } from "../interrupt/interrupt-choices.ts";
import type { ListedThread } from "../queries.ts";

/** Text of the first open interrupt. A thread without interrupts was cancelled or stopped at a breakpoint. */
export function questionText({ interrupts }: Pick<ListedThread, "interrupts">): string {
  const [first] = Object.values(interrupts).flat();
  return first ? (questionOf(first).text ?? "Needs your input") : "Paused";
}
