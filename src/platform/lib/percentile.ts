/**
 * The `p`-th percentile with linear interpolation between the closest ranks: type 7 of Hyndman and Fan (1996), the default of
 * numpy and R.
 *
 * @param sorted numbers in ascending order without NaN
 * @param p from 0 to 100
 * @returns null for an empty list
 * @throws RangeError when p is not within 0 to 100
 */
export function percentile(sorted: Float64Array | number[], p: number): number | null {
  if (!(p >= 0 && p <= 100)) throw new RangeError(`The percentile must be between 0 and 100, not ${p}.`);
  if (sorted.length === 0) return null;
  const rank = (sorted.length - 1) * (p / 100);
  const below = sorted[Math.floor(rank)] as number;
  const above = sorted[Math.ceil(rank)] as number;
  const share = rank - Math.floor(rank);
  // Interpolates from the nearer rank, as numpy does: the result never leaves the range.
  return share < 0.5 ? below + (above - below) * share : above - (above - below) * (1 - share);
}
