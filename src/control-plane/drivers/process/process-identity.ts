import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Identifies a process among others that had or will have its pid. */
export interface ProcessIdentity {
  pid: number;
  /** The start time from the system; on Linux in ticks since a boot, with the id of the boot. */
  started: string;
}

/** The start time of a process; undefined when it does not exist or is a zombie. */
export async function startOf(pid: number): Promise<string | undefined> {
  return process.platform === "linux" ? startOnLinux(pid) : startByPs(pid);
}

export const isAlive = async ({ pid, started }: ProcessIdentity): Promise<boolean> => (await startOf(pid)) === started;

async function startOnLinux(pid: number): Promise<string | undefined> {
  const [stat, boot] = await Promise.all([
    readFile(`/proc/${pid}/stat`, "latin1").catch(() => ""),
    readFile("/proc/sys/kernel/random/boot_id", "latin1").catch(() => ""),
  ]);
  // The program name in parentheses may contain anything. The state follows it; the start is the 22nd field.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [state, ticks] = [fields[0], fields[19]];
  return ticks === undefined || state === "Z" || state === "X" ? undefined : `${ticks}@${boot.trim()}`;
}

async function startByPs(pid: number): Promise<string | undefined> {
  const { stdout } = await run("ps", ["-o", "stat=,lstart=", "-p", String(pid)]).catch(() => ({ stdout: "" }));
  const [, state = "Z", started] = /^(\S+)\s+(.*)$/.exec(stdout.trim()) ?? [];
  return state.startsWith("Z") ? undefined : started;
}

/** The process whose command line contains a unique text; undefined when there is none. */
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

/** Does nothing when the process does not exist. */
export function signalProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** Call it while the leader runs or right after its end: later another group may have the number. */
export const killGroup = (pid: number): void => signalProcess(-pid, "SIGKILL");
