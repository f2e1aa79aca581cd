import { v7 } from "uuid";
import { drive } from "../load.ts";
import type { Figure, Measurement, Sizes, Values } from "../measurement.ts";
import type { Target } from "../target.ts";

interface Kind {
  key: string;
  title: string;
  graph: string;
  input: object;
}

const KINDS: readonly Kind[] = [
  { key: "step", title: "one node", graph: "step", input: { text: "hello" } },
  {
    key: "messages",
    title: "one node with messages",
    graph: "messages",
    input: { messages: [{ role: "user", content: "hello" }] },
  },
  { key: "ten", title: "ten steps", graph: "steps", input: { count: 0, until: 10 } },
];
const CONCURRENCY = 32;

const figures = ({ key, title }: Kind): Figure[] => [
  { key: `${key}_p50_ms`, label: `${title}: p50, ms`, goal: { against: "floor", max: 4 } },
  {
    key: `${key}_per_second`,
    label: `${title}, ${CONCURRENCY} concurrent: runs/s`,
    goal: { against: "floor", min: 0.5 },
  },
  {
    key: `${key}_cpu_ms`,
    label: `${title}, ${CONCURRENCY} concurrent: CPU time of the server per run, ms`,
    goal: { against: "floor", max: 2.5 },
  },
];

/** What durable runs cost beside LangGraph's own cost, for the graphs that people run: each run on a new thread. */
export const runCost: Measurement = {
  name: "run-cost",
  on_postgres: true,
  figures: KINDS.flatMap(figures),
  async measure(start, sizes) {
    await using target = await start();
    const values: Values = {};
    for (const kind of KINDS) Object.assign(values, await measureKind(target, kind, sizes));
    return values;
  },
};

async function measureKind(
  target: Target,
  { key, graph, input }: Kind,
  { warm_up_seconds, load_seconds }: Sizes,
): Promise<Values> {
  const run = () => target.run(graph, input, v7());
  await drive(8, { seconds: warm_up_seconds }, run);
  const { p50_ms } = await drive(1, { seconds: load_seconds }, run);
  const before = target.usage();
  const { calls, per_second } = await drive(CONCURRENCY, { seconds: load_seconds }, run);
  const after = target.usage();
  return {
    [`${key}_p50_ms`]: p50_ms,
    [`${key}_per_second`]: per_second,
    ...(before && after && { [`${key}_cpu_ms`]: (after.cpu_ms - before.cpu_ms) / calls }),
  };
}
