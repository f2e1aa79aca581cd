import type { VaultContext } from "../access/index.ts";
import type { Caller } from "../platform/contract/caller.ts";
import { EARLIEST_MS, LATEST_MS } from "../platform/contract/iso-time.ts";
import { ApiError } from "../platform/errors.ts";
import type { Wait } from "../platform/lib/clock.ts";
import { cleanText } from "../platform/lib/json/json.ts";
import { isoOfMilliseconds } from "../platform/lib/times.ts";
import { LOG_LEVELS, type LogLevel, type LogLine, type Logs } from "./contract/logs.ts";
import { requireDeployment } from "./deployments/deployments.ts";
import { type RevisionKey, requireRevision } from "./deployments/revisions.ts";
import type { LogLine as DriverLogLine } from "./drivers/driver.ts";
import { type LogCursor, listLogLines, type NewLogLine } from "./storage/logs.ts";
import { IN_PROGRESS } from "./storage/revisions.ts";
import type { DeploymentLogRow, RevisionRow } from "./storage/schema.ts";

/** Selects a page of log lines. `start_time` and `end_time` are inclusive, in milliseconds since the epoch. */
export interface DeploymentLogQuery {
  kind: "build" | "deploy";
  order: "asc" | "desc";
  limit: number;
  /** `next_offset` of the previous page. */
  cursor?: string | undefined;
  level?: LogLevel | undefined;
  query?: string | undefined;
  run_id?: string | undefined;
  start_time?: number | undefined;
  end_time?: number | undefined;
}

type LogScope = Pick<RevisionKey, "deployment_id"> & Partial<RevisionKey>;

export class DeploymentLogs {
  readonly #database: VaultContext["database"];

  constructor({ database }: Pick<VaultContext, "database">) {
    this.#database = database;
  }

  /** @throws ApiError deployment_not_found, revision_not_found, bad_cursor */
  async list(caller: Caller, scope: LogScope, query: DeploymentLogQuery): Promise<Logs> {
    const { deployment_id, revision_id } = scope;
    if (revision_id === undefined) await requireDeployment(this.#database.read, caller, deployment_id);
    else await requireRevision(this.#database.read, caller, { deployment_id, revision_id });
    const { logs, next } = await this.#page(caller, scope, query);
    return { logs, next_offset: next && formatCursor(next) };
  }

  /**
   * Like {@link list}, for clients that follow a build. While the revision is in progress, the last page also has a `next_offset`, as
   * these clients start again from the first page when `next_offset` is missing.
   *
   * @throws ApiError deployment_not_found, revision_not_found, bad_cursor
   */
  async follow(caller: Caller, key: RevisionKey, query: DeploymentLogQuery): Promise<Logs> {
    const { status } = await requireRevision(this.#database.read, caller, key);
    const { logs, last, next } = await this.#page(caller, key, query);
    const is_growing = query.order === "asc" && IN_PROGRESS.some((each) => each === status);
    const end = is_growing ? last : next;
    return { logs, next_offset: end ? formatCursor(end) : is_growing ? (query.cursor ?? null) : null };
  }

  async #page(
    { tenant_id }: Caller,
    scope: LogScope,
    { kind, order, limit, cursor, level, query, run_id, start_time, end_time }: DeploymentLogQuery,
  ): Promise<{ logs: LogLine[]; last: LogCursor | undefined; next: LogCursor | null }> {
    // Reads one additional row to find out whether there is a next page.
    const rows = await listLogLines(this.#database.search, {
      tenant_id,
      ...scope,
      kind,
      order,
      limit: limit + 1,
      after: cursor ? parseCursor(cursor) : undefined,
      levels: level && LOG_LEVELS.slice(LOG_LEVELS.indexOf(level)),
      query: query || undefined,
      run_id: run_id || undefined,
      start_at: start_time,
      end_at: end_time,
    });
    const page = rows.slice(0, limit);
    const last = page.at(-1);
    return { logs: page.map(toLine), last, next: rows.length > limit && last ? last : null };
  }
}

const formatCursor = ({ at, log_no }: LogCursor): string => `${at}-${log_no}`;

/** @throws ApiError bad_cursor */
function parseCursor(cursor: string): LogCursor {
  const [, at, log_no] = /^(\d{1,15})-(\d{1,15})$/.exec(cursor) ?? [];
  if (at === undefined) throw new ApiError("bad_cursor");
  return { at: Number(at), log_no: Number(log_no) };
}

const toLine = ({ log_no, at, level, message, revision_id, run_id }: DeploymentLogRow): LogLine => ({
  id: String(log_no),
  timestamp: isoOfMilliseconds(at),
  level,
  message,
  revision_id,
  run_id,
});

/** Lines are batched for this long, so that the writer needs fewer transactions. */
const BATCH_MS = 200;
const BATCH_LINES = 500;
/** Maximum number of lines that are buffered while the database is slow or unavailable. Beyond it, the oldest lines are dropped. */
const MAX_BUFFERED = 10_000;
/** Longer messages are truncated. */
const MAX_CHARS = 16_384;

interface LogWriterOptions {
  wait: Wait;
  /** Writes a batch. If the promise rejects, the same lines are written again together with the next lines. */
  write(lines: readonly NewLogLine[]): Promise<unknown>;
  onError(error: unknown): void;
}

/** Stores the log lines of a deployment in batches and in order. */
export class LogWriter {
  readonly #options: LogWriterOptions;
  readonly #closing = new AbortController();
  #lines: NewLogLine[] = [];
  #is_batching = false;
  #has_refused = false;
  #writing: Promise<void> = Promise.resolve();

