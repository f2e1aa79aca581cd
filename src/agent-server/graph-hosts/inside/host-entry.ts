import { writeFileSync } from "node:fs";
import { enableCompileCache } from "node:module";
import { type MessagePort, parentPort, Worker, workerData } from "node:worker_threads";
import type { FromHost, HistoryPage, HostSetup, ToHost } from "../host.ts";

// The entry point of host threads and of host processes. The compile cache halves the time of the second start.
enableCompileCache?.();
const { startRuntime } = await import("./runtime.ts");

/** Returns the buffers to transfer instead of copying: pages of the history and traces may be large. */
const buffersOf = (message: FromHost): ArrayBuffer[] => {
  if (message.type === "trace") return [message.runs.buffer];
  const states = message.type === "query_result" && (message.value as Partial<HistoryPage> | undefined)?.states;
  return states ? [states.buffer] : [];
};

function runInThread(port: MessagePort): void {
  const runtime = startRuntime(workerData as HostSetup, (messages) =>
    port.postMessage(messages, messages.flatMap(buffersOf)),
  );
  port.on("message", (messages: ToHost[]) => {
    for (const message of messages) runtime.receive(message);
  });
}

/** The pipe that is closed when the service ends. A thread reads it, because a node can block the main thread. */
const END_DESCRIPTOR = 4;
const UNTIL_END = `
const pipe = new (require("net").Socket)({ fd: ${END_DESCRIPTOR} });
pipe.on("close", () => process.kill(process.pid, "SIGKILL")).resume();`;

/** The first message is the setup. */
function runInProcess(): void {
  new Worker(UNTIL_END, { eval: true }).unref();
  try {
    // Linux ends this process first when memory is exhausted.
    writeFileSync("/proc/self/oom_score_adj", "1000");
  } catch {
    // Not Linux.
  }
  process.once("message", (setup: HostSetup) => {
    const runtime = startRuntime(setup, (messages) => process.send?.(messages));
    process.on("message", (messages: ToHost[]) => {
      for (const message of messages) runtime.receive(message);
    });
  });
}

// The run that has lost a promise may have succeeded, and the host executes other runs. The console writes to their logs.
process.on("unhandledRejection", (error) => console.error("unhandled rejection:", error));

if (parentPort) runInThread(parentPort);
else runInProcess();
