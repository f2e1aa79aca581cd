/**
 * Readers of event streams in a separate process, so that their CPU time and memory do not count as the server's. Prints a line of JSON
 * when all streams are open, and another when all have ended.
 *
 * Usage: node bench/reader-process.ts '{"port": 1234, "paths": ["..."], "readers": 1000, "custom": 1000}'
 */
import type { Socket } from "node:net";
import { quantile } from "./load.ts";
import { Continuity, readStream, type StreamListener } from "./stream-reader.ts";
import { readThread, ThreadContinuity, type Transport } from "./thread-reader.ts";

/** The argument of the process. */
export interface ReadersOptions {
  port: number;
  /** Paths of streams, assigned to the readers in turn. */
  paths: string[];
  readers: number;
  /** Expected custom events per reader. */
  custom: number;
  /** Of each path, one reader in so many stops reading after its first event, until all others have ended. Its times do not count. */
  slow?: number;
  /** The streams are those of threads, in the thread protocol. */
  transport?: Transport | undefined;
}

/** Printed when all streams are open. */
export interface AllOpen {
  /** From the first connection to the first event of the last stream. */
  opened_ms: number;
}

/** Printed when all streams have ended. */
export interface AllEnded {
  /** Readers that did not receive each event once and in order. */
  failures: string[];
  /** From the write to the read of an event, over all readers; NaN (null in JSON) for events without a time. */
  lag_p50_ms: number;
  lag_p99_ms: number;
  lag_max_ms: number;
  /** CPU time of this process since all streams were open. */
  cpu_ms: number;
}

/** Streams that are being opened concurrently. */
const CONCURRENCY = 200;

const options = JSON.parse(process.argv[2] ?? "{}") as ReadersOptions;
/** The monotonic clock of the machine in ms, which all processes share. */
const clock = () => Number(process.hrtime.bigint()) / 1e6;
const started_at = clock();
const lags_ms: number[] = [];
const failures: string[] = [];
const paused: Socket[] = [];
let [started, opened, ended] = [0, 0, 0];
let opened_cpu = process.cpuUsage();

for (let index = 0; index < Math.min(CONCURRENCY, options.readers); index++) read();

function read(): void {
  const reader = started++;
  const path = options.paths[reader % options.paths.length] as string;
  const { port, transport, slow } = options;
  const isSlow = slow !== undefined && Math.floor(reader / options.paths.length) % slow === 0;
  const continuity = transport ? new ThreadContinuity() : new Continuity();
  const start = (listener: StreamListener) =>
    transport ? readThread({ port, path, transport }, listener) : readStream({ port, path }, listener);
  let isOpen = false;
  const open = () => {
    if (isOpen) return;
    isOpen = true;
    if (isSlow) paused.push((socket as Socket).pause());
    onOpen();
  };
  const socket = start({
    // The first event of a run says that its stream is open. Threads have no such event.
    ...(transport && { onOpen: open }),
    onEvent(event) {
      const at = event.indexOf('"at":');
      if (at !== -1 && !isSlow) lags_ms.push(clock() - Number.parseFloat(event.slice(at + 5, at + 30)));
      continuity.add(event);
      open();
    },
    onEnd(error) {
      const { custom, gaps } = continuity;
      if (error || gaps > 0 || custom !== options.custom)
        failures.push(`Reader ${reader}: ${error?.message ?? `${custom} custom events, ${gaps} gaps`}.`);
      // A stream that failed to open must not block the next ones.
      open();
      ended += 1;
      if (ended === options.readers - paused.length) for (const one of paused) one.resume();
      if (ended === options.readers) printEnd();
    },
  });
}

function onOpen(): void {
  opened += 1;
  if (started < options.readers) read();
  if (opened < options.readers) return;
  opened_cpu = process.cpuUsage();
  console.log(JSON.stringify({ opened_ms: clock() - started_at } satisfies AllOpen));
}

function printEnd(): void {
  const { user, system } = process.cpuUsage(opened_cpu);
  const result: AllEnded = {
    failures: failures.slice(0, 5),
    lag_p50_ms: quantile(lags_ms, 0.5),
    lag_p99_ms: quantile(lags_ms, 0.99),
    lag_max_ms: quantile(lags_ms, 1),
    cpu_ms: (user + system) / 1000,
  };
  console.log(JSON.stringify(result));
}
