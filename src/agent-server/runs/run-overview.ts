import { setImmediate } from "node:timers/promises";
import type { Caller } from "../../platform/contract/caller.ts";
import { cutPreview, type PayloadSide } from "../../platform/contract/preview.ts";
import { type Database, readNow } from "../../platform/database/database.ts";
import { percentile } from "../../platform/lib/percentile.ts";
import { isoOfMilliseconds } from "../../platform/lib/times.ts";
import { filterOf } from "../auth/grants.ts";
import type {
  AssistantRuns,
  MonitoringQuery,
  RunMinute,
  RunMonitoring,
  RunOverviewItem,
  RunOverviewPage,
  RunOverviewQuery,
  RunPreview,
  RunPreviews,
  RunThroughput,
} from "../contract/app-runs.ts";
import type { RunKwargs } from "../graph-hosts/host.ts";
import {
  areActive,
  countRunsByMinute,
  type EndedRuns,
  findPositionBefore,
  firstCreation,
  groupEndedRuns,
  listRunPayloads,
  listRunsOfTenant,
  type RunCount,
  type RunOverviewRow,
  type RunPosition,
} from "../storage/run-overview.ts";

/** Maximum number of runs to count, separately for active and ended runs: 50,000 take 70 ms on SQLite. */
const MAX_COUNTED = 50_000;

/** Maximum number of ended runs that a page scans: 20,000 take 60 ms on SQLite, whose reads block the process. */
const MAX_SCANNED = 20_000;

/** Larger inputs and outputs have no preview: 50 of 200 KB are parsed in 60 ms. */
const MAX_PREVIEWED_BYTES = 200_000;

/** The latest time of a `Date`, in ms since the epoch. */
const MAX_TIME_MS = 8.64e15;

/** In UTF-16 code units. */
const MAX_MESSAGE_LENGTH = 1000;

export class RunOverview {
  readonly #database: Database;
  readonly #max_scanned: number;
  readonly #max_counted: number;

  constructor({ database }: { database: Database }, max_scanned = MAX_SCANNED, max_counted = MAX_COUNTED) {
    this.#database = database;
    this.#max_scanned = max_scanned;
    this.#max_counted = max_counted;
  }

