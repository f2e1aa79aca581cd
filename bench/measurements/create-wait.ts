import { v7 } from "uuid";
import type { Measurement } from "../measurement.ts";
import { type LoadGoals, loadFigures, measureLoads } from "./loads.ts";

const GOALS: Record<number, LoadGoals> = {
  1: { p50: { against: "floor", at_most: 5 } },
  32: { rate: { against: "floor", at_least: 0.4 } },
};
const CONCURRENCIES = [1, 8, 32, 128];

/**
 * One-node runs, each on a thread of its own that is made by the same request. The ids are ordered by time, as those
 * that servers give out; with random ones SQLite touches more pages, and the rate is a fifth lower.
 */
export const createWait: Measurement = {
  name: "create-wait",
  figures: CONCURRENCIES.flatMap((concurrency) => loadFigures("create + wait", concurrency, GOALS[concurrency])),
  async measure(start, sizes) {
    await using target = await start();
    return await measureLoads(CONCURRENCIES, sizes, () => target.run("step", { text: "hello" }, v7()));
  },
};
