import { writeFileSync } from "node:fs";
import { enableCompileCache } from "node:module";
import { Worker } from "node:worker_threads";
import type { HostSetup, ToHost } from "../host.ts";

// The entry point of a host process, whose first message is the setup.
enableCompileCache?.();
const { startRuntime } = await import("./runtime.ts");

/** The pipe that is closed when the service ends. The thread notices it while a node blocks this one. */
const END_DESCRIPTOR = 4;
const UNTIL_END = `
const pipe = new (require("net").Socket)({ fd: ${END_DESCRIPTOR} });
pipe.on("close", () => process.kill(process.pid, "SIGKILL")).resume();`;
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
