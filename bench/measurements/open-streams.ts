import { v7 } from "uuid";
import { sleep } from "../load.ts";
import type { Measurement } from "../measurement.ts";
import { startReaders } from "../start-readers.ts";
import { serverOf, type Target } from "../target.ts";
import { startWaiting, stopWaiting } from "./waiting-run.ts";

/** As many runs as a graph host executes concurrently. */
const RUNS = 50;
/** The streams stay open for two heartbeats. */
const OPEN_MS = 11_000;
const FEW = 500;

const title = "10,000 open streams (quick: 500)";

/**
 * Streams of waiting runs. Each must receive the events of its run, and end when the run is stopped. The peer is excluded because it
 * executes only ten runs concurrently.
 */
export const openStreams: Measurement = {
  name: "open-streams",
  without: ["floor", "peer"],
  figures: [
    {
      key: "opened_s",
      label: `${title}: from the first connection to the first event of the last stream, s`,
      goal: { against: "itself", max: 15 },
    },
    {
      key: "open_mb",
      label: `${title}: resident memory after 11 s, MB`,
      goal: { against: "itself", max: 600 },
    },
    { key: "before_mb", label: `${title}: resident memory before, MB` },
    { key: "stream_kb", label: `${title}: resident memory per stream, KB` },
    { key: "open_cpu_ms", label: `${title}: CPU time per second while idle, ms` },
    {
      key: "few_mb",
      label: `${FEW} open streams: growth of the resident memory, MB`,
      goal: { against: "itself", max: 20 },
    },
  ],
  async measure(start, { open_streams: streams }) {
    const few = await measureStreams(await start(), FEW);
    const { opened_s, before_mb, open_mb, open_cpu_ms } = await measureStreams(await start(), streams);
    const stream_kb = ((open_mb - before_mb) * 1000) / streams;
    return { opened_s, open_mb, before_mb, stream_kb, open_cpu_ms, few_mb: few.open_mb - few.before_mb };
  },
};

/** Opens streams, and stops the server. Without /proc, all values but the first are NaN. */
async function measureStreams(started: Target, streams: number) {
  await using target = started;
  const server = serverOf(target);
  const runs = await Promise.all(Array.from({ length: RUNS }, () => startWaiting(server, v7(), 0)));
  const before = target.usage();
  const paths = runs.map(({ path }) => `${path}/stream`);
  const readers = await startReaders({ port: server.port, paths, readers: streams, custom: 1 });
  const opened = target.usage();
  await sleep(OPEN_MS);
  const open = target.usage();
  await Promise.all(runs.map((run) => stopWaiting(server, run, "interrupt")));
  await readers.waitForEnd();
  return {
    opened_s: readers.open.opened_ms / 1000,
    before_mb: before?.rss_mb ?? Number.NaN,
    open_mb: open?.rss_mb ?? Number.NaN,
    open_cpu_ms: (((open?.cpu_ms ?? Number.NaN) - (opened?.cpu_ms ?? Number.NaN)) * 1000) / OPEN_MS,
  };
}
