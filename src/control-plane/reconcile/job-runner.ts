import type { Wait } from "../../platform/lib/clock.ts";
import { remove } from "../cleanup/deployment-removal.ts";
import { prune } from "../cleanup/garbage-collection.ts";
import { backOffMs } from "../drivers/driver.ts";
import { ListenerUnavailableError } from "../drivers/listener/connections.ts";
import { activate, awaitReady, build, ensure } from "../rollout/rollout-jobs.ts";
import { restart, stop, watch } from "./instance-jobs.ts";
import { type DeploymentContext, RetryableDriverError, settledWithin } from "./reconciler-context.ts";
import { type Job, type JobFailure, type JobOf, keyOf } from "./steps.ts";

type RunJob<J extends Job> = (job: J, context: DeploymentContext, signal: AbortSignal) => Promise<void>;

export const runJob: RunJob<Job> = (job, context, signal) => {
  const run: RunJob<never> = JOBS[job.kind];
  return run(job as never, context, signal);
};

const JOBS: { [K in Job["kind"]]: RunJob<JobOf<K>> } = {
  build,
  ensure,
  readiness: awaitReady,
  watch,
  restart,
  stop,
  activate,
  prune,
  remove,
};

interface RunningJob {
  readonly abort: AbortController;
  aborted: boolean;
  ended: Promise<void>;
}

interface JobRunnerOptions {
  run(job: Job, signal: AbortSignal): Promise<void>;
  /** Returns false if the controller is closed. The failure is then not recorded. */
  onFailure(error: unknown, fields: { job: string; failures: number }, isRepeated: boolean): boolean;
  /** Called when a job has ended or can be retried. */
  onChange(): void;
  wait: Wait;
  abort_ms: number;
}

/** Runs the jobs of a deployment. */
export class JobRunner {
  readonly #options: JobRunnerOptions;
  readonly #closing = new AbortController();
  /** Running jobs by key. At most one job with the same key runs at a time. */
  readonly running = new Map<string, RunningJob>();
  /** Failures since the last success, by key of the job. */
  readonly failures = new Map<string, JobFailure>();
  ended_count = 0;

  constructor(options: JobRunnerOptions) {
    this.#options = options;
  }

  start(job: Job): void {
    const key = keyOf(job);
    const running: RunningJob = { abort: new AbortController(), aborted: false, ended: Promise.resolve() };
    this.running.set(key, running);
    running.ended = this.#options
      .run(job, running.abort.signal)
      .then(
        () => void this.failures.delete(key),
        (error) => this.#onFailure(key, error),
      )
      .finally(() => this.#onEnd(key, running));
  }

  /** A job that ignores its abort counts as ended after `abort_ms`. */
  abort(key: string): void {
    const running = this.running.get(key);
    if (!running) return;
    running.aborted = true;
    running.abort.abort();
    void this.#withinAbortTime(running.ended).then(() => this.#onEnd(key, running));
  }

  abortAll(): void {
    this.#closing.abort();
    for (const { abort } of this.running.values()) abort.abort();
  }

  /** Waits at most `abort_ms` for the running jobs to end. */
  settled(): Promise<void> {
    return this.#withinAbortTime(Promise.all([...this.running.values()].map(({ ended }) => ended)));
  }

  #withinAbortTime(ended: Promise<unknown>): Promise<void> {
    return settledWithin(this.#options.abort_ms, ended, this.#options.wait);
  }

  #onEnd(key: string, running: RunningJob): void {
    if (this.running.get(key) === running) this.running.delete(key);
    this.ended_count++;
    this.#options.onChange();
  }

  /** Records the failure and starts the back-off before the retry. Changes of the deployment do not shorten the back-off. */
  #onFailure(key: string, error: unknown): void {
    // A listener that is not connected is waited for, until the deadline of the rollout.
    const isCounted = error instanceof RetryableDriverError && !(error.cause instanceof ListenerUnavailableError);
    const count = (this.failures.get(key)?.count ?? 0) + (isCounted ? 1 : 0);
    const isRepeated = !isCounted && this.failures.has(key);
    if (!this.#options.onFailure(error, { job: key, failures: count }, isRepeated)) return;
    const failure = { count, backing_off: true };
    this.failures.set(key, failure);
    void this.#options.wait(backOffMs(Math.max(1, count)), this.#closing.signal).then(() => {
      failure.backing_off = false;
      this.#options.onChange();
    });
  }
}
