import { v7 } from "uuid";
import { sleep } from "../load.ts";
import type { Measurement, Values } from "../measurement.ts";
import { startReaders } from "../start-readers.ts";
import { serverOf } from "../target.ts";
import { startWaiting, stopWaiting } from "./waiting-run.ts";

/** Runs that the streams are of: as many as one graph host takes at a time. */
const RUNS = 50;
/** How long the streams stay open: two heartbeats. */
const OPEN_MS = 11_000;

const title = "10,000 open streams (quick: 500)";

/**
 * Streams of runs that wait. Each must get the run's events, and must end when the run is stopped. The peer takes no
 * part: it executes ten runs at a time.
 */
export const openStreams: Measurement = {
  name: "open-streams",
  without: ["floor", "peer"],
  figures: [
    {
      key: "opened_s",
      label: `${title}: from the first connection to the first event of the last, s`,
      goal: { against: "itself", at_most: 15 },
    },
    {
      key: "open_mb",
      label: `${title}: resident memory after 11 s, MB`,
      goal: { against: "itself", at_most: 600 },
    },
    { key: "before_mb", label: `${title}: resident memory before, MB` },
    { key: "stream_kb", label: `${title}: resident memory a stream, KB` },
    { key: "open_cpu_ms", label: `${title}: CPU time a second while nothing happens, ms` },
  ],
  async measure(start, { open_streams: streams }) {
    await using target = await start();
    const server = serverOf(target);
    const runs = await Promise.all(Array.from({ length: RUNS }, () => startWaiting(server, v7(), 0)));
    const before = target.usage();
    const paths = runs.map(({ path }) => `${path}/stream`);
    const readers = await startReaders({ port: server.port, paths, readers: streams, custom: 1 });
    const opened = target.usage();
    await sleep(OPEN_MS);
    const open = target.usage();
    await Promise.all(runs.map((run) => stopWaiting(server, run, "interrupt")));
    await readers.ended();
    const values: Values = { opened_s: readers.open.opened_ms / 1000 };
    if (!before || !opened || !open) return values;
    return {
      ...values,
      open_mb: open.rss_mb,
      before_mb: before.rss_mb,
      stream_kb: ((open.rss_mb - before.rss_mb) * 1000) / streams,
      open_cpu_ms: ((open.cpu_ms - opened.cpu_ms) * 1000) / OPEN_MS,
    };
  },
};
