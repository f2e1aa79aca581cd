import { setImmediate, setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import type { Log } from "../../lib/log.ts";
import { withTimeout } from "../../lib/signal.ts";
import { type Hint, type Hints, LocalHints } from "../hints.ts";
import type { PostgresPool } from "./postgres-pool.ts";

/** Deployments share a database with a schema for each, and hints are for one deployment. */
function channelOf(url: string): string {
  const [, schema] = /search_path=(\w+)/.exec(new URL(url).searchParams.get("options") ?? "") ?? [];
  return schema === undefined ? "threadmill" : `threadmill_${schema}`;
}

/**
 * Hints of this interval are sent in one statement. They are sent outside of transactions, because a commit that notifies takes a lock of
 * the whole database.
 */
const BATCH_MS = 10;

/** Meanwhile every part polls. */
const RECONNECT_MS = 500;

/**
 * The class of the advisory lock that each connection of a process holds, with its worker id. When the process dies, the operating system
 * closes its sockets and Postgres releases the lock, seconds before the leases expire.
 */
export const PRESENCE_LOCK_CLASS = 20_240;

/** The lock is shared, so that one connection is enough when the server has no more. */
export const presenceLock = (worker_id: number): string =>
  `select pg_advisory_lock_shared(${PRESENCE_LOCK_CLASS}, ${worker_id})`;

const HEALTH_CHECK_MS = 1_000;
/**
 * Without a response for this time, the server is considered unavailable. A request waits for at most both times, which are together less
 * than a lease.
 */
export const RESPONSE_TIMEOUT_MS = 2_000;

/** Sends hints to other processes with NOTIFY. The same connection checks whether the server responds. */
export class PostgresHints implements Hints {
  readonly #local = new LocalHints();
  readonly #config: pg.ClientConfig;
  readonly #channel: string;
  readonly #worker_id: number;
  readonly #pool: PostgresPool;
  readonly #log: Log;
  readonly #sender = String(Math.random());
  readonly #unsent = new Set<string>();
  #timer: NodeJS.Timeout | undefined;
  #client: pg.Client | undefined;
  #isConnected = false;
  #closed = false;

  constructor(config: pg.ClientConfig, worker_id: number, pool: PostgresPool, log: Log) {
    this.#config = config;
    this.#channel = channelOf(config.connectionString as string);
    this.#worker_id = worker_id;
    this.#pool = pool;
    this.#log = log;
  }

  /** For statements that must not wait for the pool. */
  get connection(): pg.Client | undefined {
    return this.#isConnected ? this.#client : undefined;
  }

  /** Connects and subscribes to the hints of other processes. */
  async connect(): Promise<void> {
    if (this.#closed) return;
    const client = new pg.Client({
      ...this.#config,
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
      await query(presenceLock(this.#worker_id));
      this.#isConnected = true;
      this.#pool.resume();
      void this.#checkHealth(client);
    } catch (error) {
      // The process may stop before the connection is open.
      if (this.#closed) return;
      const { message, code } = error as Error & { code?: string };
      this.#log.warn({ error: message }, "hint connection failed, polling");
      // A server without free connections does respond.
      if (code?.startsWith("53")) this.#pool.resume();
      else if (!(await this.#poolResponds())) this.#pool.suspend(message);
      this.#reconnect(client);
    }
  }

  /** The failure may concern only this connection. */
  async #poolResponds(): Promise<boolean> {
    const query = { text: "select 1", query_timeout: RESPONSE_TIMEOUT_MS };
    const response = this.#pool.use((client) => client.query(query));
    return response.then(Boolean, () => false);
  }

  async #checkHealth(client: pg.Client): Promise<void> {
    while (!this.#closed && this.#client === client) {
      await sleep(HEALTH_CHECK_MS, undefined, { ref: false });
      if (this.#closed || this.#client !== client || (await responds(client))) continue;
      if (this.#closed || this.#client !== client) return;
      this.#log.error("database does not respond, reopening all connections");
      this.#pool.suspend(`no response within ${RESPONSE_TIMEOUT_MS} ms`);
      this.#reconnect(client);
    }
  }

  emit(hint: Hint): void {
    this.#local.emit(hint);
    this.#unsent.add(JSON.stringify(hint));
    this.#timer ??= setTimeout(() => void this.#send(), BATCH_MS);
  }

  listen<K extends Hint["kind"]>(kind: K, listener: (hint: Extract<Hint, { kind: K }>) => void): () => void {
    return this.#local.listen(kind, listener);
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    const ended = this.#client?.end().catch(() => undefined);
    if (ended) await withTimeout(ended, RESPONSE_TIMEOUT_MS);
  }

  async #send(): Promise<void> {
    this.#timer = undefined;
    const hints = [...this.#unsent];
    this.#unsent.clear();
    const payloads = hints.map((hint) => `${this.#sender} ${hint}`);
    const text = "select pg_notify($1, payload) from unnest($2::text[]) as payload";
    await this.#pool
      .use((client) => client.query(text, [this.#channel, payloads]))
      .catch((error: Error) => this.#log.debug({ error: error.message }, "hints not sent"));
  }

  #receive(payload: string): void {
    const at = payload.indexOf(" ");
    if (payload.slice(0, at) === this.#sender) return;
    this.#local.emit(JSON.parse(payload.slice(at + 1)) as Hint);
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
