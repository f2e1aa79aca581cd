import { median } from "../load.ts";
import type { Figure, Goal, Measurement, Values } from "../measurement.ts";
import type { StreamTimes, Target } from "../target.ts";

/** Events per stream. */
const EVENTS = 1_000;
const CONCURRENCY = 50;

interface Variant {
  key: string;
  title: string;
  in_turns: boolean;
  goal?: Goal;
}

/**
 * With `in_turns` the node yields after each event, as with the tokens of a model, so events can be sent while the node runs. Without it, a
 * server that shares its thread with the node sends all events in a burst at the end: compare the overall rate, not the rate in a stream.
 */
const VARIANTS: Variant[] = [
  { key: "turns", title: "custom events in turns", in_turns: true, goal: { against: "peer", min: 4 } },
  { key: "burst", title: "custom events in one go", in_turns: false },
];

/** Streams of custom events, sequential and concurrent. */
export const customEvents: Measurement = {
  name: "custom-events",
  figures: VARIANTS.flatMap((variant) => [...figures(variant, 1), ...figures(variant, CONCURRENCY)]),
  async measure(start, sizes) {
    await using target = await start();
    const values: Values = {};
    for (const variant of VARIANTS) {
      await measureStreams(target, variant, 2, 2);
      Object.assign(values, await measureStreams(target, variant, 1, sizes.single_streams));
      Object.assign(values, await measureStreams(target, variant, CONCURRENCY, sizes.stream_batches));
    }
    return values;
  },
};

/** With concurrent streams the goal is for all of them together: the rate of each stream falls with their number. */
function figures({ key, title, goal }: Variant, concurrency: number): Figure[] {
  const [prefix, streams] = [`${key}_c${concurrency}`, `${title}, ${concurrency} at once`];
  const [one, all] = concurrency === 1 ? [goal, undefined] : [undefined, goal];
  return [
    { key: `${prefix}_first_ms`, label: `${streams}: first event, ms` },
    { key: `${prefix}_in_stream`, label: `${streams}: events/s in a stream, first to last`, goal: one },
    { key: `${prefix}_overall`, label: `${streams}: events/s of all streams, request to last`, goal: all },
  ];
}

/** Takes `times` batches of `concurrency` streams. Returns medians over all streams, or over batches for the overall rate. */
async function measureStreams(target: Target, variant: Variant, concurrency: number, times: number): Promise<Values> {
  const input = { count: EVENTS, in_turns: variant.in_turns };
  const streams: StreamTimes[] = [];
  const overall: number[] = [];
  for (let time = 0; time < times; time++) {
    const started_at = performance.now();
    const batch = await Promise.all(Array.from({ length: concurrency }, () => target.streamCustom("events", input)));
    const short = batch.find(({ events }) => events !== EVENTS);
    if (short) throw new Error(`A stream had ${short.events} custom events instead of ${EVENTS}.`);
    overall.push((concurrency * EVENTS * 1000) / (Math.max(...batch.map(({ last_at }) => last_at)) - started_at));
    streams.push(...batch);
  }
  const prefix = `${variant.key}_c${concurrency}`;
  return {
    [`${prefix}_first_ms`]: median(streams.map(({ sent_at, first_at }) => first_at - sent_at)),
    [`${prefix}_in_stream`]: median(streams.map(inStreamRate)),
    [`${prefix}_overall`]: median(overall),
  };
}

const inStreamRate = ({ events_after_first, first_at, last_at }: StreamTimes) =>
  (events_after_first * 1000) / (last_at - first_at);
