import { existsSync, readdirSync, readFileSync } from "node:fs";
import type { Usage } from "./target.ts";

const hasProc = existsSync("/proc/self/stat");

/** The unit of CPU times in /proc, which is fixed and independent of the tick of the kernel. */
const TICK_MS = 10;

/** CPU time and memory of a process and its descendants; undefined without /proc. */
export function processUsage(pid: number): Usage | undefined {
  if (!hasProc) return undefined;
  const all = withChildren(pid).map(readOne);
  return { cpu_ms: sum(all.map(({ cpu_ms }) => cpu_ms)), rss_mb: sum(all.map(({ rss_mb }) => rss_mb)) };
}

function readOne(pid: number): Usage {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The second field is the name of the program in brackets and may contain any character; utime and stime are fields 14 and 15.
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
