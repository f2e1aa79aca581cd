import { Socket } from "node:net";
import pg from "pg";
import type { Log } from "../../lib/log.ts";
import { DatabaseUnavailableError, isDisconnected } from "../database-errors.ts";
import { isOutdated } from "./statement-names.ts";

export interface PoolOptions {
  config: pg.PoolConfig;
  /** Statements that each new connection executes first. */
  prepare?: string;
  /** Maximum connections. */
  size: number;
  log: Log;
}

/** Maximum wait for a connection. Clients get a response within 30 s, also if a request waits for the answers of several statements. */
const ACQUIRE_MS = 20_000;
/** Maximum time that opening a connection takes. Then the caller opens another one. */
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
  /** Callers without a connection, in the order of their calls. pg-pool would move a caller to the end of its queue after a timeout. */
  readonly #queue = new Set<PromiseWithResolvers<void>>();
  #used = 0;
  #suspended: DatabaseUnavailableError | undefined;

  constructor(options: PoolOptions) {
    this.#options = options;
    this.#pool = this.#open();
    this.#growing = setInterval(() => this.#resize(this.#pool.options.max + 1), GROW_MS).unref();
  }

  /** @throws DatabaseUnavailableError while suspended, or without a connection for {@link ACQUIRE_MS}; the driver's error if connecting fails */
  async use<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    const deadline = performance.now() + ACQUIRE_MS;
    await this.#waitForTurn();
    try {
      const client = await this.#connect(deadline);
      try {
        const value = await work(client);
        client.release();
        return value;
      } catch (error) {
        client.release(isDisconnected(error));
        throw error;
      }
    } finally {
      this.#used--;
      this.#next();
    }
  }

  /** Closes all connections. Until {@link resume}, no query is sent. */
  suspend(reason: string): void {
    const isFirst = this.#suspended === undefined;
    this.#suspended = new DatabaseUnavailableError(`The database is unavailable: ${reason}.`);
    const old = this.#pool;
    if (isFirst) this.#pool = this.#open();
    this.#closeAll();
    for (const turn of this.#queue) turn.reject(this.#suspended);
    this.#queue.clear();
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
    return { active: totalCount - idleCount, idle: idleCount, waiting: this.#queue.size + waitingCount };
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
      pipeline: true,
      stream: () => new BatchingSocket(),
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

  async #waitForTurn(): Promise<void> {
    if (this.#suspended) throw this.#suspended;
    if (this.#queue.size === 0 && this.#used < this.#pool.options.max) {
      this.#used++;
      return;
    }
    const turn = Promise.withResolvers<void>();
    this.#queue.add(turn);
    const timer = setTimeout(() => {
      this.#queue.delete(turn);
      turn.reject(new DatabaseUnavailableError(`No database connection was free for ${ACQUIRE_MS / 1000} s.`));
    }, ACQUIRE_MS);
    await turn.promise.finally(() => clearTimeout(timer));
  }

  #next(): void {
    for (const turn of this.#queue) {
      if (this.#used >= this.#pool.options.max) return;
      this.#queue.delete(turn);
      this.#used++;
      turn.resolve();
    }
  }

  async #connect(deadline: number): Promise<pg.PoolClient> {
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
        "Postgres rejected a new connection because a connection limit, such as max_connections, was reached",
      );
    this.#resize(size);
  }

  #resize(max: number): void {
    this.#pool.options.max = Math.min(Math.max(1, max), this.#options.size);
    this.#next();
  }

  /** Closes all connections. The `end` of pg waits for the answers of the statements that were sent. */
  #closeAll(): void {
    for (const client of this.#clients as Set<unknown> as Set<pg.Client>) {
      void client.end().catch(() => undefined);
      client.connection.stream.destroy();
    }
    this.#clients.clear();
  }
}

/** Sends the statements of one turn of the event loop together. pg ends the batch after each statement. */
class BatchingSocket extends Socket {
  override uncork(): void {
    process.nextTick(() => super.uncork());
  }
}

/** Serialization failure and deadlock. */
const REPEATABLE = new Set(["40001", "40P01"]);
const MAX_REPEATS = 5;

interface TransactionOptions {
  /** The statement that begins the transaction. */
  begin: string;
  /** Timeout of the statements that begin and end it. */
  timeout_ms: number;
}

/**
 * A transaction that begins with its first statement, and retains the answers that are not awaited. Reads are sent together with
 * `begin`; changes wait for its answer, because they would be committed on their own if it failed.
 */
export class Transaction {
  readonly client: pg.PoolClient;
  readonly #options: TransactionOptions;
  readonly #answers: Promise<unknown>[] = [];
  #begun: Promise<void> | undefined;
  #isOpen = false;

  constructor(client: pg.PoolClient, options: TransactionOptions) {
    this.client = client;
    this.#options = options;
  }

  /** Called before each statement. Returns a promise only if the statement must wait. */
  before(text: string): Promise<void> | undefined {
    if (this.#isOpen) return undefined;
    if (!this.#begun) {
      this.#begun = this.#send(this.#options.begin).then(() => {
        this.#isOpen = true;
      });
      this.add(this.#begun);
    }
    return text.startsWith("select ") ? undefined : this.#begun;
  }

  /** Retains the answer of a statement that is not awaited. */
  add(answer: Promise<unknown>): void {
    answer.catch(() => undefined);
    this.#answers.push(answer);
  }

  /** @throws the first error, which is the reason why the statements after it were refused */
  async answered(): Promise<void> {
    await Promise.all(this.#answers);
  }

  /** Sends the commit without waiting for earlier answers: after a failed statement Postgres executes it as a rollback. */
  async commit(): Promise<void> {
    if (this.#begun) await Promise.all([this.answered(), this.#send("commit")]);
  }

  async rollBack(): Promise<void> {
    if (this.#begun) await this.#send("rollback");
  }

  async #send(text: string): Promise<void> {
    const query: pg.QueryConfig & { query_timeout: number } = { text, query_timeout: this.#options.timeout_ms };
    await this.client.query(query);
  }
}

/** Runs `work` in a transaction. After a serialization failure or a deadlock, `work` runs again. */
export async function inTransaction<T>(
  pool: PostgresPool,
  options: TransactionOptions,
  work: (transaction: Transaction) => Promise<T>,
): Promise<T> {
  for (let repeat = 0; ; repeat++) {
    try {
      return await pool.use(async (client) => {
        const transaction = new Transaction(client, options);
        try {
          const value = await work(transaction);
          await transaction.commit();
          return value;
        } catch (error) {
          // The pool closes a broken connection, which ends its transaction.
          if (!isDisconnected(error)) await transaction.rollBack();
          throw error;
        }
      });
    } catch (error) {
      const isRepeatable = REPEATABLE.has((error as { code?: string }).code ?? "") || isOutdated(error);
      if (!isRepeatable || repeat === MAX_REPEATS) throw error;
    }
  }
}
