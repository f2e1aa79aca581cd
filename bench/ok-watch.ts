/**
 * Asks GET /ok every few milliseconds in a thread of its own, so that work of the thread that measures (sending 30 MB, say)
 * does not count as the server's. Tells the slowest answer when it is told to end.
 */
import { once } from "node:events";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { HttpApi } from "./http-api.ts";
import { sleep } from "./load.ts";

/** Between two questions. */
const PAUSE_MS = 2;

export interface OkWatch {
  /** Ends it; answers how long the slowest answer took since the start, in ms. */
  slowest_ms(): Promise<number>;
}

/** Resolves once the first answer is there. */
export async function watchOk(port: number): Promise<OkWatch> {
  const worker = new Worker(new URL(import.meta.url), { workerData: { port } });
  await once(worker, "message");
  return {
    async slowest_ms() {
      worker.postMessage("end");
      const [slowest] = await once(worker, "message");
      await once(worker, "exit");
      return slowest as number;
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
  let slowest = 0;
  while (!isOver) {
    const asked = performance.now();
    await api.ask("GET", "/ok");
    slowest = Math.max(slowest, performance.now() - asked);
    await sleep(PAUSE_MS);
  }
  api.close();
  parentPort?.postMessage(slowest);
  parentPort?.close();
}
