import { v7 } from "uuid";
import { median } from "../load.ts";
import type { Measurement } from "../measurement.ts";
import { Continuity, readStream, type StreamAddress } from "../stream-reader.ts";
import { serverOf } from "../target.ts";

/** Number of reads after the first. */
const LATER_READS = 9;

const title = "replay of 10,000 events after a restart (quick: 1,000)";

/**
 * Reads the events of a run from the first one after a restart of the server. The peer is excluded because it keeps events only in memory.
 */
export const replay: Measurement = {
  name: "replay",
  without: ["floor", "peer"],
  figures: [
    { key: "first_per_second", label: `${title}: events/s, first read`, goal: { against: "itself", min: 50_000 } },
    {
      key: "later_per_second",
      label: `${title}: events/s, later reads`,
      goal: { against: "itself", min: 50_000 },
    },
  ],
  async measure(start, { replay_events: events }) {
    await using target = await start();
    const server = serverOf(target);
    const thread = v7();
    const body = {
      assistant_id: "events",
      input: { count: events, in_turns: false },
      stream_mode: ["custom"],
      if_not_exists: "create",
    };
    const run = JSON.parse(await server.send("POST", `/threads/${thread}/runs`, { body })) as { run_id: string };
    const path = `/threads/${thread}/runs/${run.run_id}`;
    await server.send("GET", `${path}/join`);
    const read = async () => events / (await readAll({ port: server.port, path: `${path}/stream` }, events));
    // Warm up the reader.
    for (let time = 0; time < 3; time++) await read();
    await server.restart();
    const first = await read();
    const later: number[] = [];
    for (let time = 0; time < LATER_READS; time++) later.push(await read());
    return { first_per_second: first, later_per_second: median(later) };
  },
};

/** @returns the time from the connection to the end of the stream, in seconds */
async function readAll(address: StreamAddress, events: number): Promise<number> {
  const continuity = new Continuity();
  const started_at = performance.now();
  await new Promise<void>((resolve, reject) => {
    readStream(address, {
      onEvent: (event) => continuity.add(event),
      onEnd: (error) => (error ? reject(error) : resolve()),
    });
  });
  const seconds = (performance.now() - started_at) / 1000;
  const { custom, gaps } = continuity;
  if (custom !== events || gaps > 0)
    throw new Error(`A replay had ${custom} custom events and ${gaps} gaps, expected ${events} events.`);
  return seconds;
}
