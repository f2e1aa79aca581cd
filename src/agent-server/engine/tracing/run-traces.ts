import type { Database } from "../../../platform/database/database.ts";
import { type BackgroundService, periodicService } from "../../../platform/lib/background-service.ts";
import { isUuid, runIdOfSpan } from "../../../platform/lib/ids.ts";
import { isObject } from "../../../platform/lib/json/json.ts";
import type { Log } from "../../../platform/lib/log.ts";
import type { FromHost, RunKwargs, TraceOrder, TraceParent } from "../../graph-hosts/host.ts";
import type { RunRow } from "../../storage/schema.ts";
import { deleteTraceDeletions, listTraceDeletions, markTraceDeletions } from "../../storage/trace-deletions.ts";
import type { RunMetrics } from "../run-metrics.ts";
import type { TraceEnd, TraceQueue } from "./trace-queue.ts";

export interface TracingSettings {
  /** Fraction of runs that are traced, from 0 to 1. */
  tracing_rate: number;
  tracing_project: string | undefined;
  trace_stateless: boolean;
}

/** A run whose host has not sent the end of its trace yet. */
interface OpenTrace {
  run: RunRow;
  /** Set after the run has ended, if its host does not send the whole trace. */
  end?: TraceEnd | undefined;
  timer?: NodeJS.Timeout;
}

/** The outcome of a run, for its trace. */
export interface RunEnd {
  cancelled: boolean;
  status: RunRow["status"];
  error: string | null;
}

/** Maximum time to wait for the end of a trace after its run has ended. */
const LAST_MESSAGE_MS = 5_000;
const WARNING_INTERVAL_MS = 10_000;

const LOST = "the worker was lost";

/** The traces of the runs that this process executes. Tracing never delays a run. */
export class RunTraces {
  readonly #settings: TracingSettings;
  readonly #queue: TraceQueue;
  readonly #log: Log;
  readonly #metrics: Pick<RunMetrics, "onSkippedTrace">;
  readonly #open = new Map<string, OpenTrace>();
  #skipped = 0;
  #warned_at = Number.NEGATIVE_INFINITY;

  constructor(
    settings: TracingSettings,
    queue: TraceQueue,
    { log, metrics }: { log: Log; metrics: Pick<RunMetrics, "onSkippedTrace"> },
  ) {
    this.#settings = settings;
    this.#queue = queue;
    this.#log = log;
    this.#metrics = metrics;
  }

