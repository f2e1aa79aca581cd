const MASK_64 = (1n << 64n) - 1n;

/**
 * Random numbers that are the same on every machine: xoshiro128** 1.1 by David Blackman and Sebastiano Vigna
 * (https://prng.di.unimi.it/xoshiro128starstar.c). Its period is 2^128 - 1; for statistics, not for secrets.
 */
export class Random {
  readonly #state: Int32Array;

  /** @param state four 32-bit integers, not all 0; see {@link seededRandom} */
  constructor(state: ArrayLike<number>) {
    this.#state = Int32Array.from(state);
  }

  /** A whole number from 0 to 2^32 - 1. */
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
   * A whole number from 0 to `n` - 1, `n` at most 2^32. Multiplies and shifts without rejection (Lemire 2019): some
   * numbers are more likely than others by at most n / 2^32, one in 400,000 for n = 10,000.
   */
  below(n: number): number {
    return (this.nextUint32() * (n * 2 ** -32)) >>> 0;
  }
}

/**
 * The generator of a seed. Its state is the first two outputs of splitmix64 (https://prng.di.unimi.it/splitmix64.c), as
 * Blackman and Vigna advise, so that seeds close to each other start far apart.
 *
 * @throws RangeError when the seed is not a whole number
 */
export function seededRandom(seed: number): Random {
  const first = BigInt(seed) + 0x9e3779b97f4a7c15n;
  const words = [first, first + 0x9e3779b97f4a7c15n].map(mix64);
  return new Random(words.flatMap((word) => [Number(word & 0xffffffffn), Number(word >> 32n)]));
}

/** The output function of splitmix64: scatters 64 bits. */
function mix64(counter: bigint): bigint {
  let word = counter & MASK_64;
  word = ((word ^ (word >> 30n)) * 0xbf58476d1ce4e5b9n) & MASK_64;
  word = ((word ^ (word >> 27n)) * 0x94d049bb133111ebn) & MASK_64;
  return word ^ (word >> 31n);
}
