import { randomUUID } from "node:crypto";
import { drive, sleep } from "../load.ts";
import type { Measurement, Values } from "../measurement.ts";
import type { Target } from "../target.ts";

/** Quiet before memory is read, so that what was only for the moment may be gone. */
const QUIET_MS = 2_000;

/** Resident memory of the process. */
export const memory: Measurement = {
  name: "memory",
  figures: [
    { key: "idle_mb", label: "resident memory, idle after one run, MB", goal: { against: "peer", at_most: 1 } },
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
  await sleep(QUIET_MS);
  const usage = target.usage();
  return usage ? { [key]: usage.rss_mb } : {};
}
