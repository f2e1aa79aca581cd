/**
 * Asks GET /ok every few milliseconds in a thread of its own, so that work of the thread that measures (sending 30 MB, say)
 * does not count as the server's. Tells how long they took when it is told to end.
 */
import { once } from "node:events";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { HttpApi } from "./http-api.ts";
import { quantile, sleep } from "./load.ts";

/** Between two questions. */
const PAUSE_MS = 2;

export interface OkWatch {
  /** Ends it; answers how long the slowest answer took since the start, and 99 of 100, in ms. */
  ended(): Promise<{ slowest_ms: number; p99_ms: number }>;
}

/** Resolves once the first answer is there. */
export async function watchOk(port: number): Promise<OkWatch> {
  const worker = new Worker(new URL(import.meta.url), { workerData: { port } });
  await once(worker, "message");
  return {
    async ended() {
      // Waited for from now on: it may exit in the same turn in which it answers.
      const exited = once(worker, "exit");
      worker.postMessage("end");
      const [times] = await once(worker, "message");
      await exited;
      return times;
    },
  };
}

if (!isMainThread) {
  const api = new HttpApi((workerData as { port: number }).port);
  await api.ask("GET", "/ok");
  let isOver = false;
  parentPort?.once("message", () => {
    isOver = true;
  });
  parentPort?.postMessage("started");
  const took_ms: number[] = [];
  while (!isOver) {
    const asked = performance.now();
    await api.ask("GET", "/ok");
    took_ms.push(performance.now() - asked);
    await sleep(PAUSE_MS);
  }
  api.close();
  parentPort?.postMessage({ slowest_ms: Math.max(...took_ms), p99_ms: quantile(took_ms, 0.99) });
  parentPort?.close();
}
