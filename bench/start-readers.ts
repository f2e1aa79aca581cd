import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { start } from "./processes.ts";
import type { AllEnded, AllOpen, ReadersOptions } from "./reader-process.ts";

export interface Readers {
  open: AllOpen;
  /** Rejects when a reader did not receive each event once and in order. */
  waitForEnd(): Promise<AllEnded>;
}

/** Starts readers in a separate process. Resolves when each of them has received the first event. */
export async function startReaders(options: ReadersOptions): Promise<Readers> {
  const { child, stderrTail } = start([join(import.meta.dirname, "reader-process.ts"), JSON.stringify(options)], {
    output: true,
  });
  if (!child.stdout) throw new Error("The reader process has no output.");
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const next = async <T>(): Promise<T> => {
    const { value, done } = await lines.next();
    if (!done) return JSON.parse(value) as T;
    if (child.exitCode === null) await once(child, "close");
    throw new Error(`The reader process exited: ${stderrTail()}`);
  };
  const open = await next<AllOpen>();
  return {
    open,
    async waitForEnd() {
      const all = await next<AllEnded>();
      if (all.failures.length > 0) throw new Error(all.failures.join(" "));
      return all;
    },
  };
}
