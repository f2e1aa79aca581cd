import v8 from "node:v8";

/** The heap that a thread begins with, in MB. 0 is V8's default. */
export interface InitialHeap {
  /** A third of the young generation, which may not grow later: see {@link stopGrowth}. */
  semi_space: number;
  /** V8 collects the whole heap for the first time when the old generation has this size. */
  old_space: number;
}

let ordinary: InitialHeap = { semi_space: 0, old_space: 0 };

/** Sets the initial heap of the next thread, which reads these flags of the process before it is online. Then call {@link resetInitialHeap}. */
export function setInitialHeap({ semi_space, old_space }: InitialHeap): void {
  v8.setFlagsFromString(`--min-semi-space-size=${semi_space}`);
  v8.setFlagsFromString(`--initial-old-space-size=${old_space}`);
}

/** Sets the initial heap of all later threads. */
export const resetInitialHeap = (): void => setInitialHeap(ordinary);

/** Lets no young generation of the process grow any more. Threads that start later begin with the given size instead of V8's 1 MB. */
export function stopGrowth(semi_space: number): void {
  v8.setFlagsFromString("--semi-space-growth-factor=1");
  ordinary = { semi_space, old_space: 0 };
  resetInitialHeap();
}

/** From this number of open streams on, V8 collects the old generation at smaller sizes. */
const MANY_STREAMS = 2_000;
/** In percent of what a collection leaves. With 0, V8 decides: the old generation grew from 157 to 492 MB without a collection. */
const GROWTH_PERCENT = 20;

let streams = 0;

/**
 * Counts a stream that opens (1) or closes (-1). Streams produce much garbage that survives the young generation: 10,000 readers of 1,000
 * runs took 990 MB, and take 560 MB with this limit. It is not always set, because runs are then executed 20 % slower.
 */
export function countStream(change: 1 | -1): void {
  const before = streams;
  streams += change;
  if (streams >= MANY_STREAMS !== before >= MANY_STREAMS)
    v8.setFlagsFromString(`--heap-growing-percent=${streams >= MANY_STREAMS ? GROWTH_PERCENT : 0}`);
}
