import { Worker } from "node:worker_threads";
import type { FromHost, GraphHost, HostListener, HostSetup, StartHost, ToHost } from "../host.ts";

/**
 * Loading LangGraph alone makes V8 grow its default young generation to 100 MB, which it never gives back; with
 * this limit a fresh host takes 70 MB less, and executes as many runs.
 */
const YOUNG_GENERATION_MB = 24;

/** Hosts in worker threads: own heap with a limit (in MB), own event loop. `process.exit` in a node ends only the thread. */
export const threadHosts =
  (memory_mb: number): StartHost =>
  (setup: HostSetup, listener: HostListener): GraphHost => {
    let expected = false;
    let reason: string | undefined;
    const batch: ToHost[] = [];
    // The same file with the extension that this module has: .ts in the repository, .js in the package.
    const entry = new URL(
      `../inside/thread-entry${import.meta.url.slice(import.meta.url.lastIndexOf("."))}`,
      import.meta.url,
    );
    const worker = new Worker(entry, {
      workerData: setup,
      env: { ...setup.env },
      resourceLimits: { maxOldGenerationSizeMb: memory_mb, maxYoungGenerationSizeMb: YOUNG_GENERATION_MB },
      name: "graph host",
    });
    worker.on("message", (messages: FromHost[]) => {
      for (const message of messages) listener.onMessage(message);
    });
    worker.on("error", (error) => {
      reason =
        (error as { code?: string }).code === "ERR_WORKER_OUT_OF_MEMORY"
          ? `it ran out of memory (limit ${memory_mb} MB)`
          : error.message;
    });
    worker.on("exit", (code) => {
      if (!expected) listener.onExit(reason ?? `a node ended it with exit code ${code}`);
    });
    return {
      send(message) {
        // What one commit has brought about is told in one message.
        if (batch.push(message) === 1) queueMicrotask(() => worker.postMessage(batch.splice(0)));
      },
      async terminate() {
        expected = true;
        await worker.terminate();
      },
    };
  };
