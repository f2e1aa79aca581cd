/**
 * Readers of event streams, in a process of their own, so that they are not counted as the server's. Prints a line of
 * JSON when all streams are open, and another when all have ended.
 *
 * Started as: node bench/reader-process.ts '{"port": 1234, "paths": ["..."], "readers": 1000, "custom": 1000}'
 */
import { quantile } from "./load.ts";
import { Continuity, readStream } from "./stream-reader.ts";

/** What the process that starts this one tells it. */
export interface ReadersOrder {
  port: number;
  /** Of streams; the readers take turns with them. */
  paths: string[];
  readers: number;
  /** Custom events that each is to get. */
  custom: number;
}

/** All readers have their streams. */
export interface AllOpen {
  /** From the first connection to the first event of the last stream. */
  opened_ms: number;
}

/** All streams have ended. */
export interface AllEnded {
  /** Sentences about readers that did not get each event once and in order. */
  complaints: string[];
  /** From writing an event to reading it, of all events of all readers; NaN (in JSON null) when events do not say when they were written. */
  lag_p50_ms: number;
  lag_p99_ms: number;
  lag_max_ms: number;
  /** User and system time of this process from when all were open. */
  cpu_ms: number;
}

/** Connections that are opened at the same time. */
const AT_ONCE = 200;

const order = JSON.parse(process.argv[2] ?? "{}") as ReadersOrder;
/** The machine's steady clock, in ms: the same one in all its processes. */
const clock = () => Number(process.hrtime.bigint()) / 1e6;
const began = clock();
const lags_ms: number[] = [];
const complaints: string[] = [];
let [begun, open, ended] = [0, 0, 0];
let opened_cpu = process.cpuUsage();

for (let index = 0; index < Math.min(AT_ONCE, order.readers); index++) read();

function read(): void {
  const reader = begun++;
  const path = order.paths[reader % order.paths.length] as string;
  const continuity = new Continuity();
  let isOpen = false;
  readStream(
    { port: order.port, path },
    {
      onEvent(event) {
        const at = event.indexOf('"at":');
        if (at !== -1) lags_ms.push(clock() - Number.parseFloat(event.slice(at + 5, at + 30)));
        continuity.see(event);
        if (!isOpen) onOpen();
        isOpen = true;
      },
      onEnd(error) {
        const { custom, breaks } = continuity;
        if (error || breaks > 0 || custom !== order.custom)
          complaints.push(`Reader ${reader}: ${error?.message ?? `${custom} custom events, ${breaks} breaks`}.`);
        // One that cannot begin must not keep the others waiting.
        if (!isOpen) onOpen();
        ended += 1;
        if (ended === order.readers) tellEnd();
      },
    },
  );
}

function onOpen(): void {
  open += 1;
  if (begun < order.readers) read();
  if (open < order.readers) return;
  opened_cpu = process.cpuUsage();
  console.log(JSON.stringify({ opened_ms: clock() - began } satisfies AllOpen));
}

function tellEnd(): void {
  const { user, system } = process.cpuUsage(opened_cpu);
  const result: AllEnded = {
    complaints: complaints.slice(0, 5),
    lag_p50_ms: quantile(lags_ms, 0.5),
    lag_p99_ms: quantile(lags_ms, 0.99),
    lag_max_ms: quantile(lags_ms, 1),
    cpu_ms: (user + system) / 1000,
  };
  console.log(JSON.stringify(result));
}
