import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { promisify } from "node:util";

const run = promisify(execFile);

/** A process, told from others that had or will have its number. */
export interface ProcessIdentity {
  pid: number;
  /** When it started, as the system tells it; on Linux in ticks since the boot that is named with it. */
  started: string;
}

/**
 * When the process with this number started; undefined when there is none, or only its remains that nobody has collected.
 */
export async function startOf(pid: number): Promise<string | undefined> {
  return process.platform === "linux" ? startOnLinux(pid) : startByPs(pid);
}

export const isAlive = async ({ pid, started }: ProcessIdentity): Promise<boolean> => (await startOf(pid)) === started;

async function startOnLinux(pid: number): Promise<string | undefined> {
  const [stat, boot] = await Promise.all([
    readFile(`/proc/${pid}/stat`, "latin1").catch(() => ""),
    readFile("/proc/sys/kernel/random/boot_id", "latin1").catch(() => ""),
  ]);
  // The name of the program, in parentheses, may hold anything; after it come the state and, as the 22nd field, the start.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [state, ticks] = [fields[0], fields[19]];
  return ticks === undefined || state === "Z" || state === "X" ? undefined : `${ticks}@${boot.trim()}`;
}

async function startByPs(pid: number): Promise<string | undefined> {
  const { stdout } = await run("ps", ["-o", "stat=,lstart=", "-p", String(pid)]).catch(() => ({ stdout: "" }));
  const [, state = "Z", started] = /^(\S+)\s+(.*)$/.exec(stdout.trim()) ?? [];
  return state.startsWith("Z") ? undefined : started;
}

/** The process whose command line holds a text that no other has; undefined when there is none. */
export async function findByCommand(text: string): Promise<ProcessIdentity | undefined> {
  const pid = process.platform === "linux" ? await findOnLinux(text) : await findByPs(text);
  const started = pid === undefined ? undefined : await startOf(pid);
  return pid === undefined || started === undefined ? undefined : { pid, started };
}

async function findOnLinux(text: string): Promise<number | undefined> {
  for (const name of await readdir("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    if ((await readFile(`/proc/${name}/cmdline`, "utf8").catch(() => "")).includes(text)) return Number(name);
  }
  return undefined;
}

async function findByPs(text: string): Promise<number | undefined> {
  const { stdout } = await run("ps", ["-axo", "pid=,command="]);
  const line = stdout.split("\n").find((one) => one.includes(text));
  return line === undefined ? undefined : Number.parseInt(line, 10);
}

/** Signals a process; one that is gone is none to signal. */
export function signalProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/**
 * Ends all processes of a group. To be called while its leader lives, or right after it has died: later its number may be
 * somebody else's.
 */
export const killGroup = (pid: number): void => signalProcess(-pid, "SIGKILL");
