import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import type { Database } from "../../platform/database/database.ts";
import { countActiveRuns, oldestDueMs } from "../storage/run-overview.ts";
import type { RunRow } from "../storage/schema.ts";
import { durationOf, type LoggedRun } from "./run-log.ts";

const WAIT_BUCKETS_S = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];
const DURATION_BUCKETS_S = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3_600];

export interface RunMetricsOptions {
  registry: Registry;
  database: Database;
  /** Returns the number of requests of this process that wait for events or the end of a run. */
  readers(): number;
}

/**
 * Metrics of the engine. Counters and histograms are those of this process; the gauges of active runs are those of the database, so they
 * are the same in each process.
 */
export class RunMetrics {
  readonly #wait: Histogram;
  readonly #duration: Histogram<"status">;
  readonly #host_failures: Counter;
  readonly #skipped_traces: Counter;

  constructor({ registry, database, readers }: RunMetricsOptions) {
    const registers = [registry];
    this.#wait = new Histogram({
      name: "threadmill_run_wait_seconds",
      help: "Time from the creation or scheduled start of a run to its first claim, for runs claimed by this process.",
      buckets: WAIT_BUCKETS_S,
      registers,
    });
    this.#duration = new Histogram({
      name: "threadmill_run_duration_seconds",
      help: "Time from the first claim of a run to its end, by status, for runs ended by this process.",
      labelNames: ["status"],
      buckets: DURATION_BUCKETS_S,
      registers,
    });
    this.#host_failures = new Counter({
      name: "threadmill_graph_host_failures_total",
      help: "Graph hosts that exited unexpectedly or stopped responding.",
      registers,
    });
    this.#skipped_traces = new Counter({
      name: "threadmill_traces_skipped_total",
      help: "Runs that were not traced because too many traces were waiting to be stored.",
      registers,
    });
    // While the database is unavailable, these gauges are omitted, so that the other metrics stay readable.
    new Gauge({
      name: "threadmill_runs",
      help: "Active runs in the database, by status.",
      labelNames: ["status"],
      registers,
      async collect() {
        this.reset();
        for (const status of ["pending", "running"] as const) {
          const count = await countActiveRuns(database.search, status).catch(() => undefined);
          if (count !== undefined) this.set({ status }, count);
        }
      },
    });
    new Gauge({
      name: "threadmill_run_oldest_due_seconds",
      help: "Time since the oldest due run became due, or 0 if no run is due.",
      registers,
      async collect() {
        this.remove();
        const age_ms = await oldestDueMs(database.search).catch(() => undefined);
        if (age_ms !== undefined) this.set(age_ms / 1_000);
      },
    });
    new Gauge({
      name: "threadmill_run_readers",
      help: "Open requests to this process that are streaming a run or waiting for it to end.",
      registers,
      collect() {
        this.set(readers());
      },
    });
  }

  onClaim({ epoch, start_at, started_at }: RunRow): void {
    if (epoch === 1 && started_at !== null) this.#wait.observe(Math.max(0, started_at - start_at) / 1_000);
  }

  /** @param status of the run, or `rolled_back` for a run that a rollback deleted */
  onEnd(run: LoggedRun, status: string): void {
    this.#duration.observe({ status }, durationOf(run) / 1_000);
  }

  onHostFailure(): void {
    this.#host_failures.inc();
  }

  onSkippedTrace(): void {
    this.#skipped_traces.inc();
  }
}
