import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Measurement } from "../measurement.ts";
import { temporaryFolder } from "../processes.ts";
import { startReaders } from "../start-readers.ts";
import { serverOf, type Target } from "../target.ts";
import { watchMemory } from "../watch-memory.ts";
import { startTicks } from "./readers.ts";

const READERS_PER_RUN = 10;
const EVENTS = 30;
const INTERVAL_MS = 1_000;

const title = "10,000 readers of 1,000 runs (quick: 500 of 50), one event of 200 bytes per second and run";

/**
 * Ten readers of each of many active runs. Each must receive every event once and in order. Then the same with one of the ten that does not
 * read until the others have ended; it must receive all events, too, and the others must not be later.
 */
export const manyReaders: Measurement = {
  name: "many-readers",
  without: ["floor", "peer"],
  figures: [
    {
      key: "lag_p99_ms",
      label: `${title}: from written to read, p99, ms`,
      goal: { against: "itself", max: 1_000 },
    },
    { key: "lag_p50_ms", label: `${title}: from written to read, p50, ms` },
    {
      key: "rss_mb",
      label: `${title}: resident memory, maximum, MB`,
      goal: { against: "itself", max: 600 },
    },
    { key: "runs_mb", label: `${title}: resident memory with the runs, before the readers, MB` },
    { key: "open_mb", label: `${title}: resident memory with the readers, before the events, MB` },
    { key: "slow_lag_p99_ms", label: "the same while one of ten readers does not read, for the others: p99, ms" },
    { key: "slow_ratio", label: "... relative to the p99 without these readers", goal: { against: "itself", max: 2 } },
    { key: "slow_rss_mb", label: "... resident memory, maximum, MB" },
  ],
  async measure(start, { open_streams: readers }) {
    const fast = await measureReaders(await start(manyRuns(readers)), readers);
    const slow = await measureReaders(await start(manyRuns(readers)), readers, READERS_PER_RUN);
    return {
      ...fast,
      slow_lag_p99_ms: slow.lag_p99_ms,
      slow_ratio: slow.lag_p99_ms / fast.lag_p99_ms,
      slow_rss_mb: slow.rss_mb,
    };
  },
};

/** One host executes all runs. */
const manyRuns = (readers: number) => ({ N_JOBS_PER_WORKER: String(readers / READERS_PER_RUN), THREADMILL_HOSTS: "1" });

/** @param slow one reader of each run in so many does not read */
async function measureReaders(started: Target, readers: number, slow?: number) {
  await using target = started;
  const server = serverOf(target);
  const go = join(temporaryFolder(), "go");
  const input = { go, count: EVENTS, every_ms: INTERVAL_MS };
  const paths: string[] = [];
  while (paths.length < readers / READERS_PER_RUN) paths.push(await startTicks(server, input));
  const runs_mb = target.usage()?.rss_mb ?? Number.NaN;
  const all = await startReaders({ port: server.port, paths, readers, custom: EVENTS, ...(slow && { slow }) });
  const open_mb = target.usage()?.rss_mb ?? Number.NaN;
  const memory = watchMemory(target);
  writeFileSync(go, "");
  const { lag_p50_ms, lag_p99_ms } = await all.waitForEnd();
  return { lag_p50_ms, lag_p99_ms, runs_mb, open_mb, rss_mb: Math.max(...memory.stop()) };
}
