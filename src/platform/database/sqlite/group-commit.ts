import type { DatabaseSync, StatementSync } from "node:sqlite";
import { setTimeout as delay } from "node:timers/promises";
import { isFileBusy } from "../../lib/unavailable.ts";
import type { Tx } from "../database.ts";

interface Work {
  run(tx: Tx): Promise<unknown>;
  resolve(value: unknown): void;
  reject(reason: unknown): void;
}

/** While another process writes, the file is tried again after so long: a little more than a commit takes on a fast disk. */
const TRY_AGAIN_MS = 1;

/**
 * All writes that arrive within one turn of the event loop share one transaction, and so one wait for the
 * disk. Each has a savepoint of its own: one that fails undoes only itself.
 *
 * Queries on SQLite finish at once, so a whole group runs in one go of promise callbacks; no timer, socket
 * or other group comes between.
 */
export class GroupCommit {
  readonly #connection: DatabaseSync;
  readonly #patience_ms: number;
  readonly #begin: StatementSync;
  readonly #commit: StatementSync;
  readonly #savepoint: StatementSync;
  readonly #release: StatementSync;
  readonly #tx: Tx;
  readonly #queue: Work[] = [];
  #scheduled = false;
  #idle: Promise<void> = Promise.resolve();

  /** @param patience_ms how long a group waits while another process or thread writes, without holding up this thread */
  constructor(connection: DatabaseSync, tx: Tx, patience_ms: number) {
    this.#connection = connection;
    this.#tx = tx;
    this.#patience_ms = patience_ms;
    // Compiled once: parsing them at each commit was 14 % of the serving thread.
    this.#begin = connection.prepare("begin immediate");
    this.#commit = connection.prepare("commit");
    this.#savepoint = connection.prepare("savepoint work");
    this.#release = connection.prepare("release work");
  }

  add<T>(run: (tx: Tx) => Promise<T>): Promise<T> {
    // Somebody may come back to it late, with what a provider has answered after the service was stopped.
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
      // What has arrived while the file was somebody else's joins.
      group = this.#queue.splice(0);
      for (const work of group) settle.push(await this.#runOne(work, group.length === 1));
      this.#commit.run();
    } catch (error) {
      if (this.#connection.isTransaction) this.#connection.exec("rollback");
      for (const work of group.splice(0)) work.reject(error);
      return;
    }
    for (const done of settle) done();
  }

  /** SQLite's own waiting (`busy_timeout`) would stop this thread, and everybody whom it serves. */
  async #beginWhenFree(): Promise<void> {
    const deadline = performance.now() + this.#patience_ms;
    for (;;) {
      try {
        this.#begin.run();
        return;
      } catch (error) {
        if (!isFileBusy(error) || performance.now() > deadline) throw error;
      }
      await delay(TRY_AGAIN_MS);
    }
  }

  /** Runs one piece of work and says how to report it once the group is committed. A lone one needs no savepoint. */
  async #runOne(work: Work, alone: boolean): Promise<() => void> {
    if (!alone) this.#savepoint.run();
    try {
      const value = await work.run(this.#tx);
      if (!alone) this.#release.run();
      return () => work.resolve(value);
    } catch (error) {
      if (!this.#connection.isTransaction) throw error;
      this.#connection.exec(alone ? "rollback" : "rollback to work");
      if (alone) this.#begin.run();
      else this.#release.run();
      return () => work.reject(error);
    }
  }
}
