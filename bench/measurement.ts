import type { Target } from "./target.ts";

/** One thing that is measured, in the same way of every subject. */
export interface Measurement {
  /** For the command line. */
  name: string;
  figures: readonly Figure[];
  /** How many times it is taken in each round; 1 when not given. */
  times_per_round?: number;
  /** Subjects that do not take part, since they have nothing to be measured. */
  without?: readonly ("floor" | "peer")[];
  /** Taken of Threadmill on Postgres, too. */
  on_postgres?: boolean;
  /** Takes it once, of a target that it starts itself and stops. Figures that cannot be had here are left out. */
  measure(start: () => Promise<Target>, sizes: Sizes): Promise<Values>;
}

/** Values by the figure's key. */
export type Values = Record<string, number>;

/** A row of the table. */
export interface Figure {
  key: string;
  /** What it is, with its unit. */
  label: string;
  goal?: Goal;
  /** A figure of the same process; the report says in brackets how many times that this one is. */
  beside?: Figure;
}

/** Compared with another subject as a ratio; with `itself`, the figure as it is. */
export type Goal = { against: "floor" | "peer" | "itself" } & ({ at_most: number } | { at_least: number });

/** How much of everything is done. */
export interface Sizes {
  /** Load before a measurement that does not count, in seconds. */
  warm_up_seconds: number;
  /** Load at each concurrency, in seconds. */
  load_seconds: number;
  /** Streams one after another. */
  single_streams: number;
  /** How often many streams at once are taken. */
  stream_batches: number;
  /** Runs on a growing thread. */
  growing_runs: number;
  /** The first and the last this many of them are compared. */
  growing_window: number;
  /** Runs after which memory is read again. */
  memory_runs: number;
  /** Requests of GET /ok that other latencies are put beside. */
  ok_calls: number;
  /** Cancelled runs at each concurrency. */
  cancels: number;
  rollbacks: number;
  /** Readers of one run at the same time, and the events that it tells them. */
  readers: number;
  reader_events: number;
  /** Streams that are open at the same time. */
  open_streams: number;
  /** Events of a run that are read again after a restart. */
  replay_events: number;
  /** Rows of each of ten experiments. */
  experiment_rows: number;
  /** Requests of each kind to them. */
  experiment_calls: number;
  /** Requests through the router while it switches. */
  switched_calls: number;
}

export const FULL: Sizes = {
  warm_up_seconds: 3,
  load_seconds: 5,
  single_streams: 10,
  stream_batches: 2,
  growing_runs: 500,
  growing_window: 100,
  memory_runs: 5_000,
  ok_calls: 1_000,
  cancels: 200,
  rollbacks: 50,
  readers: 1_000,
  reader_events: 1_000,
  open_streams: 10_000,
  replay_events: 10_000,
  experiment_rows: 10_000,
  experiment_calls: 100,
  switched_calls: 10_000,
};

/** Enough to see that everything works; the figures say little. */
export const QUICK: Sizes = {
  warm_up_seconds: 0.5,
  load_seconds: 1,
  single_streams: 3,
  stream_batches: 1,
  growing_runs: 40,
  growing_window: 10,
  memory_runs: 200,
  ok_calls: 50,
  cancels: 10,
  rollbacks: 3,
  readers: 50,
  reader_events: 200,
  open_streams: 500,
  replay_events: 1_000,
  experiment_rows: 200,
  experiment_calls: 5,
  switched_calls: 1_000,
};
