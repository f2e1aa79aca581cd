import pg from "pg";
import type { Log } from "../../lib/log.ts";
import { DatabaseUnavailableError, isDisconnected } from "../database-errors.ts";

export interface PoolOptions {
  config: pg.PoolConfig;
  /** Statements that each new connection executes first. */
  prepare: string;
  /** Maximum number of connections. */
  size: number;
  log: Log;
}

/** Maximum wait for a connection. */
const ACQUIRE_MS = 4_000;
/** Delay after the server has refused a connection while this process has none. */
const RETRY_MS = 100;
/** After the server has refused a connection, the limit of the pool grows by one connection in this interval. */
const GROW_MS = 10_000;
/** Time for running queries when the pool is closed. */
const CLOSE_MS = 2_000;

/** Whether the server or the role has too many connections. */
const isFull = (error: unknown): boolean => (error as { code?: string }).code === "53300";

/**
 * The connections to Postgres. When the server has none left, the pool shrinks instead of failing callers. When the
 * server stops responding, {@link suspend} closes all connections, including those with an unanswered query.
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

  /**
   * Runs `work` with a connection of the pool.
   *
   * @throws DatabaseUnavailableError while suspended
   * @throws Error when no connection is available within {@link ACQUIRE_MS}; see isUnavailable
   */
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
    this.#suspended = new DatabaseUnavailableError(`The database does not respond: ${reason}.`);
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

  async close(): Promise<void> {
    clearInterval(this.#growing);
    const timer = setTimeout(() => this.#closeAll(), CLOSE_MS);
    await this.#pool.end();
    clearTimeout(timer);
  }

  #open(): pg.Pool {
    const { config, prepare, size, log } = this.#options;
    // At least one connection stays open: when other processes compete for the last connections of the server, this
    // process might not get another.
    const pool = new pg.Pool({
      ...config,
      min: 1,
      max: size,
      connectionTimeoutMillis: ACQUIRE_MS,
      onConnect: async (client) => void (await client.query(prepare)),
    });
    // Without a listener, the error of a broken connection would end the process. The pool replaces the connection, but
    // listens only to idle ones; one may break between two queries of a transaction, whose next query then fails.
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
        if (!isFull(error) || performance.now() > deadline) throw error;
        this.#shrink();
        if (this.#clients.size === 0) await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    }
  }

  /** Limits the pool to the open connections. Connections that are being opened may be refused, too. */
  #shrink(): void {
    const { size } = this.#clients;
    if (size < this.#pool.options.max)
      this.#options.log.warn({ connections: size }, "Postgres refused a connection (max_connections)");
    this.#resize(size);
  }

  #resize(max: number): void {
    this.#pool.options.max = Math.min(Math.max(1, max), this.#options.size);
  }

  /** During a query, `end` closes the socket immediately. */
  #closeAll(): void {
    for (const client of this.#clients) void (client as unknown as pg.Client).end().catch(() => undefined);
    this.#clients.clear();
  }
}
