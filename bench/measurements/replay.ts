import { v7 } from "uuid";
import { median } from "../load.ts";
import type { Measurement } from "../measurement.ts";
import { Continuity, readStream, type StreamAddress } from "../stream-reader.ts";
import { serverOf } from "../target.ts";

/** Reads after the first. */
const TIMES = 9;

const title = "replay of 10,000 events after a restart (quick: 1,000)";

/**
 * A run's events, read from the first one after the server was stopped and started again. The peer takes no part: it
 * keeps events in memory alone.
 */
export const replay: Measurement = {
  name: "replay",
  without: ["floor", "peer"],
  figures: [
    { key: "first_per_second", label: `${title}: events/s, first read`, goal: { against: "itself", at_least: 50_000 } },
    {
      key: "later_per_second",
      label: `${title}: events/s, later reads`,
      goal: { against: "itself", at_least: 50_000 },
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
    const run = JSON.parse(await server.ask("POST", `/threads/${thread}/runs`, { body })) as { run_id: string };
    const path = `/threads/${thread}/runs/${run.run_id}`;
    await server.ask("GET", `${path}/join`);
    const read = async () => events / (await readAll({ port: server.port, path: `${path}/stream` }, events));
    // For the reader's own sake: it is not to be measured while it warms up.
    for (let time = 0; time < 3; time++) await read();
    await server.restart();
    const first = await read();
    const later: number[] = [];
    for (let time = 0; time < TIMES; time++) later.push(await read());
    return { first_per_second: first, later_per_second: median(later) };
  },
};

/** @returns how long it took from connecting to the stream's end, in seconds */
async function readAll(address: StreamAddress, events: number): Promise<number> {
  const continuity = new Continuity();
  const began = performance.now();
  await new Promise<void>((resolve, reject) => {
    readStream(address, {
      onEvent: (event) => continuity.see(event),
      onEnd: (error) => (error ? reject(error) : resolve()),
    });
  });
  const seconds = (performance.now() - began) / 1000;
  const { custom, breaks } = continuity;
  if (custom !== events || breaks > 0) throw new Error(`A replay told ${custom} custom events with ${breaks} breaks.`);
  return seconds;
}
