import type { SQLInputValue } from "node:sqlite";
import { AskedThread } from "../../lib/asked-thread.ts";
import type { ConnectionOptions, Runner } from "./sqlite-connection.ts";

export interface Search {
  method: "all" | "first";
  sql: string;
  parameters: SQLInputValue[];
  /** The time that now_ms() answers. */
  now: number;
}

/** Reads in a thread with a connection of its own, so that no search keeps other requests waiting, however many rows it looks at. */
export function searchThread({ now, ...connection }: ConnectionOptions): Runner & { close(): Promise<void> } {
  const thread = new AskedThread<Search, unknown>({
    entry: new URL("./sqlite-search-thread", import.meta.url),
    name: "sqlite search",
    workerData: connection,
  });
  return {
    all: (sql, parameters) => thread.ask({ method: "all", sql, parameters, now: now() }) as Promise<unknown[]>,
    first: (sql, parameters) => thread.ask({ method: "first", sql, parameters, now: now() }),
    async run() {
      throw new Error("A search changes nothing.");
    },
    close: () => thread.close(),
  };
}
