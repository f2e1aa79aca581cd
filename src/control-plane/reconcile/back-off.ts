const FIRST_MS = 1_000;
const LONGEST_MS = 60_000;

/** How long to wait after the n-th failure in a row, n from 1 on: 1 s, 2 s, 4 s ... 60 s. */
export const backOff = (failures: number): number => Math.min(FIRST_MS * 2 ** (failures - 1), LONGEST_MS);
