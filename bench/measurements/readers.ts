import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { v7 } from "uuid";
import { median, sleep } from "../load.ts";
import type { Measurement, Sizes, Values } from "../measurement.ts";
import { temporaryFolder } from "../processes.ts";
import { startReaders } from "../start-readers.ts";
import { type Server, serverOf, type Target } from "../target.ts";
import type { Transport } from "../thread-reader.ts";
import { watchMemory } from "../watch-memory.ts";
import { measureOk, okFigures } from "./ok.ts";

const INTERVAL_MS = 10;
/** Idle time before memory is read for the first time. */
const IDLE_MS = 2_000;
/** Long enough for the first checkpoint of the SQLite WAL, whose thread must not count as memory of readers. */
const WARM_UP = { readers: 20, reader_events: 600 };

/**
 * Many readers of a run that writes 1,000 events (quick: 200) of 200 bytes. They connect before it writes. Each must receive every event once
 * and in order.
 */
export const readers = readersWith("readers", "1,000 readers (quick: 50) of 100 events/s");
/** The same over the thread protocol. */
export const threadReaders = readersWith("thread-readers", "1,000 readers of a thread (server-sent events)", "sse");
export const socketReaders = readersWith("socket-readers", "1,000 readers of a thread (WebSocket)", "websocket");

function readersWith(name: string, title: string, transport?: Transport): Measurement {
  const ok = okFigures(name);
  return {
    name,
    without: transport ? ["floor", "peer"] : ["floor"],
    figures: [
      { key: "lag_p50_ms", label: `${title}: from written to read, p50, ms`, base: ok.p50 },
      {
        key: "lag_p99_ms",
        label: `${title}: from written to read, p99, ms`,
        goal: { against: "itself", max: 500 },
        base: ok.p99,
      },
      { key: "lag_max_ms", label: `${title}: from written to read, max, ms` },
      {
        key: "reader_kb",
        label: `${title}: resident memory per reader during the writes, KB`,
        goal: { against: "itself", max: 20 },
      },
      { key: "reader_peak_kb", label: `${title}: resident memory per reader, peak, KB` },
      { key: "server_us", label: `${title}: CPU time of the server per event and reader, µs` },
      { key: "readers_us", label: `${title}: CPU time of the readers per event and reader, µs` },
      ok.p50,
      ok.p99,
    ],
    async measure(start, sizes) {
      await using target = await start();
      const server = serverOf(target);
      await readTogether(target, server, WARM_UP, transport);
      const values = await measureOk(server, sizes);
      await sleep(IDLE_MS);
      return { ...values, ...(await readTogether(target, server, sizes, transport)) };
    },
  };
}

type ReaderSizes = Pick<Sizes, "readers" | "reader_events">;

async function readTogether(
  target: Target,
  server: Server,
  { readers, reader_events: events }: ReaderSizes,
  transport: Transport | undefined,
): Promise<Values> {
  const before = target.usage();
  const go = join(temporaryFolder(), "go");
  const path = await (transport ? startThread : startTicks)(server, { go, count: events, every_ms: INTERVAL_MS });
  const started = await startReaders({ port: server.port, paths: [path], readers, custom: events, transport });
  const opened = target.usage();
  const memory = watchMemory(target);
  writeFileSync(go, "");
  const { lag_p50_ms, lag_p99_ms, lag_max_ms, cpu_ms } = await started.waitForEnd();
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

/** Input of the graph `ticks`: it writes `count` events, one each `every_ms`, when the file `go` exists. */
interface Ticks {
  go: string;
  count: number;
  every_ms: number;
}

/** Starts a run of the graph `ticks`. @returns the path of its stream */
export async function startTicks(server: Server, input: Ticks): Promise<string> {
  const thread = v7();
  const body = {
    assistant_id: "ticks",
    input,
    stream_mode: ["custom"],
    stream_resumable: true,
    if_not_exists: "create",
  };
  const run = JSON.parse(await server.send("POST", `/threads/${thread}/runs`, { body })) as { run_id: string };
  return `/threads/${thread}/runs/${run.run_id}/stream`;
}

/** The same in the thread protocol. */
async function startThread(server: Server, input: Ticks): Promise<string> {
  const thread = v7();
  const params = { assistant_id: "ticks", input };
  await server.send("POST", `/threads/${thread}/commands`, { body: { id: 1, method: "run.start", params } });
  return `/threads/${thread}/stream/events`;
}
