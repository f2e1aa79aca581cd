import { execFile } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { v7 } from "uuid";
import { pythonEnvironment } from "../../test/support/python.ts";
import { drive, median, quantile } from "../load.ts";
import type { Measurement } from "../measurement.ts";
import { serverOf, type Target } from "../target.ts";
import { startWaiting, stopWaiting } from "./waiting-run.ts";

const BENCH = join(import.meta.dirname, "..");
const CONCURRENCY = 10;
const FIRST_EVENTS = 50;

const itself = (limit: { min: number } | { max: number }) => ({ against: "itself", ...limit }) as const;

/** Graphs in Python on one host, beside LangGraph alone in one Python process and the same graph in JavaScript. */
export const python: Measurement = {
  name: "python",
  without: ["floor", "peer"],
  figures: [
    { key: "floor_per_s", label: "Python, one node, 10 concurrent: graph.ainvoke() in one process, runs/s" },
    { key: "python_per_s", label: "... create + wait on one host, runs/s" },
    { key: "floor_ratio", label: "... of graph.ainvoke()", goal: itself({ min: 0.5 }) },
    { key: "js_per_s", label: "... the JavaScript graph on one host, runs/s" },
    { key: "js_ratio", label: "... Python, of JavaScript", goal: itself({ min: 0.85 }) },
    { key: "first_p50_ms", label: "Python: first event of a run on a warm host, p50, ms", goal: itself({ max: 20 }) },
    { key: "first_p99_ms", label: "... p99, ms" },
    { key: "cancel_p50_ms", label: "Python: cancel of an asynchronous node, p50, ms" },
    { key: "cancel_p99_ms", label: "... p99, ms", goal: itself({ max: 50 }) },
    { key: "host_mb", label: "Python: resident memory of an idle host, MB", goal: itself({ max: 150 }) },
  ],
  async measure(start, sizes) {
    const interpreter = await pythonEnvironment();
    const env = { THREADMILL_HOSTS: "1", THREADMILL_PYTHON: interpreter };
    await using js = await start(env);
    await using target = await start({ ...env, BENCH_GRAPHS: join(BENCH, "graphs/python/langgraph.json") });
    const run = (on: Target) => () => on.run("step", { text: "hello" }, v7());
    for (const each of [js, target]) await drive(CONCURRENCY, { seconds: sizes.warm_up_seconds }, run(each));
    const host_mb = hostMemory();
    const rates = { floor: [] as number[], python: [] as number[], js: [] as number[] };
    for (let round = 0; round < 3; round++) {
      rates.floor.push(await measureFloor(interpreter, sizes.load_seconds));
      rates.python.push((await drive(CONCURRENCY, { seconds: sizes.load_seconds }, run(target))).per_second);
      rates.js.push((await drive(CONCURRENCY, { seconds: sizes.load_seconds }, run(js))).per_second);
    }
    const [floor_per_s, python_per_s, js_per_s] = [median(rates.floor), median(rates.python), median(rates.js)];
    const firsts: number[] = [];
    for (let n = 0; n < FIRST_EVENTS; n++) {
      const { sent_at, first_at } = await target.streamCustom("events", { count: 1, in_turns: false });
      firsts.push(first_at - sent_at);
    }
    const cancels: number[] = [];
    const server = serverOf(target);
    for (let n = 0; n < sizes.cancels; n++) {
      const waiting = await startWaiting(server, v7(), 0);
      cancels.push(await stopWaiting(server, waiting, n % 2 === 0 ? "interrupt" : "rollback"));
      await waiting.ended;
    }
    return {
      floor_per_s,
      python_per_s,
      floor_ratio: python_per_s / floor_per_s,
      js_per_s,
      js_ratio: python_per_s / js_per_s,
      first_p50_ms: quantile(firsts, 0.5),
      first_p99_ms: quantile(firsts, 0.99),
      cancel_p50_ms: quantile(cancels, 0.5),
      cancel_p99_ms: quantile(cancels, 0.99),
      ...(host_mb !== undefined && { host_mb }),
    };
  },
};

/** The median of all Python hosts of this machine; undefined without /proc. */
function hostMemory(): number | undefined {
  if (!existsSync("/proc/self/status")) return undefined;
  const read = (pid: string, file: string) => {
    try {
      return readFileSync(`/proc/${pid}/${file}`, "utf8");
    } catch {
      // The process has ended.
      return "";
    }
  };
  const pids = readdirSync("/proc").filter((pid) => /^\d+$/.test(pid));
  const hosts = pids.filter((pid) => read(pid, "cmdline").includes("\0threadmill_host"));
  const kib = hosts.map((pid) => Number(/^VmRSS:\s+(\d+) kB$/m.exec(read(pid, "status"))?.[1] ?? 0));
  return (median(kib) * 1024) / 1e6;
}

async function measureFloor(interpreter: string, seconds: number): Promise<number> {
  const args = ["-B", join(BENCH, "python_floor.py"), String(CONCURRENCY), String(seconds)];
  return Number((await promisify(execFile)(interpreter, args)).stdout);
}
