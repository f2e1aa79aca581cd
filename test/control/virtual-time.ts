import { sql } from "kysely";
import type { Database } from "../../src/platform/database/database.ts";
import type { Clock, Wait } from "../../src/platform/lib/clock.ts";
import type { Life } from "./life.ts";

interface Sleeper {
  at: number;
  life: Life;
  wake(): void;
}

/** Time that passes when a test says so, for the service and for its database. */
export class VirtualTime implements Clock {
  #now = 1_800_000_000_000;
  readonly #sleepers = new Set<Sleeper>();
  #database: Database | undefined;

  now(): number {
    return this.#now;
  }

  /** Postgres has a clock of its own: it is made to go by this one. */
  async rule(database: Database): Promise<void> {
    if (database.read.dialect.name === "sqlite") return;
    for (const statement of [
      "create table virtual_time (ms bigint not null)",
      `insert into virtual_time values (${this.#now})`,
      "create or replace function now_ms() returns bigint language sql volatile as 'select ms from virtual_time'",
    ]) {
      await database.write((tx) => tx.run(sql.raw(statement).compile(tx.k)));
    }
    this.#database = database;
  }

  waitOf(life: Life): Wait {
    return (ms, signal) =>
      new Promise((resolve) => {
        if (signal.aborted) return resolve();
        const sleeper = { at: this.#now + Math.max(1, Math.ceil(ms)), life, wake: () => this.#wake(sleeper, resolve) };
        this.#sleepers.add(sleeper);
        signal.addEventListener("abort", sleeper.wake, { once: true });
      });
  }

  /** Goes to the next moment for which somebody waits. False when nobody does. */
  async advance(): Promise<boolean> {
    for (const sleeper of this.#sleepers) if (sleeper.life.dead) this.#sleepers.delete(sleeper);
    const next = Math.min(...[...this.#sleepers].map(({ at }) => at));
    if (next === Number.POSITIVE_INFINITY) return false;
    await this.goTo(next);
    return true;
  }

  async goTo(next: number): Promise<void> {
    this.#now = next;
    await this.#database?.write((tx) => tx.run(sql`update virtual_time set ms = ${next}`.compile(tx.k)));
    for (const sleeper of [...this.#sleepers]) if (sleeper.at <= next) sleeper.wake();
  }

  #wake(sleeper: Sleeper, resolve: () => void): void {
    if (this.#sleepers.delete(sleeper) && !sleeper.life.dead) resolve();
  }
}
