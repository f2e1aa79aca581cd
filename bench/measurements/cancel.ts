import { v7 } from "uuid";
import { drive, quantile } from "../load.ts";
import type { Figure, Measurement, Values } from "../measurement.ts";
import { type Server, serverOf } from "../target.ts";
import { measureOk, okFigures } from "./ok.ts";
import { startWaiting, stopWaiting } from "./waiting-run.ts";

const CONCURRENCIES = [1, 4];
const WARM_UP = 20;

const ok = okFigures("cancel");

const figures = (concurrency: number): Figure[] => {
  const title = `cancel to stopped, ${concurrency} at once`;
  return [
    { key: `c${concurrency}_p50_ms`, label: `${title}: p50, ms`, base: ok.p50 },
    {
      key: `c${concurrency}_p99_ms`,
      label: `${title}: p99, ms`,
      goal: { against: "itself", max: 50 },
      base: ok.p99,
    },
  ];
};

/** Latency of a cancel with wait=1, for runs on separate threads that each have a stream reader. */
export const cancel: Measurement = {
  name: "cancel",
  without: ["floor"],
  on_postgres: true,
  figures: [...CONCURRENCIES.flatMap(figures), ok.p50, ok.p99],
  async measure(start, sizes) {
    await using target = await start();
    const server = serverOf(target);
    await cancelMany(server, 4, Math.min(WARM_UP, sizes.cancels));
    const values: Values = await measureOk(server, sizes);
    for (const concurrency of CONCURRENCIES) {
      const latencies_ms = await cancelMany(server, concurrency, sizes.cancels);
      values[`c${concurrency}_p50_ms`] = quantile(latencies_ms, 0.5);
      values[`c${concurrency}_p99_ms`] = quantile(latencies_ms, 0.99);
    }
    return values;
  },
};

/** The same between processes: one receives the cancel, another one executes the run, and a client waits for other runs all the time. */
export const cancelAcrossProcesses: Measurement = {
  name: "cancel-across-processes",
  only_postgres: true,
  figures: [
    { key: "p50_ms", label: "cancel of a run in another process, beside other runs: p50, ms" },
    { key: "p99_ms", label: "... p99, ms", goal: { against: "itself", max: 50 } },
    { key: "per_second", label: "... other runs/s" },
  ],
  async measure(start, sizes) {
    await using _worker = await start({ THREADMILL_ROLE: "worker" });
    await using api = await start({ THREADMILL_ROLE: "api" });
    const server = serverOf(api);
    await cancelMany(server, 4, Math.min(WARM_UP, sizes.cancels));
    let isOver = false;
    const others = (async () => {
      const started_at = performance.now();
      let runs = 0;
      for (; !isOver; runs++) await api.run("step", { text: "hello" }, v7());
      return runs / ((performance.now() - started_at) / 1000);
    })();
    const latencies_ms = await cancelMany(server, 1, sizes.cancels);
    isOver = true;
    const per_second = await others;
    return { p50_ms: quantile(latencies_ms, 0.5), p99_ms: quantile(latencies_ms, 0.99), per_second };
  },
};

async function cancelMany(server: Server, concurrency: number, calls: number): Promise<number[]> {
  const latencies_ms: number[] = [];
  await drive(concurrency, { calls }, async () => {
    const run = await startWaiting(server, v7(), 0);
    latencies_ms.push(await stopWaiting(server, run, "interrupt"));
    await run.ended;
    const { status } = JSON.parse(await server.send("GET", run.path)) as { status: string };
    if (status !== "interrupted")
      throw new Error(`A cancelled run has the status "${status}" after the response to its cancel.`);
  });
  return latencies_ms;
}
