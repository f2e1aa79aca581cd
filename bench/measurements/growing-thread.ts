import { randomUUID } from "node:crypto";
import { drive } from "../load.ts";
import type { Figure, Measurement, Sizes, Values } from "../measurement.ts";
import type { Server, Target } from "../target.ts";

const HISTORY_RUNS = 300;
const HISTORY_CALLS = 20;

interface Variant {
  key: string;
  title: string;
  graph: string;
  /** The growing list in the state, and the items that each run adds. */
  list: string;
  items_per_run: number;
  input(index: number): object;
}

const LINES: Variant = {
  key: "lines",
  title: "growing thread, one string per run",
  graph: "lines",
  list: "lines",
  items_per_run: 1,
  input: (index) => ({ text: `This is line ${index}.` }),
};
const MESSAGES: Variant = {
  key: "messages",
  title: "growing thread, two messages per run",
  graph: "messages",
  list: "messages",
  items_per_run: 2,
  input: (index) => ({ messages: [{ role: "user", content: `This is question ${index}.` }] }),
};
const VARIANTS = [LINES, MESSAGES];

const figures = ({ key, title }: Variant): Figure[] => [
  {
    key: `${key}_growth`,
    label: `${title}: CPU time per run, last to first runs`,
    goal: { against: "itself", max: 1.5 },
  },
  { key: `${key}_cpu_first_ms`, label: `${title}: CPU time per run, first runs, ms` },
  { key: `${key}_cpu_last_ms`, label: `${title}: CPU time per run, last runs, ms` },
  { key: `${key}_run_ms`, label: `${title}: time per run, ms` },
];

/** Sequential runs on a thread whose state grows. The cost of a run should not grow. */
export const growingThread: Measurement = {
  name: "growing-thread",
  figures: [
    ...VARIANTS.flatMap(figures),
    {
      key: "history_ms",
      label: `history of ten entries of a thread with ${HISTORY_RUNS} runs and two messages per run: p50, ms`,
      goal: { against: "itself", max: 50 },
    },
  ],
  async measure(start, sizes) {
    await using target = await start();
    const values: Values = {};
    for (const variant of VARIANTS) Object.assign(values, await grow(target, variant, sizes));
    return { ...values, ...(target.server && (await measureHistory(target, target.server))) };
  },
};

async function measureHistory(target: Target, server: Server): Promise<Values> {
  const thread = randomUUID();
  await runSequentially(target, MESSAGES, HISTORY_RUNS, thread);
  const read = () => server.send("GET", `/threads/${thread}/history?limit=10`);
  await drive(1, { calls: HISTORY_CALLS }, read);
  const { p50_ms } = await drive(1, { calls: HISTORY_CALLS }, read);
  return { history_ms: p50_ms };
}

async function grow(
  target: Target,
  variant: Variant,
  { growing_runs: runs, growing_window: window }: Sizes,
): Promise<Values> {
  // Warm up on another thread, so that the first runs do not include it.
  await runSequentially(target, variant, window);
  const thread = randomUUID();
  const started_at = performance.now();
  const first = await runSequentially(target, variant, window, thread);
  await runSequentially(target, variant, runs - 2 * window, thread, window);
  const last = await runSequentially(target, variant, window, thread, runs - window);
  const { key } = variant;
  const time = { [`${key}_run_ms`]: (performance.now() - started_at) / runs };
  if (first === undefined || last === undefined) return time;
  return { [`${key}_growth`]: last / first, [`${key}_cpu_first_ms`]: first, [`${key}_cpu_last_ms`]: last, ...time };
}

/** @returns CPU time per run, in ms; undefined without /proc */
async function runSequentially(
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
      throw new Error(`${variant.list} has ${length} items after ${index + 1} runs, expected ${expected}.`);
  }
  const usage = target.usage();
  return usage && used_ms !== undefined ? (usage.cpu_ms - used_ms) / runs : undefined;
}
