/** What a load came to. */
export interface Load {
  calls: number;
  /** Finished calls by second. */
  per_second: number;
  /** Half of the calls took at most this long, in ms. */
  p50_ms: number;
  /** 99 of 100 calls took at most this long, in ms. */
  p99_ms: number;
}

/**
 * Calls from `concurrency` loops at once, each waiting for its call before it makes the next.
 *
 * @param until how long to begin new calls, in seconds, or how many calls to make
 */
export async function drive(
  concurrency: number,
  until: { seconds: number } | { calls: number },
  call: () => Promise<unknown>,
): Promise<Load> {
  const took_ms: number[] = [];
  const began = performance.now();
  let begun = 0;
  const goesOn = () => ("calls" in until ? begun < until.calls : performance.now() - began < until.seconds * 1000);
  const loop = async () => {
    while (goesOn()) {
      begun += 1;
      const called = performance.now();
      await call();
      took_ms.push(performance.now() - called);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, loop));
  const seconds = (performance.now() - began) / 1000;
  return {
    calls: took_ms.length,
    per_second: took_ms.length / seconds,
    p50_ms: quantile(took_ms, 0.5),
    p99_ms: quantile(took_ms, 0.99),
  };
}

/** The smallest value that at least this share of the values does not exceed; NaN of nothing. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN;
}

/** The middle value, or the mean of the two in the middle; NaN of nothing. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const [low, high] = [sorted[Math.floor((sorted.length - 1) / 2)], sorted[Math.floor(sorted.length / 2)]];
  return low === undefined || high === undefined ? Number.NaN : (low + high) / 2;
}

export const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
