import { v7 } from "uuid";
import { drive, median, sleep } from "../load.ts";
import type { Figure, Measurement } from "../measurement.ts";
import type { Target } from "../target.ts";

const CONCURRENCY = 32;
const LOADS = 6;
/** Time for the traces of the last runs to be stored. */
const STORE_MS = 1_000;

const off: Figure = { key: "off_per_second", label: "create + wait, 32 concurrent, without traces: runs/s" };
const offCpu: Figure = { key: "off_cpu_ms", label: "... CPU of a run, ms" };

/** One-node runs on a server with traces and on one without, in turns, so that both have the same machine. */
export const tracing: Measurement = {
  name: "tracing",
  without: ["floor", "peer"],
  figures: [
    off,
    offCpu,
    {
      key: "on_per_second",
      label: "create + wait, 32 concurrent, with traces: runs/s",
      goal: { against: "itself", min: 0.7 },
      base: off,
    },
    { key: "on_cpu_ms", label: "... CPU of a run with its trace, ms", base: offCpu },
    { key: "ratio", label: "... runs/s with traces, of those without", goal: { against: "itself", min: 0.7 } },
    { key: "cpu_ratio", label: "... CPU with traces, of that without", goal: { against: "itself", max: 1.15 } },
  ],
  async measure(start, sizes) {
    await using on = await start({ THREADMILL_TRACING: "on" });
    await using without = await start({ THREADMILL_TRACING: "off" });
    for (const target of [on, without]) await drive(CONCURRENCY, { calls: sizes.traced_runs }, runOn(target));
    const loads = { on: [] as Load[], off: [] as Load[] };
    for (let load = 0; load < LOADS; load++) {
      const targets = [["on", on] as const, ["off", without] as const];
      for (const [name, target] of load % 2 === 0 ? targets : targets.toReversed())
        loads[name].push(await measureLoad(target, sizes.traced_runs));
    }
    const rate = (list: Load[]) => median(list.map(({ per_second }) => per_second));
    const cpu = (list: Load[]) => median(list.map(({ cpu_ms }) => cpu_ms));
    return {
      off_per_second: rate(loads.off),
      off_cpu_ms: cpu(loads.off),
      on_per_second: rate(loads.on),
      on_cpu_ms: cpu(loads.on),
      ratio: rate(loads.on) / rate(loads.off),
      cpu_ratio: cpu(loads.on) / cpu(loads.off),
    };
  },
};

interface Load {
  per_second: number;
  /** Of a run, including the storage of its trace. */
  cpu_ms: number;
}

const runOn = (target: Target) => () => target.run("step", { text: "hello" }, v7());

async function measureLoad(target: Target, runs: number): Promise<Load> {
  const before = target.usage()?.cpu_ms ?? Number.NaN;
  const { calls, per_second } = await drive(CONCURRENCY, { calls: runs }, runOn(target));
  await sleep(STORE_MS);
  return { per_second, cpu_ms: ((target.usage()?.cpu_ms ?? Number.NaN) - before) / calls };
}
