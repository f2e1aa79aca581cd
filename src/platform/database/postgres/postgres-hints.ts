import { setImmediate, setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import type { Log } from "../../lib/log.ts";
import { withTimeout } from "../../lib/signal.ts";
import { type Hint, type Hints, LocalHints, parseHint } from "../hints.ts";
import type { PostgresPool } from "./postgres-pool.ts";
import type { StatementNames } from "./statement-names.ts";

/** Returns the notification channel. Deployments that share a database each have their own schema and their own channel. */
function channelOf(url: string): string {
  const [, schema] = /search_path=(\w+)/.exec(new URL(url).searchParams.get("options") ?? "") ?? [];
  return schema === undefined ? "threadmill" : `threadmill_${schema}`;
}

/**
 * Minimum time between two sends; the hints that arrive meanwhile are collected. They are sent outside of write transactions, because a
 * commit that notifies takes a database-wide lock.
 */
const BATCH_MS = 10;

/** Delay before a lost connection is reopened. Until then, all listeners poll. */
const RECONNECT_MS = 500;

/**
 * The class of the advisory lock that each connection of a process holds, with its worker id. When the process dies, the operating system
 * closes its sockets and Postgres releases the lock, seconds before the leases expire.
 */
export const PRESENCE_LOCK_CLASS = 20_240;

/** Returns the query that takes the advisory lock, in shared mode, so that all connections of a process can hold it. */
export const presenceLock = (worker_id: number): string =>
  `select pg_advisory_lock_shared(${PRESENCE_LOCK_CLASS}, ${worker_id})`;

const HEALTH_CHECK_MS = 1_000;
/**
 * Response timeout after which the server is considered unavailable. Together with {@link HEALTH_CHECK_MS}, this is
 * less than a lease.
 */
export const RESPONSE_TIMEOUT_MS = 2_000;

interface PostgresHintsOptions {
  config: pg.ClientConfig;
  worker_id: number;
  pool: PostgresPool;
  names: StatementNames;
  log: Log;
}

/** Exchanges hints with other processes by NOTIFY and LISTEN. The listening connection also serves to check whether the server responds. */
export class PostgresHints implements Hints {
  readonly #local = new LocalHints();
  readonly #options: PostgresHintsOptions;
  readonly #channel: string;
  readonly #sender = String(Math.random());
  readonly #unsent = new Set<string>();
  /** Time of the last send, on the clock of performance.now(). */
  #sent_at = 0;
  #timer: NodeJS.Timeout | undefined;
  #client: pg.Client | undefined;
  #isConnected = false;
  #closed = false;

  constructor(options: PostgresHintsOptions) {
    this.#options = options;
    this.#channel = channelOf(options.config.connectionString as string);
  }

  /** Connection for statements that must not wait for the pool. */
  get connection(): pg.Client | undefined {
    return this.#isConnected ? this.#client : undefined;
  }

  /** Connects and subscribes to the hints of other processes. */
  async connect(): Promise<void> {
    if (this.#closed) return;
    const { config, worker_id, pool, log } = this.#options;
    const client = new pg.Client({
      ...config,
      application_name: "threadmill hints",
      connectionTimeoutMillis: RESPONSE_TIMEOUT_MS,
    });
    this.#client = client;
    client.on("notification", ({ payload }) => this.#receive(payload ?? ""));
    client.on("error", () => this.#reconnect(client));
    client.on("end", () => this.#reconnect(client));
    const query = (text: string) => client.query({ text, query_timeout: RESPONSE_TIMEOUT_MS } as pg.QueryConfig);
    try {
      await client.connect();
      await query(`listen ${this.#channel}`);
      await query(presenceLock(worker_id));
      this.#isConnected = true;
      pool.resume();
      void this.#checkHealth(client);
    } catch (error) {
      // The process may stop before the connection is open.
      if (this.#closed) return;
      const { message, code } = error as Error & { code?: string };
      log.warn({ error: message }, "notification connection failed; polling until the connection is restored");
      // A server that refuses connections because it has too many (class 53) is responding.
      if (code?.startsWith("53")) pool.resume();
      // Another attempt can have succeeded during the check.
      else if (!(await this.#poolResponds()) && !this.#isConnected && !this.#closed) pool.suspend(message);
      this.#reconnect(client);
    }
  }

  /** Whether the database still responds on other connections. */
  async #poolResponds(): Promise<boolean> {
    const query = { text: "select 1", query_timeout: RESPONSE_TIMEOUT_MS };
    const response = this.#options.pool.use((client) => client.query(query));
    return response.then(Boolean, () => false);
  }

  async #checkHealth(client: pg.Client): Promise<void> {
    while (!this.#closed && this.#client === client) {
      await sleep(HEALTH_CHECK_MS, undefined, { ref: false });
      if (this.#closed || this.#client !== client || (await responds(client))) continue;
      if (this.#closed || this.#client !== client) return;
      this.#options.log.error("database is not responding; reopening all connections");
      this.#options.pool.suspend(`no response within ${RESPONSE_TIMEOUT_MS} ms`);
      this.#reconnect(client);
    }
  }

  emit(hint: Hint): void {
    this.#local.emit(hint);
    this.#unsent.add(JSON.stringify(hint));
    const pause_ms = Math.max(0, this.#sent_at + BATCH_MS - performance.now());
    this.#timer ??= setTimeout(() => void this.#send(), pause_ms);
  }

  listen<K extends Hint["kind"]>(kind: K, listener: (hint: Extract<Hint, { kind: K }>) => void): () => void {
    return this.#local.listen(kind, listener);
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    // Readers in other processes get the last events of a run without waiting for a poll.
    if (this.#unsent.size > 0) await withTimeout(this.#send(), RESPONSE_TIMEOUT_MS);
    const ended = this.#client?.end().catch(() => undefined);
    if (ended) await withTimeout(ended, RESPONSE_TIMEOUT_MS);
  }

  async #send(): Promise<void> {
    this.#timer = undefined;
    this.#sent_at = performance.now();
    const hints = [...this.#unsent];
    this.#unsent.clear();
    const payloads = hints.map((hint) => `${this.#sender} ${hint}`);
    const text = "select pg_notify($1, payload) from unnest($2::text[]) as payload";
    const { pool, names, log } = this.#options;
    await pool
      .use((client) => client.query({ name: names.nameOf(text), text, values: [this.#channel, payloads] }))
      .catch((error: Error) => log.debug({ error: error.message }, "sending notifications failed"));
  }

  #receive(payload: string): void {
    const at = payload.indexOf(" ");
    if (payload.slice(0, at) === this.#sender) return;
    const hint = parseHint(payload.slice(at + 1));
    if (hint) this.#local.emit(hint);
  }

  #reconnect(lost: pg.Client): void {
    if (this.#closed || this.#client !== lost) return;
    this.#client = undefined;
    this.#isConnected = false;
    lost.end().catch(() => undefined);
    setTimeout(() => void this.connect(), RECONNECT_MS).unref();
  }
}

async function responds(client: pg.Client): Promise<boolean> {
  let responded = false;
  const onResponse = () => {
    responded = true;
  };
  const response = client.query("select 1").then(onResponse, () => undefined);
  await withTimeout(response, RESPONSE_TIMEOUT_MS);
  // If the event loop was blocked, the timer runs before a response that has arrived is read.
  if (!responded) await setImmediate();
  if (!responded) await setImmediate();
  return responded;
}
