import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** The running child processes. */
const running = new Set<ChildProcess>();

const folder = mkdtempSync(join(tmpdir(), "threadmill-bench-"));
process.on("exit", () => {
  killAll();
  rmSync(folder, { recursive: true, force: true });
});

/** Creates a folder that is deleted at the end of the benchmark. */
export const temporaryFolder = (): string => mkdtempSync(join(folder, "run-"));

export interface Started {
  child: ChildProcess;
  /** The last 2,000 characters of standard error. */
  stderrTail(): string;
}

/** Starts a program. Its standard output is discarded unless `output` is set. */
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
  return { child, stderrTail: () => text.trim() };
}

/** Sends SIGTERM, and SIGKILL after 5 s. */
export async function stop({ child }: Started): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const closed = once(child, "close");
  child.kill("SIGTERM");
  const timer = setTimeout(() => child.kill("SIGKILL"), 5_000);
  await closed;
  clearTimeout(timer);
}

/** Kills all child processes. Measurements that use them fail. */
export function killAll(): void {
  for (const child of running) child.kill("SIGKILL");
}

/** A clean environment: all subjects run with their defaults and without telemetry. */
function environment(): Record<string, string> {
  const inherited = ["PATH", "HOME", "TMPDIR", "TEMP", "TMP", "LANG", "SystemRoot"].flatMap((name) => {
    const value = process.env[name];
    return value === undefined ? [] : [[name, value]];
  });
  return {
    ...Object.fromEntries(inherited),
    LANGSMITH_TRACING: "false",
    LANGCHAIN_TRACING_V2: "false",
    LOG_LEVEL: "error",
  };
}
