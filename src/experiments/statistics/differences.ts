/** A number keeps 53 bits, and a score may be the mean of several: it is off by no more than about this share of itself. */
const ROUNDOFF = 2 ** -50;

/** Paired differences of stored scores, by pair. */
export interface Differences {
  deltas: Float64Array;
  /** How far each delta can be off, because both of its scores were rounded. */
  roundoff: Float64Array;
}

/** `to` minus `from`, both without NaN and equally long. */
export function differencesOf(from: Float64Array, to: Float64Array): Differences {
  const deltas = Float64Array.from(to, (value, i) => value - (from[i] as number));
  const roundoff = Float64Array.from(to, (value, i) => roundoffOf(value, from[i] as number));
  return { deltas, roundoff };
}

const roundoffOf = (a: number, b: number): number => ROUNDOFF * (Math.abs(a) + Math.abs(b));

/**
 * Whether a score rose (1) or fell (-1) by the threshold or more, or neither (0). 0.9 - 0.8, which is 0.09999999999999998,
 * reaches 0.1; what rounding alone may have moved has not moved.
 */
export function moveOf(before: number, after: number, threshold: number): -1 | 0 | 1 {
  const size = Math.abs(after - before);
  const roundoff = roundoffOf(before, after);
  if (size <= roundoff || size + roundoff < threshold) return 0;
  return after > before ? 1 : -1;
}

/**
 * The deltas with those made equal in size that rounding alone may have set apart, and those made 0 that it may have
 * moved from there. 0.4 - 0.3 and 0.3 - 0.2 differ by 5.6e-17, 1/3 - 0 and 1 - 2/3 by as much: tests by rank would take
 * the noise for an order.
 */
export function withoutRoundoff({ deltas, roundoff }: Differences): Float64Array {
  const sizes = deltas.map(Math.abs);
  const ascending = Uint32Array.from(deltas.keys()).sort((a, b) => (sizes[a] as number) - (sizes[b] as number));
  const settled = new Float64Array(deltas.length);
  // All are compared with the smallest of their group, not with the one before: chains of small steps must not merge.
  let group = { size: 0, roundoff: 0 };
  for (const i of ascending) {
    const size = sizes[i] as number;
    const own = roundoff[i] as number;
    if (size - group.size > group.roundoff + own) group = { size, roundoff: own };
    settled[i] = group.size * Math.sign(deltas[i] as number);
  }
  return settled;
}
