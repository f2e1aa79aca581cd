import { existsSync, readdirSync, readFileSync } from "node:fs";
import type { Usage } from "./target.ts";

const hasProc = existsSync("/proc/self/stat");

/** What Linux shows to programs as the length of a tick, whatever its own is: CPU time in /proc is counted in these. */
const TICK_MS = 10;

/** What a process and its children use, all threads included; undefined where there is no /proc. */
export function processUsage(pid: number): Usage | undefined {
  if (!hasProc) return undefined;
  const all = withChildren(pid).map(readOne);
  return { cpu_ms: sum(all.map(({ cpu_ms }) => cpu_ms)), rss_mb: sum(all.map(({ rss_mb }) => rss_mb)) };
}

function readOne(pid: number): Usage {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The second field is the program's name in brackets and may hold anything; utime and stime are the 14th and 15th.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const ticks = Number(fields[11]) + Number(fields[12]);
  const kib = Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0);
  return { cpu_ms: ticks * TICK_MS, rss_mb: (kib * 1024) / 1_000_000 };
}

function withChildren(pid: number): number[] {
  const children = readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
    readFileSync(`/proc/${pid}/task/${thread}/children`, "utf8").split(" ").filter(Boolean).map(Number),
  );
  return [pid, ...children.flatMap(withChildren)];
}

const sum = (values: number[]) => values.reduce((total, value) => total + value, 0);
