import { drive } from "../load.ts";
import type { Figure, Goal, Sizes, Values } from "../measurement.ts";

export interface LoadGoals {
  rate?: Goal;
  p50?: Goal;
}

/** The figures of a load with this concurrency. */
export const loadFigures = (title: string, concurrency: number, goals: LoadGoals = {}): Figure[] => [
  { key: `c${concurrency}_per_second`, label: `${title}, ${concurrency} concurrent: runs/s`, goal: goals.rate },
  { key: `c${concurrency}_p50_ms`, label: `${title}, ${concurrency} concurrent: p50, ms`, goal: goals.p50 },
  { key: `c${concurrency}_p99_ms`, label: `${title}, ${concurrency} concurrent: p99, ms` },
];

/** Warms up, then measures a load at each concurrency. */
export async function measureLoads(
  concurrencies: readonly number[],
  sizes: Sizes,
  call: () => Promise<unknown>,
): Promise<Values> {
  await drive(8, { seconds: sizes.warm_up_seconds }, call);
  const values: Values = {};
  for (const concurrency of concurrencies) {
    const load = await drive(concurrency, { seconds: sizes.load_seconds }, call);
    values[`c${concurrency}_per_second`] = load.per_second;
    values[`c${concurrency}_p50_ms`] = load.p50_ms;
    values[`c${concurrency}_p99_ms`] = load.p99_ms;
  }
  return values;
}
