import { v7 } from "uuid";
import { sleep } from "../load.ts";
import type { Measurement, Values } from "../measurement.ts";
import { startReaders } from "../start-readers.ts";
import { serverOf } from "../target.ts";
import { startWaiting, stopWaiting } from "./waiting-run.ts";

/** As many runs as a graph host executes concurrently. */
const RUNS = 50;
/** The streams stay open for two heartbeats. */
const OPEN_MS = 11_000;

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
    await readers.waitForEnd();
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
