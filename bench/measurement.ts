import type { Target } from "./target.ts";

/** A measurement, which is the same for all subjects. */
export interface Measurement {
  /** Name on the command line. */
  name: string;
  figures: readonly Figure[];
  /** Repetitions per round; default 1. */
  times_per_round?: number;
  /** Subjects that do not support the measurement. */
  without?: readonly ("floor" | "peer")[];
  /** Also measure Threadmill on Postgres. */
  on_postgres?: boolean;
  /** Measure only Threadmill on Postgres. */
  only_postgres?: boolean;
  /** Minutes that it takes by itself. It is only measured when it is named. */
  minutes?: (sizes: Sizes) => number;
  /** Starts targets (servers with additional variables), measures them once, and stops them. Omits figures that are not available on this machine. */
  measure(start: (env?: Record<string, string>) => Promise<Target>, sizes: Sizes): Promise<Values>;
}

/** Values by the key of their figure. */
export type Values = Record<string, number>;

/** A row of the table. */
export interface Figure {
  key: string;
  /** Description with the unit. */
  label: string;
  goal?: Goal;
  /** A figure of the same process. The report shows the ratio to it in brackets. */
  base?: Figure;
}

/** A limit of the ratio to another subject, or with `itself` of the figure. */
export type Goal = { against: "floor" | "peer" | "itself" } & ({ max: number } | { min: number });

/** The sizes of all measurements. */
export interface Sizes {
  /** Load before a measurement, in seconds. */
  warm_up_seconds: number;
  /** Load at each concurrency, in seconds. */
  load_seconds: number;
  /** Number of sequential streams. */
  single_streams: number;
  /** Number of batches of concurrent streams. */
  stream_batches: number;
  /** Runs on a growing thread. */
  growing_runs: number;
  /** Number of first and last runs that are compared. */
  growing_window: number;
  /** Runs before the second reading of the memory. */
  memory_runs: number;
  /** Requests of GET /ok, the base of other latencies. */
  ok_calls: number;
  /** Cancelled runs at each concurrency. */
  cancels: number;
  rollbacks: number;
  /** Concurrent readers of a run, and the events of the run. */
  readers: number;
  reader_events: number;
  /** Stored events; a multiple of 10,000. */
  stored_events: number;
  /** Concurrent open streams. */
  open_streams: number;
  /** Bodies of 100 runs. */
  trace_bodies: number;
  /** Runs of each load with and without traces. */
  traced_runs: number;
  /** OpenTelemetry requests of 512 spans. */
  span_requests: number;
  /** Bodies of 20 MiB at the same time. */
  large_trace_bodies: number;
  /** Examples of the dataset that the clients evaluate. */
  evaluate_examples: number;
  /** Traces of the largest project that is read. */
  trace_roots: number;
  /** Items of the store. */
  store_items: number;
  /** Hourly crons; a multiple of 60. */
  crons: number;
  /** Events of a run that is read after a restart. */
  replay_events: number;
  /** Rows of each of ten experiments. */
  experiment_rows: number;
  /** Requests of each kind to the experiments. */
  experiment_calls: number;
  /** Requests through the router during the switches. */
  switched_calls: number;
  /** Duration of the load under which the memory is observed. */
  soak_minutes: number;
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
  stored_events: 100_000_000,
  trace_bodies: 500,
  traced_runs: 1_000,
  span_requests: 100,
  large_trace_bodies: 8,
  evaluate_examples: 1_000,
  trace_roots: 1_000_000,
  store_items: 100_000,
  crons: 10_020,
  replay_events: 10_000,
  experiment_rows: 10_000,
  experiment_calls: 100,
  switched_calls: 10_000,
  soak_minutes: 60,
};

/** Enough to check that everything works, too small for meaningful figures. */
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
  stored_events: 100_000,
  trace_bodies: 30,
  traced_runs: 100,
  span_requests: 5,
  large_trace_bodies: 2,
  evaluate_examples: 20,
  trace_roots: 5_000,
  store_items: 2_000,
  crons: 600,
  replay_events: 1_000,
  experiment_rows: 200,
  experiment_calls: 5,
  switched_calls: 1_000,
  soak_minutes: 0.5,
};
