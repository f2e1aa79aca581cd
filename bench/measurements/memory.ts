import { randomUUID } from "node:crypto";
import { drive, sleep } from "../load.ts";
import type { Measurement, Values } from "../measurement.ts";
import type { Target } from "../target.ts";

/** Idle time before memory is read, so that garbage can be collected. */
const IDLE_MS = 2_000;

/** Resident memory of the process. */
export const memory: Measurement = {
  name: "memory",
  figures: [
    { key: "idle_mb", label: "resident memory, idle after one run, MB", goal: { against: "peer", max: 1 } },
    { key: "used_mb", label: "resident memory, after 5,000 runs (quick: 200), MB" },
  ],
  async measure(start, sizes) {
    await using target = await start();
    const run = () => target.run("step", { text: "hello" }, randomUUID());
    await run();
    const idle = await readMemory(target, "idle_mb");
    await drive(32, { calls: sizes.memory_runs }, run);
    return { ...idle, ...(await readMemory(target, "used_mb")) };
  },
};

async function readMemory(target: Target, key: string): Promise<Values> {
  await sleep(IDLE_MS);
  const usage = target.usage();
  return usage ? { [key]: usage.rss_mb } : {};
}