  /** Starts the trace of a claimed run. Returns undefined if the run is not traced. While the queue is full, no new traces start. */
  begin(run: RunRow, kwargs: RunKwargs): TraceOrder | undefined {
    if (!this.#isTraced(run, kwargs)) return undefined;
    if (this.#queue.isFull && run.epoch === 1) return this.#skip();
    this.#open.set(run.run_id, { run });
    return traceOrderOf(run, kwargs, this.#settings.tracing_project);
  }

  onMessage({ run_id, epoch, runs, is_last }: Extract<FromHost, { type: "trace" }>): void {
    const open = this.#open.get(run_id);
    if (open?.run.epoch !== epoch) return;
    if (runs.byteLength > 0) this.#queue.addRuns(open.run.tenant_id, run_id, runs);
    if (is_last) this.#close(open);
  }

  /** Called after a run has ended in the database. */
  onEnd(run: RunRow, end: RunEnd): void {
    const open = this.#open.get(run.run_id);
    // The host sends the whole trace of a run that it has completed in one attempt.
    if (run.epoch > 1 || end.cancelled || end.status === "timeout") {
      const kwargs = JSON.parse(run.kwargs) as RunKwargs;
      const trace_end = this.#endOf(run, kwargs, end);
      if (open) open.end = trace_end;
      else if (run.epoch > 0 && this.#isTraced(run, kwargs)) this.#queue.addEnd(run.tenant_id, trace_end);
    }
    if (!open) return;
    clearTimeout(open.timer);
    open.timer = setTimeout(() => this.#close(open), LAST_MESSAGE_MS).unref();
  }

  /** Called after a run was deleted. The stored runs of its trace are deleted by {@link TraceDeletions}. */
  onDelete(run_id: string): void {
    clearTimeout(this.#open.get(run_id)?.timer);
    this.#open.delete(run_id);
    this.#queue.discard(run_id);
  }

  /** Called when the host of a run died. */
  onHostLost({ run_id, epoch }: RunRow): void {
    if (this.#open.get(run_id)?.run.epoch === epoch) this.#open.delete(run_id);
  }

  /** Called when the process no longer executes an attempt. */
  onStop({ run_id, epoch }: RunRow): void {
    const open = this.#open.get(run_id);
    if (open?.run.epoch === epoch && !open.timer)
      open.timer = setTimeout(() => this.#close(open), LAST_MESSAGE_MS).unref();
  }

  /** Waits up to 1 s for the last messages of hosts, then stops the queue. */
  async stop(): Promise<void> {
    for (let tries = 0; tries < 20 && [...this.#open.values()].some(({ timer }) => timer); tries++)
      await new Promise((resolve) => setTimeout(resolve, 50));
    for (const open of this.#open.values()) this.#close(open);
    await this.#queue.stop();
  }

  #close(open: OpenTrace): void {
    clearTimeout(open.timer);
    if (this.#open.get(open.run.run_id) === open) this.#open.delete(open.run.run_id);
    if (open.end) this.#queue.addEnd(open.run.tenant_id, open.end);
    open.end = undefined;
  }

  #isTraced(run: RunRow, kwargs: RunKwargs): boolean {
    const { tracing_rate, trace_stateless } = this.#settings;
    if (tracing_rate === 0) return false;
    const requested = isRequested(kwargs);
    if (requested || (run.temporary === 1 && !trace_stateless)) return requested;
    return shareOf(run.run_id) < tracing_rate;
  }

  #skip(): undefined {
    this.#skipped++;
    this.#metrics.onSkippedTrace();
    if (performance.now() - this.#warned_at < WARNING_INTERVAL_MS) return;
    this.#warned_at = performance.now();
    this.#log.warn({ skipped: this.#skipped }, "some runs were not traced: too many traces are waiting to be stored");
  }

  #endOf(run: RunRow, kwargs: RunKwargs, { cancelled, status, error }: RunEnd): TraceEnd {
    const message = error === null ? undefined : (JSON.parse(error) as { message: string }).message;
    const replaced = cancelled ? "cancelled" : status === "timeout" ? message : undefined;
    return {
      run_id: run.run_id,
      name: run.graph_id,
      session_name: projectOf(run, kwargs, this.#settings.tracing_project),
      started_at: run.started_at ?? Date.now(),
      error: replaced,
      open_error: replaced ?? LOST,
    };
  }
}

/** Returns a number from 0 to 1, derived from the random last digits of an id, so that all attempts get the same decision. */
const shareOf = (id: string): number => Number.parseInt(id.slice(-8), 16) / 2 ** 32;

/** Maximum lengths, the same as for these fields in `POST /runs`. */
const MAX_PROJECT_CHARS = 1_000;
const MAX_ORDER_CHARS = 10_000;

const DOTTED_ORDER =
  /^\d{8}T\d{12}Z[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(\.\d{8}T\d{12}Z[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})*$/;

/** The `traceparent` header of W3C Trace Context: version, trace ID, parent span ID (captured) and flags. */
const TRACE_PARENT = /^[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}/;

const configurableOf = ({ config }: RunKwargs): Record<string, unknown> => config.configurable ?? {};

/** Whether the request asks for a trace, by `langsmith_tracer` or `langsmith-trace`. `traceparent` does not count: proxies add it. */
const isRequested = (kwargs: RunKwargs): boolean =>
  isObject(kwargs.langsmith_tracer) || parentOf(kwargs)?.kind === "run";

/** Returns the name of the tracing project (`session_name` in the API): from the request, else from the settings, else the graph ID. */
function projectOf({ graph_id }: RunRow, kwargs: RunKwargs, default_project: string | undefined): string {
  const { langsmith_project, "langsmith-project": baggage } = configurableOf(kwargs);
  const [named] = [langsmith_project, baggage].filter((name) => typeof name === "string" && name !== "") as string[];
  return (named ?? default_project ?? graph_id).slice(0, MAX_PROJECT_CHARS);
}

function traceOrderOf(run: RunRow, kwargs: RunKwargs, default_project: string | undefined): TraceOrder {
  const { langsmith_example_id, "langsmith-metadata": metadata, "langsmith-tags": tags } = configurableOf(kwargs);
  const hasExample = typeof langsmith_example_id === "string" && isUuid(langsmith_example_id);
  return {
    project_name: projectOf(run, kwargs, default_project),
    example_id: hasExample ? langsmith_example_id : undefined,
    started_at: run.started_at ?? Date.now(),
    parent: parentOf(kwargs),
    metadata: isObject(metadata) ? metadata : {},
    tags: Array.isArray(tags) ? tags.filter((tag) => typeof tag === "string") : [],
  };
}

function parentOf(kwargs: RunKwargs): TraceParent | undefined {
  const { "langsmith-trace": dotted_order, traceparent } = configurableOf(kwargs);
  if (typeof dotted_order === "string" && dotted_order.length <= MAX_ORDER_CHARS && DOTTED_ORDER.test(dotted_order))
    return { kind: "run", dotted_order };
  const [, span_id] = TRACE_PARENT.exec(String(traceparent)) ?? [];
  return span_id === undefined ? undefined : { kind: "span", run_id: runIdOfSpan(span_id) };
}

const DELETION_INTERVAL_MS = 10_000;
const DELETION_BATCH = 500;
/** A trace is deleted again after this time: another process may have sent runs of the trace after the first deletion. */
const REPEAT_AFTER_MS = 60_000;

interface TraceDeletionsOptions {
  database: Database;
  /** Undefined if traces are not stored: deletion requests are then removed without further action. */
  queue: TraceQueue | undefined;
  log: Log;
}

/**
 * Deletes the traces of deleted runs. The transaction that deletes a run stores a row for its trace, because the traces may be in another
 * database: a crash between the two transactions then loses no deletion.
 */
export class TraceDeletions implements BackgroundService {
  readonly #options: TraceDeletionsOptions;
  readonly #service: BackgroundService;
  #current: Promise<void> | undefined;
  #isRequested = false;

  constructor(options: TraceDeletionsOptions) {
    this.#options = options;
    this.#service = periodicService(
      DELETION_INTERVAL_MS,
      () => this.#sweepOnce(),
      (error) => options.log.error({ error }, "failed to delete the traces of deleted runs"),
    );
  }

  start(): void {
    this.sweep();
    this.#service.start();
  }

  async stop(): Promise<void> {
    await this.#service.stop();
    // sweep() logs the error.
    await this.#current?.catch(() => undefined);
  }

  /** Called after the commit of a deletion. */
  sweep(): void {
    this.#isRequested = true;
    this.#sweepOnce().catch((error) =>
      this.#options.log.error({ error }, "failed to delete the traces of deleted runs"),
    );
  }

  #sweepOnce(): Promise<void> {
    this.#current ??= this.#sweepAll().finally(() => {
      this.#current = undefined;
      if (this.#isRequested) this.sweep();
    });
    return this.#current;
  }

  async #sweepAll(): Promise<void> {
    const { database, queue } = this.#options;
    this.#isRequested = false;
    for (;;) {
      const due = await listTraceDeletions(database.read, { repeat_after_ms: REPEAT_AFTER_MS, limit: DELETION_BATCH });
      if (due.length === 0) return;
      for (const [tenant_id, rows] of Map.groupBy(due, (row) => row.tenant_id))
        await queue?.delete(
          tenant_id,
          rows.map(({ run_id }) => run_id),
        );
      const isFinal = ({ done }: { done: number }) => done === 1 || !queue;
      const ids = (rows: typeof due) => rows.map(({ run_id }) => run_id);
      await database.write(async (tx) => {
        await deleteTraceDeletions(tx, ids(due.filter(isFinal)));
        await markTraceDeletions(tx, ids(due.filter((row) => !isFinal(row))));
      });
      if (due.length < DELETION_BATCH) return;
    }
  }
}
