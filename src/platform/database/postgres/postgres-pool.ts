import pg from "pg";
import type { Log } from "../../lib/log.ts";
import { DatabaseUnavailableError, isDisconnected } from "../../lib/unavailable.ts";

export interface PoolOptions {
  config: pg.PoolConfig;
  /** Statements that each connection begins with. */
  prepare: string;
  /** Connections at most. */
  size: number;
  log: Log;
}

/** Somebody who wants a connection waits for one this long. */
const ACQUIRE_MS = 4_000;
/** After the server has refused a connection, while this process has none: until the next try. */
const RETRY_MS = 100;
/** After the server has refused a connection the pool grows again by one connection each so often. */
const GROW_MS = 10_000;
/** What is under way has this long when the pool is closed. */
const CLOSE_MS = 2_000;

/** "Too many connections", of the server or of the role. */
const isFull = (error: unknown): boolean => (error as { code?: string }).code === "53300";

/**
 * Connections to Postgres. A server that has none left makes the pool smaller, not the caller fail. When the server stops answering,
 * {@link suspend} ends all connections, also those that wait for an answer which may never come.
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
   * Lends a connection.
   *
   * @throws DatabaseUnavailableError while suspended
   * @throws Error when there is none within {@link ACQUIRE_MS}; see isUnavailable
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

  /** Ends all connections; from now on nothing is asked of the database until {@link resume}. */
  suspend(reason: string): void {
    const isFirst = this.#suspended === undefined;
    this.#suspended = new DatabaseUnavailableError(`The database does not answer: ${reason}.`);
    const old = this.#pool;
    if (isFirst) this.#pool = this.#open();
    this.#destroyAll();
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
    const timer = setTimeout(() => this.#destroyAll(), CLOSE_MS);
    await this.#pool.end();
    clearTimeout(timer);
  }

  #open(): pg.Pool {
    const { config, prepare, size, log } = this.#options;
    // One is kept: with others after the last connections of the server, this process would get none any more.
    const pool = new pg.Pool({
      ...config,
      min: 1,
      max: size,
      connectionTimeoutMillis: ACQUIRE_MS,
      onConnect: async (client) => void (await client.query(prepare)),
    });
    // A connection that breaks is replaced by the pool; without a listener it would end the process. The pool listens to idle
    // ones alone, and one may break between two queries of a transaction, whose next query then fails.
    pool.on("error", () => undefined);
    pool.on("connect", (client) => {
      this.#clients.add(client);
      client.on("error", (error) => log.warn({ error: error.message }, "a database connection broke"));
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

  /** To the connections that there are: those that are being made may be refused, too. */
  #shrink(): void {
    const { size } = this.#clients;
    if (size < this.#pool.options.max)
      this.#options.log.warn({ connections: size }, "Postgres refuses more connections (max_connections)");
    this.#resize(size);
  }

  #resize(max: number): void {
    this.#pool.options.max = Math.min(Math.max(1, max), this.#options.size);
  }

  /** With a query under way `end` closes the socket at once. */
  #destroyAll(): void {
    for (const client of this.#clients) void (client as unknown as pg.Client).end().catch(() => undefined);
    this.#clients.clear();
  }
}
