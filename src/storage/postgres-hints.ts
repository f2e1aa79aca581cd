import pg from "pg";
import type { Log } from "../lib/log.ts";
import { type Hint, type Hints, LocalHints } from "./hints.ts";

const CHANNEL = "threadmill";

/**
 * Hints between processes over NOTIFY. A commit that notifies takes a lock of the whole database, so hints are
 * sent outside of transactions, gathered for {@link GATHER_MS}, in one statement; NOTIFY itself drops doubles.
 */
const GATHER_MS = 10;

/** A lost connection is made anew after this time. Until then the pollers carry on. */
const RECONNECT_MS = 500;

/**
 * The class of the advisory lock that a process holds, under its worker id, on its connection for hints. When
 * the process dies, its kernel closes the socket and the lock is gone, seconds before its leases run out.
 */
export const PRESENCE = 20_240;

export class PostgresHints implements Hints {
  readonly #local = new LocalHints();
  readonly #url: string;
  readonly #worker_id: number;
  readonly #pool: pg.Pool;
  readonly #log: Log;
  readonly #sender = String(Math.random());
  readonly #waiting = new Set<string>();
  #timer: NodeJS.Timeout | undefined;
  #client: pg.Client | undefined;
  #closed = false;

  constructor(url: string, worker_id: number, pool: pg.Pool, log: Log) {
    this.#url = url;
    this.#worker_id = worker_id;
    this.#pool = pool;
    this.#log = log;
  }

  /** Starts to hear what other processes say. */
  async connect(): Promise<void> {
    if (this.#closed) return;
    const client = new pg.Client({
      connectionString: this.#url,
      application_name: "threadmill hints",
      keepAlive: true,
    });
    this.#client = client;
    client.on("notification", ({ payload }) => this.#receive(payload ?? ""));
    client.on("error", () => this.#reconnect(client));
    client.on("end", () => this.#reconnect(client));
    try {
      await client.connect();
      await client.query(`listen ${CHANNEL}`);
      await client.query("select pg_advisory_lock($1, $2)", [PRESENCE, this.#worker_id]);
    } catch (error) {
      // A command may be done before it is connected.
      if (this.#closed) return;
      this.#log.warn({ error: (error as Error).message }, "no connection for hints; polling until there is one");
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
    await this.#client?.end().catch(() => undefined);
  }

  async #send(): Promise<void> {
    this.#timer = undefined;
    const hints = [...this.#waiting];
    this.#waiting.clear();
    const payloads = hints.map((hint) => `${this.#sender} ${hint}`);
    await this.#pool
      .query("select pg_notify($1, payload) from unnest($2::text[]) as payload", [CHANNEL, payloads])
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
    lost.end().catch(() => undefined);
    setTimeout(() => void this.connect(), RECONNECT_MS).unref();
  }
}
