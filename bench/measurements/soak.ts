import { randomUUID } from "node:crypto";
import { sleep } from "../load.ts";
import type { Measurement, Values } from "../measurement.ts";
import { serverOf, type Target } from "../target.ts";

const INTERVAL_MS = 500;
const MAX_THREADS = 500;
const EVENTS = 50;
/** Part of the time in which the service allocates what it keeps, such as its caches and the heaps of its threads. */
const WARM_UP = 1 / 6;

interface Sample {
  minutes: number;
  rss_mb: number;
}

/** Growth of the resident memory under a light load of all kinds of requests, on a number of threads that stays the same. */
export const soak: Measurement = {
  name: "soak",
  without: ["floor", "peer"],
  on_postgres: true,
  minutes: (sizes) => sizes.soak_minutes,
  figures: [
    {
      key: "growth",
      label: "growth of the resident memory under constant load, MB per minute",
      goal: { against: "itself", max: 1 },
    },
    { key: "end_mb", label: "resident memory at the end, MB" },
    { key: "runs", label: "runs until then" },
  ],
  async measure(start, sizes) {
    await using target = await start();
    const threads: string[] = [];
    const samples: Sample[] = [];
    const started_at = performance.now();
    const minutes = () => (performance.now() - started_at) / 60_000;
    let runs = 0;
    while (minutes() < sizes.soak_minutes) {
      const next = sleep(INTERVAL_MS);
      runs += await useThread(target, threads);
      const usage = target.usage();
      if (usage && minutes() > sizes.soak_minutes * WARM_UP) samples.push({ minutes: minutes(), rss_mb: usage.rss_mb });
      await next;
    }
    const values: Values = { runs };
    const last = samples.at(-1);
    return last ? { ...values, growth: slopeOf(samples), end_mb: last.rss_mb } : values;
  },
};

/** @returns the number of runs */
async function useThread(target: Target, threads: string[]): Promise<number> {
  const server = serverOf(target);
  const thread_id = randomUUID();
  threads.push(thread_id);
  await target.run("step", { text: "hello" }, thread_id);
  await target.run("step", { text: "again" }, thread_id);
  await target.runStateless("step", { text: "once" });
  await target.streamCustom("events", { count: EVENTS, in_turns: true });
  await server.send("GET", `/threads/${thread_id}/state`);
  await server.send("POST", `/threads/${thread_id}/history`, { body: { limit: 10 } });
  await server.send("POST", "/threads/search", { body: { limit: 10, status: "idle" } });
  await server.send("PATCH", `/threads/${thread_id}`, { body: { metadata: { used: true } } });
  const oldest = threads.length > MAX_THREADS && threads.shift();
  if (oldest) await server.send("DELETE", `/threads/${oldest}`, { status: 204 });
  return 4;
}

/** By least squares, in MB per minute. */
function slopeOf(samples: readonly Sample[]): number {
  const mean = (key: keyof Sample) => samples.reduce((sum, sample) => sum + sample[key], 0) / samples.length;
  const [x, y] = [mean("minutes"), mean("rss_mb")];
  const covariance = samples.reduce((sum, one) => sum + (one.minutes - x) * (one.rss_mb - y), 0);
  return covariance / samples.reduce((sum, one) => sum + (one.minutes - x) ** 2, 0);
}
