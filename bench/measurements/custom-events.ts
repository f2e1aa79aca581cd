import { median } from "../load.ts";
import type { Figure, Goal, Measurement, Values } from "../measurement.ts";
import type { StreamTimes, Target } from "../target.ts";

/** Events in each stream. */
const EVENTS = 1_000;
const AT_ONCE = 50;

interface Variant {
  key: string;
  title: string;
  in_turns: boolean;
  goal?: Goal;
}

/**
 * Written in turns, events can go out while the node writes, as with a model's tokens. Written in one go, they all
 * wait for the node in a server that shares its thread with it, and then come in a burst: there the rate within a
 * stream means little, and the overall rate is the one to look at.
 */
const VARIANTS: Variant[] = [
  { key: "turns", title: "custom events in turns", in_turns: true, goal: { against: "peer", at_least: 4 } },
  { key: "burst", title: "custom events in one go", in_turns: false },
];

/** Streams of custom events, one after another and many at once. */
export const customEvents: Measurement = {
  name: "custom-events",
  figures: VARIANTS.flatMap((variant) => [...figures(variant, 1), ...figures(variant, AT_ONCE)]),
  async measure(start, sizes) {
    await using target = await start();
    const values: Values = {};
    for (const variant of VARIANTS) {
      await takeStreams(target, variant, 2, 2);
      Object.assign(values, await takeStreams(target, variant, 1, sizes.single_streams));
      Object.assign(values, await takeStreams(target, variant, AT_ONCE, sizes.stream_batches));
    }
    return values;
  },
};

/** With many at once the goal is for all of them: each alone is the slower the more are served at the same time. */
function figures({ key, title, goal }: Variant, concurrency: number): Figure[] {
  const [prefix, streams] = [`${key}_c${concurrency}`, `${title}, ${concurrency} at once`];
  const [one, all] = concurrency === 1 ? [goal, undefined] : [undefined, goal];
  return [
    { key: `${prefix}_first_ms`, label: `${streams}: first event, ms` },
    { key: `${prefix}_in_stream`, label: `${streams}: events/s in a stream, first to last`, goal: one },
    { key: `${prefix}_overall`, label: `${streams}: events/s of all streams, request to last`, goal: all },
  ];
}

/** Takes `times` batches of `concurrency` streams each, and gives medians over all streams or, for the overall rate, batches. */
async function takeStreams(target: Target, variant: Variant, concurrency: number, times: number): Promise<Values> {
  const input = { count: EVENTS, in_turns: variant.in_turns };
  const streams: StreamTimes[] = [];
  const overall: number[] = [];
  for (let time = 0; time < times; time++) {
    const began = performance.now();
    const batch = await Promise.all(Array.from({ length: concurrency }, () => target.streamCustom("events", input)));
    const short = batch.find(({ events }) => events !== EVENTS);
    if (short) throw new Error(`A stream had ${short.events} custom events instead of ${EVENTS}.`);
    overall.push((concurrency * EVENTS * 1000) / (Math.max(...batch.map(({ last_at }) => last_at)) - began));
    streams.push(...batch);
  }
  const prefix = `${variant.key}_c${concurrency}`;
  return {
    [`${prefix}_first_ms`]: median(streams.map(({ asked_at, first_at }) => first_at - asked_at)),
    [`${prefix}_in_stream`]: median(streams.map(inStreamRate)),
    [`${prefix}_overall`]: median(overall),
  };
}

const inStreamRate = ({ events_after_first, first_at, last_at }: StreamTimes) =>
  (events_after_first * 1000) / (last_at - first_at);
