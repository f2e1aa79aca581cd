/** The result of a load. */
export interface Load {
  calls: number;
  /** Finished calls per second. */
  per_second: number;
  /** Median duration of a call, in ms. */
  p50_ms: number;
  /** 99th percentile of the duration of a call, in ms. */
  p99_ms: number;
}

/**
 * Calls a function in `concurrency` concurrent loops. Each loop waits for its call before the next.
 *
 * @param until time in which new calls start, number of calls, or whether no more calls start
 */
export async function drive(
  concurrency: number,
  until: { seconds: number } | { calls: number } | { isOver(): boolean },
  call: () => Promise<unknown>,
): Promise<Load> {
  const durations_ms: number[] = [];
  const started_at = performance.now();
  let started = 0;
  const hasNext = () => {
    if ("isOver" in until) return !until.isOver();
    return "calls" in until ? started < until.calls : performance.now() - started_at < until.seconds * 1000;
  };
  const loop = async () => {
    while (hasNext()) {
      started += 1;
      const called_at = performance.now();
      await call();
      durations_ms.push(performance.now() - called_at);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, loop));
  const seconds = (performance.now() - started_at) / 1000;
  return {
    calls: durations_ms.length,
    per_second: durations_ms.length / seconds,
    p50_ms: quantile(durations_ms, 0.5),
    p99_ms: quantile(durations_ms, 0.99),
  };
}

/** The smallest value that is not less than this share of the values; NaN for an empty list. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN;
}

/** The median; NaN for an empty list. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const [low, high] = [sorted[Math.floor((sorted.length - 1) / 2)], sorted[Math.floor(sorted.length / 2)]];
  return low === undefined || high === undefined ? Number.NaN : (low + high) / 2;
}

export const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
