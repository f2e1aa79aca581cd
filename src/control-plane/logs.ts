import type { VaultContext } from "../access/index.ts";
import type { Caller } from "../platform/contract/caller.ts";
import { ApiError } from "../platform/errors.ts";
import { isoOfMilliseconds } from "../platform/lib/times.ts";
import { LOG_LEVELS, type LogLevel, type LogLine, type Logs } from "./contract/logs.ts";
import { requireDeployment } from "./deployments.ts";
import { type RevisionKey, requireRevision } from "./revisions.ts";
import { type LogPlace, listLogLines } from "./storage/logs.ts";
import { UNDER_WAY } from "./storage/revisions.ts";
import type { DeploymentLogRow } from "./storage/schema.ts";

/** Which lines of a deployment. Times are milliseconds since the epoch, and included. */
export interface LogQuestion {
  kind: "build" | "deploy";
  order: "asc" | "desc";
  limit: number;
  /** Where the page before ended, as its answer says. */
  cursor?: string | undefined;
  level?: LogLevel | undefined;
  query?: string | undefined;
  run_id?: string | undefined;
  start_time?: number | undefined;
  end_time?: number | undefined;
}

/** What builds and instances have written. */
export class DeploymentLogs {
  readonly #database: VaultContext["database"];

  constructor({ database }: Pick<VaultContext, "database">) {
    this.#database = database;
  }

  /**
   * @throws ApiError deployment_not_found, revision_not_found, bad_cursor
   */
  async list(
    caller: Caller,
    key: Pick<RevisionKey, "deployment_id"> & Partial<RevisionKey>,
    question: LogQuestion,
  ): Promise<Logs> {
    await this.#require(caller, key);
    const { logs, next } = await this.#page(caller, key, question);
    return { logs, next_offset: next && cursorOf(next) };
  }

  /**
   * Lines of a build that is followed. While it goes on, a page leads to what is still to come, also the last one: the clients
   * that follow begin anew where there is no next page.
   *
   * @throws ApiError deployment_not_found, revision_not_found, bad_cursor
   */
  async follow(caller: Caller, key: RevisionKey, question: LogQuestion): Promise<Logs> {
    const { status } = await requireRevision(this.#database.read, caller, key);
    const { logs, last, next } = await this.#page(caller, key, question);
    const goesOn = question.order === "asc" && UNDER_WAY.some((one) => one === status);
    const end = goesOn ? last : next;
    return { logs, next_offset: end ? cursorOf(end) : goesOn ? (question.cursor ?? null) : null };
  }

  async #require(caller: Caller, { deployment_id, revision_id }: { deployment_id: string; revision_id?: string }) {
    if (revision_id === undefined) await requireDeployment(this.#database.read, caller, deployment_id);
    else await requireRevision(this.#database.read, caller, { deployment_id, revision_id });
  }

  async #page(
    { tenant_id }: Caller,
    key: Pick<RevisionKey, "deployment_id"> & Partial<RevisionKey>,
    question: LogQuestion,
  ): Promise<{ logs: LogLine[]; last: LogPlace | undefined; next: LogPlace | null }> {
    const { kind, order, limit, cursor, level, query, run_id } = question;
    // One more than the page has: then there is another.
    const rows = await listLogLines(this.#database.search, {
      tenant_id,
      ...key,
      kind,
      order,
      limit: limit + 1,
      after: cursor ? placeOf(cursor) : undefined,
      levels: level && LOG_LEVELS.slice(LOG_LEVELS.indexOf(level)),
      query: query || undefined,
      run_id: run_id || undefined,
      start_at: question.start_time,
      end_at: question.end_time,
    });
    const page = rows.slice(0, limit);
    const last = page.at(-1);
    return { logs: page.map(toLine), last, next: rows.length > limit && last ? last : null };
  }
}

const cursorOf = ({ at, log_no }: LogPlace): string => `${at}-${log_no}`;

/**
 * @throws ApiError bad_cursor
 */
function placeOf(cursor: string): LogPlace {
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