  /** Newest runs first. A page can have fewer runs than its limit if few runs match; `next` continues after the last scanned run. */
  async list(caller: Caller, query: RunOverviewQuery): Promise<RunOverviewPage> {
    const { limit, cursor, ...conditions } = query;
    const { tenant_id } = caller;
    const after = cursor === undefined ? undefined : positionOf(cursor);
    const access = filterOf(caller, "threads");
    const filter = { ...conditions, tenant_id, access, after, limit: limit + 1 };
    let { read } = this.#database;
    if ((query.ended_from ?? query.ended_until) !== undefined) {
      const { created_from = 0, created_until = MAX_TIME_MS, ended_until = MAX_TIME_MS } = query;
      // The range can contain any number of runs. The scan is limited to the time in which these runs were created.
      read = this.#database.search;
      const first = await firstCreation(read, filter);
      if (first === null) return { runs: [], next: null };
      filter.created_from = Math.max(created_from, first);
      filter.created_until = Math.min(created_until, ended_until);
    }
    const isIndexed = query.run_id !== undefined || areActive(query.status);
    const back_to = isIndexed ? undefined : await findPositionBefore(read, filter, this.#max_scanned - 1);
    const rows = await listRunsOfTenant(read, { ...filter, back_to });
    const last = rows.length > limit ? rows[limit - 1] : back_to;
    return { runs: rows.slice(0, limit).map(toOverviewItem), next: last ? cursorAt(last) : null };
  }

  /** Returns previews of the inputs and outputs of runs. Other requests are served while the values of two runs are parsed. */
  async previews(caller: Caller, run_ids: readonly string[]): Promise<RunPreviews> {
    const access = filterOf(caller, "threads");
    const filter = { tenant_id: caller.tenant_id, access, run_ids, max_bytes: MAX_PREVIEWED_BYTES };
    const previews: RunPreview[] = [];
    for (const { run_id, kwargs, output } of await listRunPayloads(this.#database.search, filter)) {
      const { input, command } = parsed<Pick<RunKwargs, "input" | "command">>(kwargs) ?? {};
      previews.push({
        run_id,
        input: previewOf(input ?? command?.resume ?? command, "inputs"),
        output: previewOf(parsed(output), "outputs"),
      });
      await setImmediate();
    }
    return { previews };
  }

  /** Returns the numbers of runs in the last hour, by minute. */
  async throughput(caller: Caller): Promise<RunThroughput> {
    const { read } = this.#database;
    const counted = { tenant_id: caller.tenant_id, access: filterOf(caller, "threads"), limit: this.#max_counted };
    const now = await readNow(read);
    const [active, ended] = await Promise.all([
      countRunsByMinute(read, { ...counted, ended_from: null }),
      countRunsByMinute(read, { ...counted, ended_from: now - HOUR_MS }),
    ]);
    const isCut = ended.reduce((sum, { count }) => sum + count, 0) === this.#max_counted;
    return { minutes: throughput({ now, active, ended, isCut }) };
  }

  /** Returns the numbers of ended runs over time: of all runs, or of those of one assistant. */
  async monitoring(caller: Caller, { range, assistant_id }: MonitoringQuery): Promise<RunMonitoring> {
    const { bucket_ms, count } = BUCKETS[range];
    const { read, search } = this.#database;
    const ended_until = (Math.floor((await readNow(read)) / bucket_ms) + 1) * bucket_ms;
    const ended_from = ended_until - count * bucket_ms;
    const access = filterOf(caller, "threads");
    const { tenant_id } = caller;
    const limit = this.#max_counted;
    const counted = await groupEndedRuns(search, { tenant_id, access, ended_from, ended_until, bucket_ms, limit });
    const isCut = runsIn(counted) === limit;
    const groups = counted.filter((group) => assistant_id === undefined || group.assistant_id === assistant_id);
    const assistants: AssistantRuns[] = [];
    for (const [id, own] of byRunCount(Map.groupBy(groups, (group) => group.assistant_id)))
      assistants.push({ assistant_id: id, ...(await seriesOf(own, bucket_ms)) });
    return {
      from: isoOfMilliseconds(ended_from),
      until: isoOfMilliseconds(ended_until),
      bucket_ms,
      incomplete_until: isCut ? isoOfMilliseconds(Math.min(...counted.map(({ first_end }) => first_end))) : null,
      total: await seriesOf(groups, bucket_ms),
      assistants,
    };
  }
}

const cursorAt = ({ created_at, seq }: RunPosition): string => `${created_at}.${seq}`;

function positionOf(cursor: string): RunPosition {
  const [created_at, seq] = cursor.split(".").map(Number) as [number, number];
  return { created_at, seq };
}

const iso = (ms: number | null): string | null => (ms === null ? null : isoOfMilliseconds(ms));

const toOverviewItem = ({ seq: _, temporary, cancel_action, failure, ...row }: RunOverviewRow): RunOverviewItem => ({
  ...row,
  is_stateless: temporary === 1,
  stopping: row.ended_at === null ? cancel_action : null,
  error: errorOf(failure),
  created_at: isoOfMilliseconds(row.created_at),
  start_at: isoOfMilliseconds(row.start_at),
  started_at: iso(row.started_at),
  ended_at: iso(row.ended_at),
});

function errorOf(failure: string | null): RunOverviewItem["error"] {
  if (failure === null) return null;
  const { __error__ } = JSON.parse(failure) as { __error__?: { error?: unknown; message?: unknown } };
  return {
    error: String(__error__?.error ?? "Error"),
    message: String(__error__?.message ?? "").slice(0, MAX_MESSAGE_LENGTH),
  };
}

const parsed = <T>(text: string | null): T | null => (text === null ? null : (JSON.parse(text) as T));

const previewOf = (value: unknown, side: PayloadSide): string | null =>
  value === null || value === undefined ? null : cutPreview(value, side);

const MINUTE_MS = 60_000;
const MINUTES = 60;

interface Counted {
  now: number;
  active: readonly RunCount[];
  /** Runs that ended within the last hour. */
  ended: readonly RunCount[];
  /** The count of ended runs reached its limit: uncounted runs ended in the first counted minute or before. */
  isCut: boolean;
}

/** Counts by minute, oldest first. The numbers of waiting and running runs are known for `now` and computed backwards. */
export function throughput({ now, active, ended, isCut }: Counted): RunMinute[] {
  const last = Math.floor(now / MINUTE_MS);
  const whole = isCut ? Math.min(...ended.map((run) => run.ended as number)) + 1 : 0;
  const first = Math.max(last - MINUTES + 1, whole);
  const counts = [...active, ...ended];
  const during = (minute: number, minuteOf: (run: RunCount) => number | null): number =>
    counts.reduce((sum, run) => (minuteOf(run) === minute ? sum + run.count : sum), 0);
  const minutes: RunMinute[] = [];
  let waiting = sumOf(active.filter((run) => run.started === null));
  let running = sumOf(active.filter((run) => run.started !== null));
  for (let minute = last; minute >= first; minute--) {
    const accepted = during(minute, (run) => run.accepted);
    const started = during(minute, (run) => run.started);
    const ended_now = during(minute, (run) => run.ended);
    const at = isoOfMilliseconds(minute * MINUTE_MS);
    minutes.unshift({ at, accepted, started, ended: ended_now, waiting, running });
    // A run that never started leaves the queue when it ends.
    const unstarted = during(minute, (run) => (run.started === null ? run.ended : null));
    waiting += started + unstarted - accepted;
    running += ended_now - unstarted - started;
  }
  return minutes;
}

const sumOf = (counts: readonly RunCount[]): number => counts.reduce((sum, { count }) => sum + count, 0);

const HOUR_MS = 60 * MINUTE_MS;

/** The buckets of each time range, aligned to UTC. */
const BUCKETS = {
  "1h": { bucket_ms: MINUTE_MS, count: 60 },
  "6h": { bucket_ms: 5 * MINUTE_MS, count: 72 },
  "24h": { bucket_ms: 20 * MINUTE_MS, count: 72 },
  "7d": { bucket_ms: 2 * HOUR_MS, count: 84 },
  "30d": { bucket_ms: 8 * HOUR_MS, count: 90 },
} as const satisfies Record<MonitoringQuery["range"], object>;

const MAX_ASSISTANTS = 100;

const byRunCount = (assistants: ReadonlyMap<string, EndedRuns[]>): [string, EndedRuns[]][] =>
  [...assistants].sort(([, a], [, b]) => runsIn(b) - runsIn(a)).slice(0, MAX_ASSISTANTS);

const runsIn = (groups: readonly EndedRuns[]): number => groups.reduce((sum, { runs }) => sum + runs, 0);

/** For 50,000 runs, each of the two steps takes 10 ms. Other requests are served in between. */
async function seriesOf(groups: readonly EndedRuns[], bucket_ms: number): Promise<RunMonitoring["total"]> {
  await setImmediate();
  const numbers = numbersOf(groups);
  await setImmediate();
  const buckets = [...Map.groupBy(groups, ({ bucket }) => bucket)].sort(([a], [b]) => a - b);
  return {
    ...numbers,
    buckets: buckets.map(([bucket, own]) => ({ at: isoOfMilliseconds(bucket * bucket_ms), ...numbersOf(own) })),
  };
}

function numbersOf(groups: readonly EndedRuns[]) {
  const durations = sorted(groups.map((group) => group.durations));
  const queue_times = sorted(groups.map((group) => group.queue_times));
  return {
    runs: runsIn(groups),
    errors: groups.reduce((sum, { errors }) => sum + errors, 0),
    duration_p50_ms: percentile(durations, 50),
    duration_p99_ms: percentile(durations, 99),
    queue_p50_ms: percentile(queue_times, 50),
    queue_p99_ms: percentile(queue_times, 99),
  };
}

function sorted(parts: readonly Float64Array[]): Float64Array {
  const all = new Float64Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all.sort();
}
