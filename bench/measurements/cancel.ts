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
    { key: `c${concurrency}_p50_ms`, label: `${title}: p50, ms`, beside: ok.p50 },
    {
      key: `c${concurrency}_p99_ms`,
      label: `${title}: p99, ms`,
      goal: { against: "itself", at_most: 50 },
      beside: ok.p99,
    },
  ];
};

/** From sending a cancel that waits to its answer, for runs that somebody watches, each on a thread of its own. */
export const cancel: Measurement = {
  name: "cancel",
  without: ["floor"],
  figures: [...CONCURRENCIES.flatMap(figures), ok.p50, ok.p99],
  async measure(start, sizes) {
    await using target = await start();
    const server = serverOf(target);
    await cancelMany(server, 4, Math.min(WARM_UP, sizes.cancels));
    const values: Values = await measureOk(server, sizes);
    for (const concurrency of CONCURRENCIES) {
      const took_ms = await cancelMany(server, concurrency, sizes.cancels);
      values[`c${concurrency}_p50_ms`] = quantile(took_ms, 0.5);
      values[`c${concurrency}_p99_ms`] = quantile(took_ms, 0.99);
    }
    return values;
  },
};

async function cancelMany(server: Server, concurrency: number, calls: number): Promise<number[]> {
  const took_ms: number[] = [];
  await drive(concurrency, { calls }, async () => {
    const run = await startWaiting(server, v7(), 0);
    took_ms.push(await stopWaiting(server, run, "interrupt"));
    await run.ended;
    const { status } = JSON.parse(await server.ask("GET", run.path)) as { status: string };
    if (status !== "interrupted") throw new Error(`A cancelled run is "${status}" after its cancel was answered.`);
  });
  return took_ms;
}
