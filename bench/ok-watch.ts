/**
 * Sends GET /ok every few milliseconds from a worker thread, so that work of the measuring thread (for example sending 30 MB) does not add
 * to the latency. Returns the latencies when it is stopped.
 */
import { once } from "node:events";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { HttpApi } from "./http-api.ts";
import { quantile, sleep } from "./load.ts";

/** Between two requests. */
const PAUSE_MS = 2;

export interface OkWatch {
  /** Stops the requests. Returns the maximum and the 99th percentile of the latency, in ms. */
  stop(): Promise<{ max_ms: number; p99_ms: number }>;
}

/** Resolves after the first response. */
export async function watchOk(port: number): Promise<OkWatch> {
  const worker = new Worker(new URL(import.meta.url), { workerData: { port } });
  await once(worker, "message");
  return {
    async stop() {
      // Subscribed before the message: the worker may exit in the same turn in which it answers.
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
  await api.send("GET", "/ok");
  let isStopped = false;
  parentPort?.once("message", () => {
    isStopped = true;
  });
  parentPort?.postMessage("started");
  const latencies_ms: number[] = [];
  while (!isStopped) {
    const sent_at = performance.now();
    await api.send("GET", "/ok");
    latencies_ms.push(performance.now() - sent_at);
    await sleep(PAUSE_MS);
  }
  api.close();
  parentPort?.postMessage({ max_ms: Math.max(...latencies_ms), p99_ms: quantile(latencies_ms, 0.99) });
  parentPort?.close();
}
