import { v7 } from "uuid";
import type { Measurement } from "../measurement.ts";
import { type LoadGoals, loadFigures, measureLoads } from "./loads.ts";

const GOALS: Record<number, LoadGoals> = {
  1: { p50: { against: "floor", max: 5 } },
  32: { rate: { against: "floor", min: 0.4 } },
};
const CONCURRENCIES = [1, 8, 32, 128];

/**
 * One-node runs on threads that the same request creates. The IDs are ordered by time, as those that servers generate; with random IDs
 * SQLite touches more pages, and the rate is a fifth lower.
 */
export const createWait: Measurement = {
  name: "create-wait",
  on_postgres: true,
  figures: CONCURRENCIES.flatMap((concurrency) => loadFigures("create + wait", concurrency, GOALS[concurrency])),
  async measure(start, sizes) {
    await using target = await start();
    return await measureLoads(CONCURRENCIES, sizes, () => target.run("step", { text: "hello" }, v7()));
  },
};

const STATELESS_CONCURRENCIES = [1, 32];

/** One-node runs on temporary threads. */
export const statelessWait: Measurement = {
  name: "stateless-wait",
  figures: STATELESS_CONCURRENCIES.flatMap((concurrency) => loadFigures("stateless wait", concurrency)),
  async measure(start, sizes) {
    await using target = await start();
    return await measureLoads(STATELESS_CONCURRENCIES, sizes, () => target.runStateless("step", { text: "hello" }));
  },
};
