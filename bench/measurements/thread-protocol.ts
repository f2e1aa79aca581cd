import { v7 } from "uuid";
import { median } from "../load.ts";
import type { Figure, Measurement, Values } from "../measurement.ts";
import { type Server, serverOf } from "../target.ts";
import { readThread, ThreadContinuity, type Transport } from "../thread-reader.ts";

const TRANSPORTS: readonly Transport[] = ["sse", "websocket"];
const NAMES: Record<Transport, string> = { sse: "server-sent events", websocket: "WebSocket" };
const WARM_UP = 10;
const LATER_READS = 5;

const figuresOf = (transport: Transport): Figure[] => [
  {
    key: `${transport}_above_ms`,
    label: `thread protocol (${NAMES[transport]}): first event, above that of POST /runs/stream, p50, ms`,
    goal: { against: "itself", max: 10 },
  },
  {
    key: `${transport}_replay`,
    label: `thread protocol (${NAMES[transport]}): replay of 10,000 events after a restart (quick: 1,000), events/s`,
    goal: { against: "itself", min: 50_000 },
  },
];

/** The first custom event of a new run beside that of the run API, and all events of a run after a restart. */
export const threadProtocol: Measurement = {
  name: "thread-protocol",
  without: ["floor", "peer"],
  figures: [
    { key: "run_first_ms", label: "first event of POST /runs/stream, p50, ms" },
    ...TRANSPORTS.flatMap(figuresOf),
  ],
  async measure(start, { single_streams: times, replay_events: events }) {
    await using target = await start();
    const server = serverOf(target);
    const first = async () => {
      const { sent_at, first_at } = await target.streamCustom("events", { count: 1, in_turns: false });
      return first_at - sent_at;
    };
    const values: Values = { run_first_ms: await repeat(first, times) };
    for (const transport of TRANSPORTS)
      values[`${transport}_above_ms`] =
        (await repeat(() => firstEvent(server, transport), times)) - (values.run_first_ms as number);
    const thread = v7();
    const done = readAll(server, thread, "sse", events);
    await startRun(server, thread, events);
    await done;
    await server.restart();
    for (const transport of TRANSPORTS) {
      const rates: number[] = [];
      for (let time = 0; time < LATER_READS; time++)
        rates.push(events / ((await readAll(server, thread, transport, events)) / 1000));
      values[`${transport}_replay`] = median(rates);
    }
    return values;
  },
};

async function repeat(measure: () => Promise<number>, times: number): Promise<number> {
  const values: number[] = [];
  for (let time = 0; time < times + WARM_UP; time++) values.push(await measure());
  return median(values.slice(WARM_UP));
}

const startRun = (server: Server, thread: string, count: number) =>
  server.send("POST", `/threads/${thread}/commands`, {
    body: { id: 1, method: "run.start", params: { assistant_id: "events", input: { count, in_turns: false } } },
  });

/** @returns the time from the command to the first event of an open stream, in ms */
async function firstEvent(server: Server, transport: Transport): Promise<number> {
  const thread = v7();
  const opened = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<void>();
  let first_at = Number.NaN;
  readThread(
    { port: server.port, path: `/threads/${thread}/stream/events`, transport },
    {
      onOpen: () => opened.resolve(),
      onEvent: () => {
        first_at = performance.now();
      },
      onEnd: (error) => (error ? ended.reject(error) : ended.resolve()),
    },
  );
  await opened.promise;
  const sent_at = performance.now();
  await startRun(server, thread, 1);
  await ended.promise;
  return first_at - sent_at;
}

/** @returns the time from the connection to the end of the run, in ms */
async function readAll(server: Server, thread: string, transport: Transport, events: number): Promise<number> {
  const continuity = new ThreadContinuity();
  const started_at = performance.now();
  await new Promise<void>((resolve, reject) => {
    readThread(
      { port: server.port, path: `/threads/${thread}/stream/events`, transport },
      {
        onEvent: (event) => continuity.add(event),
        onEnd: (error) => (error ? reject(error) : resolve()),
      },
    );
  });
  const { custom, gaps } = continuity;
  if (custom !== events || gaps > 0) throw new Error(`A thread had ${custom} of ${events} events and ${gaps} gaps.`);
  return performance.now() - started_at;
}
