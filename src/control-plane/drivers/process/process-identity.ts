import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Identifies a process uniquely, even if the system reuses the pid. */
export interface ProcessIdentity {
  pid: number;
  /** Start time as reported by the system; on Linux in ticks since boot, with the boot ID. */
  started: string;
}

/** Start time of a process; undefined if the process does not exist or is a zombie. */
export async function startOf(pid: number): Promise<string | undefined> {
  return process.platform === "linux" ? startOnLinux(pid) : startByPs(pid);
}

export const isAlive = async ({ pid, started }: ProcessIdentity): Promise<boolean> => (await startOf(pid)) === started;

async function startOnLinux(pid: number): Promise<string | undefined> {
  const [stat, boot] = await Promise.all([
    readFile(`/proc/${pid}/stat`, "latin1").catch(() => ""),
    readFile("/proc/sys/kernel/random/boot_id", "latin1").catch(() => ""),
  ]);
  // The program name, in parentheses, may contain spaces and parentheses. The state follows it; the start time is the 22nd field.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [state, ticks] = [fields[0], fields[19]];
  return ticks === undefined || state === "Z" || state === "X" ? undefined : `${ticks}@${boot.trim()}`;
}

async function startByPs(pid: number): Promise<string | undefined> {
  const { stdout } = await run("ps", ["-o", "stat=,lstart=", "-p", String(pid)]).catch(() => ({ stdout: "" }));
  const [, state = "Z", started] = /^(\S+)\s+(.*)$/.exec(stdout.trim()) ?? [];
  return state.startsWith("Z") ? undefined : started;
}

/** Finds the process whose command line contains a unique text. */
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
  const line = stdout.split("\n").find((each) => each.includes(text));
  return line === undefined ? undefined : Number.parseInt(line, 10);
}

/** Sends a signal. Does nothing if the process does not exist. */
export function signalProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** Must be called while the group leader runs or right after it ends, because the system can reuse the group ID later. */
export const killGroup = (pid: number): void => signalProcess(-pid, "SIGKILL");
