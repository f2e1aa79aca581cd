import { statSync } from "node:fs";
import { Worker } from "node:worker_threads";
import { repeating, type Service } from "../../lib/service.ts";

/** How often the size of the write-ahead log is looked at. */
const LOOK_MS = 250;

/** From this size on the log is moved into the database. Below it the thread is not even started. */
const START_BYTES = 4 * 1024 * 1024;

/**
 * Moves SQLite's write-ahead log into the database in a thread of its own: on the serving thread this work and its
 * waits for the disk took a fifth of the time under load. The thread never blocks a writer; what it cannot finish
 * while writes go on, the writer's own, rarer checkpoint finishes.
 */
export function walCheckpointer(file: string): Service {
  let thread: Worker | undefined;
  const look = async () => {
    if (sizeOf(`${file}-wal`) < START_BYTES) return;
    thread ??= start(file);
    thread.postMessage("checkpoint");
  };
  const looking = repeating(LOOK_MS, look, () => {
    // The writer's own checkpoint does the work as long as the thread does not.
    thread = undefined;
  });
  return {
    start: () => looking.start(),
    async stop() {
      await looking.stop();
      await thread?.terminate();
    },
  };
}

function start(file: string): Worker {
  const extension = import.meta.url.slice(import.meta.url.lastIndexOf("."));
  const thread = new Worker(new URL(`./wal-checkpointer-thread${extension}`, import.meta.url), {
    workerData: file,
    resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 2 },
    name: "wal checkpointer",
  });
  thread.on("error", () => undefined);
  thread.unref();
  return thread;
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}
