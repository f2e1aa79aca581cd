import { enableCompileCache } from "node:module";
import { parentPort, workerData } from "node:worker_threads";
import type { HostSetup, ToHost } from "../host.ts";

// Where a worker thread begins. The cache makes the second start faster by half.
enableCompileCache?.();
const { startRuntime } = await import("./runtime.ts");

const port = parentPort;
if (!port) throw new Error("This module is the start of a graph host's thread and runs nowhere else.");
const runtime = startRuntime(workerData as HostSetup, (messages) => port.postMessage(messages));
port.on("message", (messages: ToHost[]) => {
  for (const message of messages) runtime.receive(message);
});
