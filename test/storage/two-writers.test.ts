import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setImmediate as nextTurn } from "node:timers/promises";
import { sql } from "kysely";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Database } from "../../src/platform/database/database.ts";
import { openSqlite } from "../../src/platform/database/sqlite/sqlite.ts";
import { systemClock } from "../../src/platform/lib/clock.ts";
import { createDatabase, type TestDatabase } from "../support/databases.ts";

describe("a write on SQLite while another process writes", () => {
  let at: TestDatabase;
  let database: Database;
  let other: DatabaseSync;
  beforeEach(async () => {
    at = await createDatabase("sqlite");
    const file = join(at.data_dir, "threadmill.db");
    database = openSqlite({ file, synchronous: "normal", clock: systemClock, busy_timeout_ms: 1_000 });
    other = new DatabaseSync(file);
    other.exec("create table notes (text text)");
    other.exec("begin immediate");
  });
  afterEach(async () => {
    other.close();
    await database.close();
    await at.drop();
  });
  const note = (text: string) =>
    database.write((tx) => tx.run(sql`insert into notes (text) values (${text})`.compile(tx.k)));

  it("waits for it, and its thread does not", async () => {
    const written = Promise.all([note("first"), note("second")]);
    let longest_ms = 0;
    for (let turn = 0, at = performance.now(); turn < 500; turn++) {
      await nextTurn();
      longest_ms = Math.max(longest_ms, performance.now() - at);
      at = performance.now();
    }
    other.exec("commit");
    expect(await written).toEqual([1, 1]);
    // SQLite's own waiting would have taken the whole second in one piece.
    expect(longest_ms).toBeLessThan(900);
  });

  it("fails in the end, and the next one finds the file free", async () => {
    await expect(Promise.all([note("first"), note("second")])).rejects.toThrow("database is locked");
    other.exec("commit");
    expect(await note("third")).toBe(1);
    expect(other.prepare("select text from notes").all()).toEqual([{ text: "third" }]);
  });
});
