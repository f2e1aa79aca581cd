import type { Measurement } from "../measurement.ts";
import { loadFigures, measureLoads } from "./loads.ts";

const CONCURRENCIES = [1, 32];

/** One-node runs without a thread. */
export const statelessWait: Measurement = {
  name: "stateless-wait",
  figures: CONCURRENCIES.flatMap((concurrency) => loadFigures("stateless wait", concurrency)),
  async measure(start, sizes) {
    await using target = await start();
    return await measureLoads(CONCURRENCIES, sizes, () => target.runStateless("step", { text: "hello" }));
  },
};
