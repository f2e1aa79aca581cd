import { enableCompileCache } from "node:module";
import { parentPort, workerData } from "node:worker_threads";
import type { FromHost, HistoryPage, HostSetup, ToHost } from "../host.ts";

// The entry point of a host thread. The compile cache halves the time of the second start.
enableCompileCache?.();
const { startRuntime } = await import("./runtime.ts");

/** Returns the buffers to transfer instead of copying: pages of the history and traces may be large. */
const buffersOf = (message: FromHost): ArrayBuffer[] => {
  if (message.type === "trace") return [message.runs.buffer];
  const states = message.type === "query_result" && (message.value as Partial<HistoryPage> | undefined)?.states;
  return states ? [states.buffer] : [];
};

const port = parentPort;
if (!port) throw new Error("This module is the entry point of a graph host thread and cannot run elsewhere.");
const runtime = startRuntime(workerData as HostSetup, (messages) =>
  port.postMessage(messages, messages.flatMap(buffersOf)),
);
port.on("message", (messages: ToHost[]) => {
  for (const message of messages) runtime.receive(message);
});
