import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { v7 } from "uuid";
import { median, sleep } from "../load.ts";
import type { Measurement, Sizes, Values } from "../measurement.ts";
import { temporaryFolder } from "../processes.ts";
import { startReaders } from "../start-readers.ts";
import { type Server, serverOf, type Target } from "../target.ts";
import { watchMemory } from "../watch-memory.ts";
import { measureOk, okFigures } from "./ok.ts";

const EVERY_MS = 10;
/** Quiet before memory is read for the first time. */
const QUIET_MS = 2_000;
/** Long enough that SQLite's log is moved into the database for the first time: the thread for that is no reader's. */
const WARM_UP = { readers: 20, reader_events: 600 };

const ok = okFigures("readers");
const title = "1,000 readers (quick: 50) of 100 events/s";

/**
 * Many readers of one run that writes 1,000 events (quick: 200) of 200 bytes. They join before it writes. Each must get
 * every event once, in order.
 */
export const readers: Measurement = {
  name: "readers",
  without: ["floor"],
  figures: [
    { key: "lag_p50_ms", label: `${title}: from written to read, p50, ms`, beside: ok.p50 },
    {
      key: "lag_p99_ms",
      label: `${title}: from written to read, p99, ms`,
      goal: { against: "itself", at_most: 500 },
      beside: ok.p99,
    },
    { key: "lag_max_ms", label: `${title}: from written to read, longest, ms` },
    {
      key: "reader_kb",
      label: `${title}: resident memory a reader, while it is written, KB`,
      goal: { against: "itself", at_most: 20 },
    },
    { key: "reader_peak_kb", label: `${title}: resident memory a reader, most, KB` },
    { key: "server_us", label: `${title}: the server's CPU time an event and reader, µs` },
    { key: "readers_us", label: `${title}: the readers' own CPU time an event and reader, µs` },
    ok.p50,
    ok.p99,
  ],
  async measure(start, sizes) {
    await using target = await start();
    const server = serverOf(target);
    await readTogether(target, server, WARM_UP);
    const values = await measureOk(server, sizes);
    await sleep(QUIET_MS);
    return { ...values, ...(await readTogether(target, server, sizes)) };
  },
};

type Crowd = Pick<Sizes, "readers" | "reader_events">;

async function readTogether(
  target: Target,
  server: Server,
  { readers, reader_events: events }: Crowd,
): Promise<Values> {
  const before = target.usage();
  const go = join(temporaryFolder(), "go");
  const path = await startTicks(server, go, events);
  const crowd = await startReaders({ port: server.port, paths: [`${path}/stream`], readers, custom: events });
  const opened = target.usage();
  const memory = watchMemory(target);
  writeFileSync(go, "");
  const { lag_p50_ms, lag_p99_ms, lag_max_ms, cpu_ms } = await crowd.ended();
  const after = target.usage();
  const rss_mb = memory.stop();
  const values = { lag_p50_ms, lag_p99_ms, lag_max_ms, readers_us: (cpu_ms * 1000) / (readers * events) };
  if (!before || !opened || !after) return values;
  return {
    ...values,
    server_us: ((after.cpu_ms - opened.cpu_ms) * 1000) / (readers * events),
    reader_kb: ((median(rss_mb) - before.rss_mb) * 1000) / readers,
    reader_peak_kb: ((Math.max(...rss_mb) - before.rss_mb) * 1000) / readers,
  };
}

/** Starts a run that writes once there is a file. @returns its path */
async function startTicks(server: Server, go: string, count: number): Promise<string> {
  const thread = v7();
  const body = {
    assistant_id: "ticks",
    input: { count, every_ms: EVERY_MS, go },
    stream_mode: ["custom"],
    stream_resumable: true,
    if_not_exists: "create",
  };
  const run = JSON.parse(await server.ask("POST", `/threads/${thread}/runs`, { body })) as { run_id: string };
  return `/threads/${thread}/runs/${run.run_id}`;
}
