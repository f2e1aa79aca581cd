import { percentile } from "./describe.ts";

export interface BootstrapOptions {
  resamples?: number;
  /** The confidence level, between 0 and 1. */
  level?: number;
  /** The same seed gives the same interval. */
  seed: number;
}

/**
 * The confidence interval of the mean of paired differences by percentile bootstrap (Efron and Tibshirani 1993, chapter 13).
 * Takes 0.1 s on one core for n = 10,000 and 2,000 resamples.
 *
 * @param deltas one finite number per example, the mean over its repetitions; not empty
 * @returns [low, high]
 * @throws RangeError when deltas is empty, resamples is not a positive integer, or level is not between 0 and 1
 */
export function bootstrapMeanInterval(
  deltas: Float64Array,
  { resamples = 2_000, level = 0.95, seed }: BootstrapOptions,
): [low: number, high: number] {
  const first = deltas[0];
  if (first === undefined) throw new RangeError("The bootstrap needs at least one difference.");
  if (!Number.isInteger(resamples) || resamples < 1)
    throw new RangeError(`The number of resamples must be a positive integer, not ${resamples}.`);
  if (!(level > 0 && level < 1)) throw new RangeError(`The level must be between 0 and 1, not ${level}.`);
  // Avoids the rounding errors of sums of equal numbers.
  if (deltas.every((delta) => delta === first)) return [first, first];
  const random = seededRandom(seed);
  const means = new Float64Array(resamples);
  for (let i = 0; i < resamples; i++) means[i] = resampledMean(deltas, random);
  means.sort();
  const tail = ((1 - level) / 2) * 100;
  return [percentile(means, tail) as number, percentile(means, 100 - tail) as number];
}

function resampledMean(deltas: Float64Array, random: Random): number {
  const n = deltas.length;
  let sum = 0;
  for (let i = 0; i < n; i++) sum += deltas[random.below(n)] as number;
  return sum / n;
}

const MASK_64 = (1n << 64n) - 1n;

/**
 * A pseudorandom generator with the same output on every machine: xoshiro128** 1.1 by David Blackman and Sebastiano Vigna
 * (https://prng.di.unimi.it/xoshiro128starstar.c), with a period of 2^128 - 1. Not for secrets.
 */
export class Random {
  readonly #state: Int32Array;

  /** @param state four 32-bit integers, not all 0; see {@link seededRandom} */
  constructor(state: ArrayLike<number>) {
    this.#state = Int32Array.from(state);
  }

  /** An integer from 0 to 2^32 - 1. */
  nextUint32(): number {
    const state = this.#state as Int32Array & { 0: number; 1: number; 2: number; 3: number };
    const product = Math.imul(state[1], 5);
    const result = Math.imul((product << 7) | (product >>> 25), 9);
    const shifted = state[1] << 9;
    state[2] ^= state[0];
    state[3] ^= state[1];
    state[1] ^= state[2];
    state[0] ^= state[3];
    state[2] ^= shifted;
    state[3] = (state[3] << 11) | (state[3] >>> 21);
    return result >>> 0;
  }

  /**
   * An integer from 0 to `n` - 1, with `n` at most 2^32. Multiplies and shifts without rejection (Lemire 2019): the bias is at
   * most n / 2^32, 1 in 400,000 for n = 10,000.
   */
  below(n: number): number {
    return (this.nextUint32() * (n * 2 ** -32)) >>> 0;
  }
}

/**
 * Initializes the state with the first two outputs of splitmix64 (https://prng.di.unimi.it/splitmix64.c), as recommended by
 * Blackman and Vigna: close seeds give unrelated states.
 *
 * @throws RangeError when the seed is not an integer
 */
export function seededRandom(seed: number): Random {
  const first = BigInt(seed) + 0x9e3779b97f4a7c15n;
  const words = [first, first + 0x9e3779b97f4a7c15n].map(mix64);
  return new Random(words.flatMap((word) => [Number(word & 0xffffffffn), Number(word >> 32n)]));
}

/** The output function of splitmix64. */
function mix64(counter: bigint): bigint {
  let word = counter & MASK_64;
  word = ((word ^ (word >> 30n)) * 0xbf58476d1ce4e5b9n) & MASK_64;
  word = ((word ^ (word >> 27n)) * 0x94d049bb133111ebn) & MASK_64;
  return word ^ (word >> 31n);
}
