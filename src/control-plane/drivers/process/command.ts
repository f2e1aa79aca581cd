import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { type BuildIo, DeployError, type LogLine } from "../driver.ts";
import { readLogLine } from "../log-line.ts";
import { LineSplitter } from "./line-splitter.ts";
import { killGroup } from "./process-identity.ts";
import type { SystemUser } from "./system-users.ts";

export interface Command {
  /** For people. */
  name: string;
  file: string;
  args: readonly string[];
  cwd: string;
  /** The whole environment. */
  env: Readonly<Record<string, string>>;
  timeout_ms: number;
  /** Undefined: whom the service runs as. */
  user: SystemUser | undefined;
  /** Told the number of the process, so that it can be found after a crash of this one. */
  onStart?(pid: number): Promise<void>;
}

/** How long the output of a command is read after its end. */
const LAST_OUTPUT_MS = 1_000;

/** Lines that an error repeats. */
const LAST_LINES = 10;

/**
 * Runs a command in a process group of its own, tells its output line by line, and ends the whole group with it.
 *
 * @throws DeployError with the last lines of the output when it fails or takes too long; the reason of the signal when that was
 *   aborted
 */
export async function runCommand(command: Command, { log, signal }: BuildIo): Promise<void> {
  signal.throwIfAborted();
  const { name, file, args, cwd, env, timeout_ms, user } = command;
  const child = spawn(file, args, { cwd, env, ...user, detached: true, stdio: ["ignore", "pipe", "pipe"] });
  const ended = once(child, "close") as Promise<[number | null, string | null]>;
  const said = tell(child, log);
  let isLate = false;
  const stop = () => child.pid !== undefined && killGroup(child.pid);
  const timer = setTimeout(() => {
    isLate = true;
    stop();
  }, timeout_ms);
  signal.addEventListener("abort", stop);
  // What a command leaves in the background would hold its output open; what has left its group does so still.
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
    const last = said.last();
    if (isLate) throw new DeployError(`${name} took longer than ${timeout_ms / 1000} s and was ended.${last}`);
    if (status === 0) return;
    throw new DeployError(
      `${name} ${status === null ? `was ended by ${killed_by}` : `failed with status ${status}`}.${last}`,
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

function tell(child: ChildProcess, log: (line: LogLine) => void): { last(): string } {
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
    stream?.on("data", (piece: Buffer) => take(splitter.add(piece)));
    stream?.on("end", () => take(splitter.end()));
  }
  return { last: () => (kept.length > 0 ? ` The last it said:\n${kept.join("\n")}` : "") };
}
