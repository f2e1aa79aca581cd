import { setImmediate, setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import type { Log } from "../../lib/log.ts";
import { type Hint, type Hints, LocalHints } from "../hints.ts";
import type { PostgresPool } from "./postgres-pool.ts";

/** Deployments share a database, each with a schema of its own: what one says is no news for the others. */
function channelOf(url: string): string {
  const [, schema] = /search_path=(\w+)/.exec(new URL(url).searchParams.get("options") ?? "") ?? [];
  return schema === undefined ? "threadmill" : `threadmill_${schema}`;
}

/**
 * Hints between processes over NOTIFY. A commit that notifies takes a lock of the whole database, so hints are
 * sent outside of transactions, gathered for {@link GATHER_MS}, in one statement; NOTIFY itself drops doubles.
 */
const GATHER_MS = 10;

/** A lost connection is made anew after this time. Until then the pollers carry on. */
const RECONNECT_MS = 500;

/**
 * The class of the advisory lock that each connection of a process holds, under its worker id. When the process
 * dies, its kernel closes the sockets and the lock is gone, seconds before its leases run out.
 */
export const PRESENCE = 20_240;

/** Takes that lock. Shared: one connection of a process is enough, also when the server has no more to give. */
export const presenceOf = (worker_id: number): string => `select pg_advisory_lock_shared(${PRESENCE}, ${worker_id})`;

/** So often the connection for hints is asked for a sign of life, as long after the last one. */
const WATCH_MS = 1_000;
/**
 * Without an answer for this long the server is taken to be away. Together with {@link WATCH_MS} it is what a request waits for at
 * most, and less than a lease.
 */
export const ANSWER_MS = 2_000;

/** Hints between processes; and, on the same connection, the watch over whether the server answers at all. */
export class PostgresHints implements Hints {
  readonly #local = new LocalHints();
  readonly #config: pg.ClientConfig;
  readonly #channel: string;
  readonly #worker_id: number;
  readonly #pool: PostgresPool;
  readonly #log: Log;
  readonly #sender = String(Math.random());
  readonly #waiting = new Set<string>();
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

  /** The connection, while it is there: for what must not wait until the pool has one to lend. */
  get connection(): pg.Client | undefined {
    return this.#isConnected ? this.#client : undefined;
  }

  /** Starts to hear what other processes say. */
  async connect(): Promise<void> {
    if (this.#closed) return;
    const client = new pg.Client({
      ...this.#config,
      application_name: "threadmill hints",
      connectionTimeoutMillis: ANSWER_MS,
    });
    this.#client = client;
    client.on("notification", ({ payload }) => this.#receive(payload ?? ""));
    client.on("error", () => this.#reconnect(client));
    client.on("end", () => this.#reconnect(client));
    const ask = (text: string) => client.query({ text, query_timeout: ANSWER_MS } as pg.QueryConfig);
    try {
      await client.connect();
      await ask(`listen ${this.#channel}`);
      await ask(presenceOf(this.#worker_id));
      this.#isConnected = true;
      this.#pool.resume();
      void this.#watch(client);
    } catch (error) {
      // A command may be done before it is connected.
      if (this.#closed) return;
      const { message, code } = error as Error & { code?: string };
      this.#log.warn({ error: message }, "no connection for hints; polling until there is one");
      // A server that has no connection left answers.
      if (code?.startsWith("53")) this.#pool.resume();
      else if (!(await this.#poolAnswers())) this.#pool.suspend(message);
      this.#reconnect(client);
    }
  }

  /** What fails on this connection may be this connection's own. */
  #poolAnswers(): Promise<boolean> {
    const query = { text: "select 1", query_timeout: ANSWER_MS };
    return this.#pool
      .use((client) => client.query(query))
      .then(
        () => true,
        () => false,
      );
  }

  async #watch(client: pg.Client): Promise<void> {
    while (!this.#closed && this.#client === client) {
      await sleep(WATCH_MS, undefined, { ref: false });
      if (this.#closed || this.#client !== client || (await answers(client))) continue;
      if (this.#closed || this.#client !== client) return;
      this.#log.error("the database does not answer: all connections to it are made anew");
      this.#pool.suspend(`it was silent for ${ANSWER_MS} ms`);
      this.#reconnect(client);
    }
  }

  emit(hint: Hint): void {
    this.#local.emit(hint);
    this.#waiting.add(JSON.stringify(hint));
    this.#timer ??= setTimeout(() => void this.#send(), GATHER_MS);
  }

  listen<K extends Hint["kind"]>(kind: K, listener: (hint: Extract<Hint, { kind: K }>) => void): () => void {
    return this.#local.listen(kind, listener);
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    const ended = this.#client?.end().catch(() => undefined);
    await Promise.race([ended, sleep(ANSWER_MS, undefined, { ref: false })]);
  }

  async #send(): Promise<void> {
    this.#timer = undefined;
    const hints = [...this.#waiting];
    this.#waiting.clear();
    const payloads = hints.map((hint) => `${this.#sender} ${hint}`);
    const text = "select pg_notify($1, payload) from unnest($2::text[]) as payload";
    await this.#pool
      .use((client) => client.query(text, [this.#channel, payloads]))
      .catch((error: Error) => this.#log.debug({ error: error.message }, "hints were not sent"));
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

async function answers(client: pg.Client): Promise<boolean> {
  let answered = false;
  const answer = client.query("select 1").then(
    () => {
      answered = true;
    },
    () => undefined,
  );
  const timer = new AbortController();
  const late = sleep(ANSWER_MS, undefined, { ref: false, signal: timer.signal }).catch(() => undefined);
  await Promise.race([answer, late]);
  timer.abort();
  // Where the process itself stood still, its timers come before the answer that has long been there.
  if (!answered) await setImmediate();
  if (!answered) await setImmediate();
  return answered;
}
