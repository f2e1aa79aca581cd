import type { Caller } from "../../platform/contract/caller.ts";
import { type Database, readNow } from "../../platform/database/database.ts";
import { isoOfMilliseconds } from "../../platform/lib/times.ts";
import type {
  RunMinute,
  RunOverviewItem,
  RunOverviewPage,
  RunOverviewQuery,
  RunThroughput,
} from "../contract/app-runs.ts";
import {
  areActive,
  countRunsByMinute,
  findPositionBefore,
  listRunsOfTenant,
  type RunCount,
  type RunOverviewRow,
  type RunPosition,
} from "../storage/run-overview.ts";

const HOUR_MS = 3_600_000;

/** Counted runs of each kind: 50,000 take 70 ms on SQLite. */
const MAX_COUNTED = 50_000;

/** Ended runs that a page scans: 20,000 take 60 ms on SQLite, whose reads block the process. */
const MAX_SCANNED = 20_000;

/** Maximum length of error messages in lists, in UTF-16 units. */
const MAX_MESSAGE_LENGTH = 1000;

/** The runs of a workspace, over all of its threads. */
export class RunOverview {
  readonly #database: Database;
  readonly #max_scanned: number;

  constructor({ database }: { database: Database }, max_scanned = MAX_SCANNED) {
    this.#database = database;
    this.#max_scanned = max_scanned;
  }

  /**
   * Newest first. The next page continues with earlier runs, regardless of runs that are accepted in the meantime. If few runs match, a
   * page can end before it is full, and `next` continues from there.
   */
  async list({ tenant_id }: Caller, query: RunOverviewQuery): Promise<RunOverviewPage> {
    const { limit, cursor, status, assistant_id, thread_id, run_id, created_from, created_until } = query;
    const { read } = this.#database;
    const filter = {
      tenant_id,
      statuses: status,
      assistant_id,
      thread_id,
      run_id,
      created_from,
      created_until,
      after: cursor === undefined ? undefined : positionOf(cursor),
      back_to: undefined,
      limit: limit + 1,
    };
    const isIndexed = run_id !== undefined || areActive(status);
    const back_to = isIndexed ? undefined : await findPositionBefore(read, filter, this.#max_scanned - 1);
    const rows = await listRunsOfTenant(read, { ...filter, back_to });
    const last = rows.length > limit ? rows[limit - 1] : back_to;
    return { runs: rows.slice(0, limit).map(toOverviewItem), next: last ? cursorAt(last) : null };
  }

  /** The throughput of the last hour, by minute. */
  async throughput({ tenant_id }: Caller): Promise<RunThroughput> {
    const { read } = this.#database;
    const now = await readNow(read);
    const [active, ended] = await Promise.all([
      countRunsByMinute(read, { tenant_id, ended_from: null, limit: MAX_COUNTED }),
      countRunsByMinute(read, { tenant_id, ended_from: now - HOUR_MS, limit: MAX_COUNTED }),
    ]);
    const isCut = ended.reduce((sum, { count }) => sum + count, 0) === MAX_COUNTED;
    return { minutes: throughput({ now, active, ended, isCut }) };
  }
}

const cursorAt = ({ created_at, seq }: RunPosition): string => `${created_at}.${seq}`;

function positionOf(cursor: string): RunPosition {
  const [created_at, seq] = cursor.split(".").map(Number) as [number, number];
  return { created_at, seq };
}

const iso = (ms: number | null): string | null => (ms === null ? null : isoOfMilliseconds(ms));

const toOverviewItem = (row: RunOverviewRow): RunOverviewItem => ({
  run_id: row.run_id,
  thread_id: row.thread_id,
  assistant_id: row.assistant_id,
  graph_id: row.graph_id,
  status: row.status,
  multitask_strategy: row.multitask_strategy,
  is_stateless: row.temporary === 1,
  attempt: row.attempt,
  stopping: row.ended_at === null ? row.cancel_action : null,
  cancel_reason: row.cancel_reason,
  error: errorOf(row.failure),
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

const MINUTE_MS = 60_000;
const MINUTES = 60;

interface Counted {
  /** In milliseconds since the epoch. */
  now: number;
  /** Active runs. */
  active: readonly RunCount[];
  /** Runs that ended within the last hour. */
  ended: readonly RunCount[];
  /** The count of ended runs reached its limit: missing runs ended in the first counted minute or before. */
  isCut: boolean;
}

/**
 * The counts by minute, oldest first, up to the current minute. The numbers of waiting and running runs are known for now and computed
 * backwards from there.
 */
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
    minutes.unshift({
      at: isoOfMilliseconds(minute * MINUTE_MS),
      accepted,
      started,
      ended: ended_now,
      waiting,
      running,
    });
    // A run that never started leaves the queue when it ends.
    const unstarted = during(minute, (run) => (run.started === null ? run.ended : null));
    waiting += started + unstarted - accepted;
    running += ended_now - unstarted - started;
  }
  return minutes;
}

const sumOf = (counts: readonly RunCount[]): number => counts.reduce((sum, { count }) => sum + count, 0);
