import { moveOf } from "./differences.ts";

/** Which examples changed, by their places, the largest changes first. */
export interface Changes {
  improved: number[];
  regressed: number[];
}

/** The changes from a baseline; NaN is a missing score, and an example without both of its scores has not changed. */
export function changesOf(
  baseline: Float64Array,
  other: Float64Array,
  { lower_is_better = false, threshold = 0 }: { lower_is_better?: boolean; threshold?: number } = {},
): Changes {
  const up: number[] = [];
  const down: number[] = [];
  for (let i = 0; i < Math.min(baseline.length, other.length); i++) {
    const [before, after] = [baseline[i] as number, other[i] as number];
    if (!Number.isFinite(before) || !Number.isFinite(after)) continue;
    const move = moveOf(before, after, threshold);
    if (move > 0) up.push(i);
    else if (move < 0) down.push(i);
  }
  const size = (i: number): number => Math.abs((other[i] as number) - (baseline[i] as number));
  const bySize = (places: number[]): number[] => places.sort((a, b) => size(b) - size(a) || a - b);
  return lower_is_better
    ? { improved: bySize(down), regressed: bySize(up) }
    : { improved: bySize(up), regressed: bySize(down) };
}