  constructor(options: LogWriterOptions) {
    this.#options = options;
  }

  append(
    kind: NewLogLine["kind"],
    revision: RevisionRow,
    { at, level, message, run_id = undefined }: DriverLogLine,
  ): void {
    if (this.#closing.signal.aborted) {
      this.#has_refused = true;
      return;
    }
    const { deployment_id, revision_id, tenant_id } = revision;
    const text = message.length > MAX_CHARS ? `${message.slice(0, MAX_CHARS)} ...` : message;
    const line = {
      deployment_id,
      revision_id,
      tenant_id,
      kind,
      level,
      // A program can write anything. A line that the database cannot store would be sent again and again.
      message: cleanText(text),
      run_id: run_id === undefined ? null : cleanText(run_id),
      at: Number.isInteger(at) && at >= EARLIEST_MS && at <= LATEST_MS ? at : Date.now(),
    };
    this.#lines.push(line);
    if (this.#lines.length > MAX_BUFFERED) this.#lines.splice(0, this.#lines.length - MAX_BUFFERED);
    if (!this.#is_batching) void this.#flushLater();
  }

  async #flushLater(): Promise<void> {
    this.#is_batching = true;
    await this.#options.wait(BATCH_MS, this.#closing.signal);
    this.#is_batching = false;
    await this.flush();
    if (this.#lines.length > 0 && !this.#is_batching && !this.#closing.signal.aborted) void this.#flushLater();
  }

  /** Writes buffered lines. After a failed write, the lines stay in the buffer for the next write. */
  flush(): Promise<void> {
    this.#writing = this.#writing.then(() => this.#write()).catch(this.#options.onError);
    return this.#writing;
  }

  /** Resolves when all previous lines are stored or dropped. Rejects if the log is closed before: the driver must send the lines again. */
  async persisted(): Promise<void> {
    for (;;) {
      await this.flush();
      if (this.#has_refused) throw new Error("Lines were appended after the deployment log was closed.");
      if (this.#lines.length === 0) return;
      if (this.#closing.signal.aborted) throw new Error("The deployment log was closed before all lines were written.");
      await this.#options.wait(BATCH_MS, this.#closing.signal);
    }
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.flush();
  }

  async #write(): Promise<void> {
    while (this.#lines.length > 0) {
      const batch = this.#lines.slice(0, BATCH_LINES);
      await this.#options.write(batch);
      // Lines that were appended during the write may have displaced the oldest lines, including lines of this batch.
      const written = new Set(batch);
      this.#lines = this.#lines.filter((line) => !written.has(line));
    }
  }
}
