import { enableCompileCache } from "node:module";
import { parentPort, workerData } from "node:worker_threads";
import type { FromHost, HistoryPage, HostSetup, ToHost } from "../host.ts";

// Where a worker thread begins. The cache makes the second start faster by half.
enableCompileCache?.();
const { startRuntime } = await import("./runtime.ts");

/** What moves to the service instead of being copied: a page of history may be long. */
const buffersOf = (message: FromHost): ArrayBuffer[] => {
  const states = message.type === "answer" && (message.value as Partial<HistoryPage> | undefined)?.states;
  return states ? [states.buffer] : [];
};

const port = parentPort;
if (!port) throw new Error("This module is the start of a graph host's thread and runs nowhere else.");
const runtime = startRuntime(workerData as HostSetup, (messages) =>
  port.postMessage(messages, messages.flatMap(buffersOf)),
);
port.on("message", (messages: ToHost[]) => {
  for (const message of messages) runtime.receive(message);
});
