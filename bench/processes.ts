import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Everything that this process has started and not yet stopped. */
const running = new Set<ChildProcess>();

const folder = mkdtempSync(join(tmpdir(), "threadmill-bench-"));
process.on("exit", () => {
  killAll();
  rmSync(folder, { recursive: true, force: true });
});

/** A folder that is gone when the benchmark ends. */
export const temporaryFolder = (): string => mkdtempSync(join(folder, "run-"));

export interface Started {
  child: ChildProcess;
  /** The end of what it wrote to standard error. */
  complaints(): string;
}

/** Starts a program; its standard output goes nowhere unless it is asked for. */
export function start(
  args: string[],
  options: { cwd?: string; output?: boolean; env?: Record<string, string>; command?: string },
): Started {
  const child = spawn(options.command ?? process.execPath, args, {
    cwd: options.cwd,
    env: { ...environment(), ...options.env },
    stdio: ["ignore", options.output ? "pipe" : "ignore", "pipe"],
  });
  running.add(child);
  child.once("close", () => running.delete(child));
  let text = "";
  child.stderr?.setEncoding("utf8").on("data", (chunk: string) => {
    text = (text + chunk).slice(-2_000);
  });
  return { child, complaints: () => text.trim() };
}

/** Asks a program to end, and ends it if it has not done so in time. */
export async function stop({ child }: Started): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const closed = once(child, "close");
  child.kill("SIGTERM");
  const timer = setTimeout(() => child.kill("SIGKILL"), 5_000);
  await closed;
  clearTimeout(timer);
}

/** Ends at once whatever is still running; whoever waits for it gets an error. */
export function killAll(): void {
  for (const child of running) child.kill("SIGKILL");
}

/** No settings of this machine's user, so that all subjects run as they come; and nothing that calls home. */
function environment(): Record<string, string> {
  const kept = ["PATH", "HOME", "TMPDIR", "TEMP", "TMP", "LANG", "SystemRoot"].flatMap((name) => {
    const value = process.env[name];
    return value === undefined ? [] : [[name, value]];
  });
  return {
    ...Object.fromEntries(kept),
    LANGSMITH_TRACING: "false",
    LANGCHAIN_TRACING_V2: "false",
    LOG_LEVEL: "error",
  };
}
