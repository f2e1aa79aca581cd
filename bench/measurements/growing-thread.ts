import { randomUUID } from "node:crypto";
import type { Figure, Measurement, Sizes, Values } from "../measurement.ts";
import type { Target } from "../target.ts";

interface Variant {
  key: string;
  title: string;
  graph: string;
  /** The list in the state that grows, and by how many items a run. */
  list: string;
  items_per_run: number;
  input(index: number): object;
}

const VARIANTS: Variant[] = [
  {
    key: "lines",
    title: "growing thread, a string a run",
    graph: "lines",
    list: "lines",
    items_per_run: 1,
    input: (index) => ({ text: `This is line ${index}.` }),
  },
  {
    key: "messages",
    title: "growing thread, two messages a run",
    graph: "messages",
    list: "messages",
    items_per_run: 2,
    input: (index) => ({ messages: [{ role: "user", content: `This is question ${index}.` }] }),
  },
];

const figures = ({ key, title }: Variant): Figure[] => [
  {
    key: `${key}_growth`,
    label: `${title}: CPU time a run, last to first runs`,
    goal: { against: "itself", at_most: 1.5 },
  },
  { key: `${key}_cpu_first_ms`, label: `${title}: CPU time a run, first runs, ms` },
  { key: `${key}_cpu_last_ms`, label: `${title}: CPU time a run, last runs, ms` },
  { key: `${key}_run_ms`, label: `${title}: time a run, ms` },
];

/** Runs one after another on one thread whose state grows: what a run costs should not. */
export const growingThread: Measurement = {
  name: "growing-thread",
  figures: VARIANTS.flatMap(figures),
  async measure(start, sizes) {
    await using target = await start();
    const values: Values = {};
    for (const variant of VARIANTS) Object.assign(values, await grow(target, variant, sizes));
    return values;
  },
};

async function grow(
  target: Target,
  variant: Variant,
  { growing_runs: runs, growing_window: window }: Sizes,
): Promise<Values> {
  // Another thread warms up, so that the first runs are not dear for being the first.
  await runInARow(target, variant, window);
  const thread = randomUUID();
  const began = performance.now();
  const first = await runInARow(target, variant, window, thread);
  await runInARow(target, variant, runs - 2 * window, thread, window);
  const last = await runInARow(target, variant, window, thread, runs - window);
  const { key } = variant;
  const time = { [`${key}_run_ms`]: (performance.now() - began) / runs };
  if (first === undefined || last === undefined) return time;
  return { [`${key}_growth`]: last / first, [`${key}_cpu_first_ms`]: first, [`${key}_cpu_last_ms`]: last, ...time };
}

/** @returns CPU time of each run, in ms; undefined where that cannot be read */
async function runInARow(
  target: Target,
  variant: Variant,
  runs: number,
  thread: string = randomUUID(),
  before = 0,
): Promise<number | undefined> {
  const used_ms = target.usage()?.cpu_ms;
  for (let index = before; index < before + runs; index++) {
    const values = await target.run(variant.graph, variant.input(index), thread);
    const [length, expected] = [(values[variant.list] as unknown[]).length, (index + 1) * variant.items_per_run];
    if (length !== expected)
      throw new Error(`${variant.list} holds ${length} items after ${index + 1} runs instead of ${expected}.`);
  }
  const usage = target.usage();
  return usage && used_ms !== undefined ? (usage.cpu_ms - used_ms) / runs : undefined;
}
