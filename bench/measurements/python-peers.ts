import { join } from "node:path";
import { v7 } from "uuid";
import { pythonEnvironment } from "../../test/support/python.ts";
import { drive, median } from "../load.ts";
import type { Figure, Measurement, Values } from "../measurement.ts";
import { createDatabase } from "../postgres.ts";
import { pythonPeers } from "../python-peers.ts";
import type { Target } from "../target.ts";

const ROUNDS = 3;
const FIRST_EVENTS = 20;

const figuresOf = (key: string, label: string): Figure[] => [
  { key: `${key}_per_s`, label: `${label}: create + wait, 10 concurrent, runs/s` },
  { key: `${key}_p50_ms`, label: "... one at a time, p50, ms" },
  { key: `${key}_first_ms`, label: "... first custom event of a run, p50, ms" },
];

/** The same graph in Python on Threadmill and on other servers, in rounds that alternate between them. */
export const pythonPeersMeasurement: Measurement = {
  name: "python-peers",
  only_postgres: true,
  figures: [
    ...figuresOf("own", "Python graph on Threadmill"),
    ...pythonPeers.flatMap(({ key, label }) => figuresOf(key, `... on ${label}`)),
    ...pythonPeers.map(({ key, label }) => ({ key: `${key}_ratio`, label: `... Threadmill, of ${label}, runs/s` })),
  ],
  async measure(startOwn, sizes) {
    const env = { BENCH_GRAPHS: join(import.meta.dirname, "../graphs/python/langgraph.json") };
    await using stack = new AsyncDisposableStack();
    const own = stack.use(
      await startOwn({ ...env, THREADMILL_PYTHON: await pythonEnvironment(), THREADMILL_HOSTS: "1" }),
    );
    const targets: [key: string, target: Target][] = [["own", own]];
    for (const { key, start } of pythonPeers)
      targets.push([key, stack.use(await start(await createDatabase(`threadmill_bench_${key}`)))]);
    const run = (target: Target) => () => target.run("step", { text: "hello" }, v7());
    for (const [, target] of targets) await drive(10, { seconds: sizes.warm_up_seconds }, run(target));
    const found: Record<string, number[]> = {};
    for (let round = 0; round < ROUNDS; round++) {
      for (const [key, target] of targets) {
        const firsts: number[] = [];
        const add = (figure: string, value: number) => {
          const name = `${key}_${figure}`;
          found[name] = [...(found[name] ?? []), value];
        };
        add("per_s", (await drive(10, { seconds: sizes.load_seconds }, run(target))).per_second);
        add("p50_ms", (await drive(1, { seconds: sizes.load_seconds / 2 }, run(target))).p50_ms);
        for (let n = 0; n < FIRST_EVENTS; n++) {
          const { sent_at, first_at } = await target.streamCustom("events", { count: 1 });
          firsts.push(first_at - sent_at);
        }
        add("first_ms", median(firsts));
      }
    }
    const values: Values = Object.fromEntries(Object.entries(found).map(([key, each]) => [key, median(each)]));
    for (const { key } of pythonPeers)
      values[`${key}_ratio`] = (values.own_per_s ?? Number.NaN) / (values[`${key}_per_s`] ?? Number.NaN);
    return values;
  },
};
