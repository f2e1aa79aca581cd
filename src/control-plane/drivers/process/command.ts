import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { promisify } from "node:util";
import { type BuildIo, DeployError, type LogLine } from "../driver.ts";
import { LineSplitter, readLogLine } from "../log-line.ts";
import { killGroup } from "./process-identity.ts";
import type { SystemUser } from "./system-users.ts";

export interface Command {
  /** Command name for messages to users. */
  name: string;
  file: string;
  args: readonly string[];
  cwd: string;
  /** Complete environment of the command. */
  env: Readonly<Record<string, string>>;
  timeout_ms: number;
  /** If undefined, the command runs as the user of the service. */
  user: SystemUser | undefined;
  /** Records the pid, so that the process can be found after a crash of the service. */
  onStart?(pid: number): Promise<void>;
}

/** Time for reading output after the end of a command. */
const LAST_OUTPUT_MS = 1_000;

/** Number of output lines in an error message. */
const LAST_LINES = 10;

/**
 * Runs a command in a new process group, logs the output, and kills the whole group when the command ends.
 *
 * @throws DeployError with the last lines of the output when the command fails or exceeds the time limit; the signal's reason when the
 * signal is aborted
 */
export async function runCommand(command: Command, { log, signal }: BuildIo): Promise<void> {
  signal.throwIfAborted();
  const { name, file, args, cwd, env, timeout_ms, user } = command;
  const child = spawn(file, args, { cwd, env, ...user, detached: true, stdio: ["ignore", "pipe", "pipe"] });
  const ended = once(child, "close") as Promise<[number | null, string | null]>;
  const output = logOutput(child, log);
  let isLate = false;
  const stop = () => child.pid !== undefined && killGroup(child.pid);
  const timer = setTimeout(() => {
    isLate = true;
    stop();
  }, timeout_ms);
  signal.addEventListener("abort", stop);
  // Processes that have left the group survive the kill and can keep the output open, so its streams are destroyed after a delay.
  child.once("exit", () => {
    stop();
    setTimeout(() => {
      child.stdout?.destroy();
      child.stderr?.destroy();
    }, LAST_OUTPUT_MS).unref();
  });
  try {
    if (child.pid !== undefined) await command.onStart?.(child.pid);
    const [status, killed_by] = await ended;
    signal.throwIfAborted();
    const last = output.last();
    if (isLate)
      throw new DeployError(`${name} exceeded the time limit of ${timeout_ms / 1000} s and was killed.${last}`);
    if (status === 0) return;
    throw new DeployError(
      `${name} ${status === null ? `was killed by ${killed_by}` : `failed with status ${status}`}.${last}`,
    );
  } catch (error) {
    stop();
    throw (error as NodeJS.ErrnoException).syscall?.startsWith("spawn")
      ? new DeployError(`${name} could not be started: ${(error as NodeJS.ErrnoException).code}.`)
      : error;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", stop);
  }
}

function logOutput(child: ChildProcess, log: (line: LogLine) => void): { last(): string } {
  const kept: string[] = [];
  const take = (lines: string[]) => {
    for (const text of lines) {
      const line = readLogLine(text, Date.now());
      if (!line) continue;
      log(line);
      kept.push(line.message);
      if (kept.length > LAST_LINES) kept.shift();
    }
  };
  for (const stream of [child.stdout, child.stderr]) {
    const splitter = new LineSplitter();
    stream?.on("data", (chunk: Buffer) => take(splitter.add(chunk)));
    stream?.on("end", () => take(splitter.end()));
  }
  return { last: () => (kept.length > 0 ? ` Last output:\n${kept.join("\n")}` : "") };
}

const run = promisify(execFile);

export async function outputOf({ file, args, cwd, env, timeout_ms, user }: Command): Promise<string> {
  const { stdout } = await run(file, [...args], { cwd, env: { ...env }, timeout: timeout_ms, ...user });
  return stdout.trim();
}
