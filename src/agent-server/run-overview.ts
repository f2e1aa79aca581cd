import type { Caller } from "../platform/contract/caller.ts";
import { type Database, readNow } from "../platform/database/database.ts";
import { isoOfMilliseconds } from "../platform/lib/times.ts";
import type { RunOverviewItem, RunOverviewPage, RunOverviewQuery, RunThroughput } from "./contract/app-runs.ts";
import {
  areActive,
  countRunsByMinute,
  findPlaceBefore,
  listRunsOfTenant,
  type RunOverviewRow,
  type RunPlace,
} from "./storage/run-overview.ts";
import { throughput } from "./throughput.ts";

const HOUR_MS = 3_600_000;

/** Runs that are counted at most, of each kind: 50,000 take 70 ms on SQLite. */
const MAX_COUNTED = 50_000;

/** Ended runs that a page looks through at most: 20,000 take 60 ms on SQLite, whose reads hold up the process. */
const MAX_LOOKED_AT = 20_000;

/** Longer messages of errors are cut in lists. */
const MESSAGE_CHARS = 1000;

/** What runs in a workspace, over all of its threads. */
export class RunOverview {
  readonly #database: Database;
  readonly #most_looked_at: number;

  constructor({ database }: { database: Database }, most_looked_at = MAX_LOOKED_AT) {
    this.#database = database;
    this.#most_looked_at = most_looked_at;
  }

  /**
   * Newest first. A page that follows another shows what was accepted before it, whatever was accepted meanwhile. Where few runs are
   * as they are asked for, a page ends before it is full, and `next` goes on from there.
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
      after: cursor === undefined ? undefined : placeOf(cursor),
      back_to: undefined,
      limit: limit + 1,
    };
    const isIndexed = run_id !== undefined || areActive(status);
    const back_to = isIndexed ? undefined : await findPlaceBefore(read, filter, this.#most_looked_at - 1);
    const rows = await listRunsOfTenant(read, { ...filter, back_to });
    const last = rows.length > limit ? rows[limit - 1] : back_to;
    return { runs: rows.slice(0, limit).map(toOverviewItem), next: last ? cursorAt(last) : null };
  }

  /** The last hour by the minute. */
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

const cursorAt = ({ created_at, seq }: RunPlace): string => `${created_at}.${seq}`;

function placeOf(cursor: string): RunPlace {
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
    message: String(__error__?.message ?? "").slice(0, MESSAGE_CHARS),
  };
}
