import pg from "pg";
import type { Log } from "../../lib/log.ts";
import { DatabaseUnavailableError, isDisconnected } from "../database-errors.ts";

export interface PoolOptions {
  config: pg.PoolConfig;
  /** Statements that each new connection executes first. */
  prepare?: string;
  /** Maximum connections. */
  size: number;
  log: Log;
}

/** Maximum wait for a connection. After {@link PostgresPool.suspend}, waiting callers fail within {@link CONNECT_MS}. */
const ACQUIRE_MS = 30_000;
/** Maximum wait in the queue of the pool, and again for a new connection. Then the caller is queued again. */
const CONNECT_MS = 4_000;
/** Delay after a refused connection if this process has no connection. */
const RETRY_MS = 100;
/** Interval at which a pool that has shrunk grows by one connection. */
const GROW_MS = 10_000;
/** Time that active queries have to finish when the pool closes. */
const CLOSE_MS = 2_000;

/** Whether all connections were in use, or opening one took too long. These errors of pg-pool have no code. */
const isTimeout = (error: unknown): boolean => /connection timeout|timeout exceeded/.test((error as Error).message);

/** Whether the server or the role has too many connections. */
const isFull = (error: unknown): boolean => (error as { code?: string }).code === "53300";

/**
 * When the server has no connections left, the pool shrinks instead of failing callers. When the server stops responding,
 * {@link suspend} closes all connections, including those with an unanswered query.
 */
export class PostgresPool {
  readonly #options: PoolOptions;
  #pool: pg.Pool;
  readonly #clients = new Set<pg.PoolClient>();
  readonly #growing: NodeJS.Timeout;
  #suspended: DatabaseUnavailableError | undefined;

  constructor(options: PoolOptions) {
    this.#options = options;
    this.#pool = this.#open();
    this.#growing = setInterval(() => this.#resize(this.#pool.options.max + 1), GROW_MS).unref();
  }

  /** @throws DatabaseUnavailableError while suspended; the driver's error if connecting fails or takes longer than {@link ACQUIRE_MS} */
  async use<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    const client = await this.#acquire();
    try {
      const value = await work(client);
      client.release();
      return value;
    } catch (error) {
      client.release(isDisconnected(error));
      throw error;
    }
  }

  /** Closes all connections. Until {@link resume}, no query is sent. */
  suspend(reason: string): void {
    const isFirst = this.#suspended === undefined;
    this.#suspended = new DatabaseUnavailableError(`The database is unavailable: ${reason}.`);
    const old = this.#pool;
    if (isFirst) this.#pool = this.#open();
    this.#closeAll();
    if (isFirst) void old.end();
  }

  resume(): void {
    this.#suspended = undefined;
  }

  get isSuspended(): boolean {
    return this.#suspended !== undefined;
  }

  /** `waiting`: callers without a connection. */
  get connections(): { active: number; idle: number; waiting: number } {
    const { totalCount, idleCount, waitingCount } = this.#pool;
    return { active: totalCount - idleCount, idle: idleCount, waiting: waitingCount };
  }

  async close(): Promise<void> {
    clearInterval(this.#growing);
    const timer = setTimeout(() => this.#closeAll(), CLOSE_MS);
    await this.#pool.end();
    clearTimeout(timer);
  }

  #open(): pg.Pool {
    const { config, prepare, size, log } = this.#options;
    // One connection stays open, because other processes compete for the last connections of the server.
    const pool = new pg.Pool({
      ...config,
      min: 1,
      max: size,
      connectionTimeoutMillis: CONNECT_MS,
      ...(prepare !== undefined && { onConnect: async (client) => void (await client.query(prepare)) }),
    });
    // Without listeners, the error of a broken connection ends the process. The pool replaces the connection, but listens to idle
    // connections only, and a connection in use may break between two queries of a transaction.
    pool.on("error", () => undefined);
    pool.on("connect", (client) => {
      this.#clients.add(client);
      client.on("error", (error) => log.warn({ error: error.message }, "database connection failed"));
      client.on("end", () => this.#clients.delete(client));
    });
    return pool;
  }

  async #acquire(): Promise<pg.PoolClient> {
    const deadline = performance.now() + ACQUIRE_MS;
    for (;;) {
      if (this.#suspended) throw this.#suspended;
      try {
        return await this.#pool.connect();
      } catch (error) {
        if (performance.now() > deadline) throw error;
        // Requests wait while the server responds, because the server or this process may only be busy.
        if (isTimeout(error)) continue;
        if (!isFull(error)) throw error;
        this.#shrink();
        if (this.#clients.size === 0) await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    }
  }

  /** Limits the pool to the open connections. */
  #shrink(): void {
    const { size } = this.#clients;
    if (size < this.#pool.options.max)
      this.#options.log.warn(
        { connections: size },
        "Postgres connection refused: too many connections (max_connections)",
      );
    this.#resize(size);
  }

  #resize(max: number): void {
    this.#pool.options.max = Math.min(Math.max(1, max), this.#options.size);
  }

  /** Closes all connections. The `end` of pg closes the socket immediately if a query is active. */
  #closeAll(): void {
    for (const client of this.#clients) void (client as unknown as pg.Client).end().catch(() => undefined);
    this.#clients.clear();
  }
}

/** Maximum number of statements that each connection keeps. */
const MAX_NAMES = 256;
/** A statement is named at this use, because some texts depend on the number of rows. */
const NAMED_AT = 5;
/** Maximum number of statements that are counted before they have a name. */
const MAX_COUNTED = 1_000;

/**
 * Names statements whose text is fixed. Each connection parses a named statement once, and Postgres reuses its plan, which saves half of
 * the database's CPU time per run.
 */
export class StatementNames {
  readonly #names = new Map<string, string>();
  readonly #uses = new Map<string, number>();
  readonly #max: number;
  #last = 0;

  /** @param max 0 for connections that keep no statements */
  constructor({ max = MAX_NAMES }: { max?: number } = {}) {
    this.#max = max;
  }

  /** Returns undefined if the statement is not used often, or if there are too many. */
  nameOf(text: string): string | undefined {
    const known = this.#names.get(text);
    if (known !== undefined || this.#names.size === this.#max) return known;
    const uses = (this.#uses.get(text) ?? 0) + 1;
    if (uses < NAMED_AT) {
      if (this.#uses.size === MAX_COUNTED) this.#uses.clear();
      this.#uses.set(text, uses);
      return undefined;
    }
    this.#uses.delete(text);
    const name = `threadmill_${++this.#last}`;
    this.#names.set(text, name);
    return name;
  }

  /** Gives all statements new names, so that they are parsed again. */
  clear(): void {
    this.#names.clear();
  }
}

/** Whether a newer process has added columns since the statement was parsed. Parsed again, the statement succeeds. */
export const isOutdated = (error: unknown): boolean =>
  (error as { code?: string }).code === "0A000" && /cached plan/.test((error as Error).message);
