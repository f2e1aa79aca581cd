import type { DatabaseSync, StatementSync } from "node:sqlite";
import { setTimeout as delay } from "node:timers/promises";
import type { Tx } from "../database.ts";
import { isFileBusy } from "../database-errors.ts";

interface QueuedWrite {
  run(tx: Tx): Promise<unknown>;
  resolve(value: unknown): void;
  reject(reason: unknown): void;
}

/** Interval between attempts to begin a group, slightly longer than a commit on a fast disk. */
const RETRY_MS = 1;

/**
 * The writes of one turn of the event loop share a transaction and one wait for the disk. Each write has a savepoint, so only failed writes
 * are rolled back. SQLite queries are synchronous, so a group runs in one sequence of promise callbacks.
 */
export class GroupCommit {
  readonly #connection: DatabaseSync;
  readonly #busy_timeout_ms: number;
  readonly #begin: StatementSync;
  readonly #commit: StatementSync;
  readonly #savepoint: StatementSync;
  readonly #release: StatementSync;
  readonly #tx: Tx;
  readonly #queue: QueuedWrite[] = [];
  /** Whether the only write of the group has failed. */
  #isRolledBack = false;
  #scheduled = false;
  #idle: Promise<void> = Promise.resolve();

  /** @param busy_timeout_ms maximum wait of a group, without blocking this thread, while another process or thread writes */
  constructor(connection: DatabaseSync, tx: Tx, busy_timeout_ms: number) {
    this.#connection = connection;
    this.#tx = tx;
    this.#busy_timeout_ms = busy_timeout_ms;
    // Preparing these statements for each commit took 14 % of the time of the serving thread.
    this.#begin = connection.prepare("begin immediate");
    this.#commit = connection.prepare("commit");
    this.#savepoint = connection.prepare("savepoint work");
    this.#release = connection.prepare("release work");
  }

  add<T>(run: (tx: Tx) => Promise<T>): Promise<T> {
    // A write may arrive after the service has stopped, for example when an OAuth provider responds late.
    if (!this.#connection.isOpen) return Promise.reject(new Error("The database is closed."));
    return new Promise<T>((resolve, reject) => {
      this.#queue.push({ run, resolve: resolve as (value: unknown) => void, reject });
      this.#schedule();
    });
  }

  async drained(): Promise<void> {
    while (this.#scheduled || this.#queue.length > 0) {
      await this.#idle;
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#idle = this.#commitGroup().finally(() => {
        this.#scheduled = false;
        if (this.#queue.length > 0) this.#schedule();
      });
    });
  }

  async #commitGroup(): Promise<void> {
    let group = this.#queue;
    const settle: (() => void)[] = [];
    try {
      await this.#beginWhenFree();
      this.#isRolledBack = false;
      // Writes that arrived during the wait join the group.
      group = this.#queue.splice(0);
      for (const write of group) settle.push(await this.#runOne(write, group.length === 1));
      if (!this.#isRolledBack) this.#commit.run();
    } catch (error) {
      if (this.#connection.isTransaction) this.#connection.exec("rollback");
      for (const { reject } of group.splice(0)) reject(error);
      return;
    }
    for (const done of settle) done();
  }

  /** Begins a transaction as soon as no other writer is active. SQLite's own wait (`busy_timeout`) would block this thread. */
  async #beginWhenFree(): Promise<void> {
    const deadline = performance.now() + this.#busy_timeout_ms;
    for (;;) {
      try {
        this.#begin.run();
        return;
      } catch (error) {
        if (!isFileBusy(error) || performance.now() > deadline) throw error;
      }
      await delay(RETRY_MS);
    }
  }

  /** Returns the function that reports the result after the commit. The only write of a group needs no savepoint. */
  async #runOne(write: QueuedWrite, isOnly: boolean): Promise<() => void> {
    if (!isOnly) this.#savepoint.run();
    try {
      const value = await write.run(this.#tx);
      if (!isOnly) this.#release.run();
      return () => write.resolve(value);
    } catch (error) {
      if (!this.#connection.isTransaction) throw error;
      this.#connection.exec(isOnly ? "rollback" : "rollback to work");
      if (isOnly) this.#isRolledBack = true;
      else this.#release.run();
      return () => write.reject(error);
    }
  }
}
