import type { Wait } from "../platform/lib/clock.ts";
import type { LogLine } from "./drivers/driver.ts";
import type { DeploymentLogRow, RevisionRow } from "./storage/schema.ts";

type Line = Omit<DeploymentLogRow, "log_no">;

/** Lines wait this long for company: a chatty instance costs 5 transactions a second and no more. */
const GATHER_MS = 200;
const BATCH = 500;
/** Lines that wait while the database is slow or away. Past that the oldest go. */
const MAX_WAITING = 10_000;
/** Characters of a line that are kept. */
const LONGEST = 16_384;

export interface LogOptions {
  wait: Wait;
  /** @throws when the lines could not be written; they are offered again */
  write(lines: readonly Line[]): Promise<unknown>;
  onError(error: unknown): void;
}

/** Brings what builds and instances of a deployment say into the database, in order. */
export class DeploymentLog {
  readonly #options: LogOptions;
  readonly #closing = new AbortController();
  #lines: Line[] = [];
  #gathering = false;
  #refused = false;
  #writing: Promise<void> = Promise.resolve();

  constructor(options: LogOptions) {
    this.#options = options;
  }

  add(kind: Line["kind"], revision: RevisionRow, { at, level, message, run_id = undefined }: LogLine): void {
    if (this.#closing.signal.aborted) {
      this.#refused = true;
      return;
    }
    const { deployment_id, revision_id, tenant_id } = revision;
    const text = message.length > LONGEST ? `${message.slice(0, LONGEST)} ...` : message;
    const line = { deployment_id, revision_id, tenant_id, kind, level, message: text, run_id: run_id ?? null, at };
    this.#lines.push(line);
    if (this.#lines.length > MAX_WAITING) this.#lines.splice(0, this.#lines.length - MAX_WAITING);
    if (!this.#gathering) void this.#gather();
  }

  async #gather(): Promise<void> {
    this.#gathering = true;
    await this.#options.wait(GATHER_MS, this.#closing.signal);
    this.#gathering = false;
    await this.flush();
    if (this.#lines.length > 0 && !this.#gathering && !this.#closing.signal.aborted) void this.#gather();
  }

  /** Writes what there is. When that fails, it is tried again with the next lines. */
  flush(): Promise<void> {
    this.#writing = this.#writing.then(() => this.#write()).catch(this.#options.onError);
    return this.#writing;
  }

  /** Resolves when all lines that were given are written; rejects when some never will be here, so that they can be told again. */
  async kept(): Promise<void> {
    for (;;) {
      await this.flush();
      if (this.#refused) throw new Error("Lines came after the log of the deployment had been closed.");
      if (this.#lines.length === 0) return;
      if (this.#closing.signal.aborted) throw new Error("The log of the deployment was closed before all was written.");
      await this.#options.wait(GATHER_MS, this.#closing.signal);
    }
  }

  /** Writes what there is, and takes nothing more. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.flush();
  }

  async #write(): Promise<void> {
    while (this.#lines.length > 0) {
      const batch = this.#lines.slice(0, BATCH);
      await this.#options.write(batch);
      // Lines that came too many meanwhile have pushed out the oldest, perhaps of this batch.
      const written = new Set(batch);
      this.#lines = this.#lines.filter((line) => !written.has(line));
    }
  }
}
