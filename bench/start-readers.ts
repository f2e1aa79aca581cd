import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { start } from "./processes.ts";
import type { AllEnded, AllOpen, ReadersOrder } from "./reader-process.ts";

export interface Readers {
  open: AllOpen;
  /** Rejects when a reader did not get each event once and in order. */
  ended(): Promise<AllEnded>;
}

/** Starts readers in a process of their own; resolves when all of them have the first event of their streams. */
export async function startReaders(order: ReadersOrder): Promise<Readers> {
  const { child, complaints } = start([join(import.meta.dirname, "reader-process.ts"), JSON.stringify(order)], {
    output: true,
  });
  if (!child.stdout) throw new Error("The readers' process has no output.");
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const next = async <T>(): Promise<T> => {
    const { value, done } = await lines.next();
    if (!done) return JSON.parse(value) as T;
    if (child.exitCode === null) await once(child, "close");
    throw new Error(`The readers' process ended: ${complaints()}`);
  };
  const open = await next<AllOpen>();
  return {
    open,
    async ended() {
      const all = await next<AllEnded>();
      if (all.complaints.length > 0) throw new Error(all.complaints.join(" "));
      return all;
    },
  };
}
