import { type RawBuilder, sql } from "kysely";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openPostgres } from "../../src/platform/database/postgres/postgres.ts";
import { createLog } from "../../src/platform/lib/log.ts";
import { Scenario } from "../http/scenario.ts";
import { databases } from "../support/databases.ts";
import { until } from "../support/until.ts";

const MIN_BREAKS = 15;
const RUNS = 8;

// SQLite has no connections to lose.
describe.runIf(databases.includes("postgres"))("when connections to Postgres break", () => {
  let api: Scenario;
  let admin: pg.Client;
  beforeAll(async () => {
    api = await Scenario.start("postgres");
    admin = new pg.Client({ connectionString: api.service.database.url });
    await admin.connect();
  });
  afterAll(async () => {
    await admin.end();
    await api.stop();
  });

  const breakAll = () =>
    admin.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()",
    );

  it("queries wait in their order for a connection of a pool in use while the database responds", async () => {
    const storage = openPostgres({ url: api.service.database.url as string, log: createLog("silent"), pool_size: 1 });
    const select = (value: RawBuilder<unknown>) =>
      storage.read.first(sql`select ${value} as value`.compile(storage.read.k));
    const answers: unknown[] = [];
    const note = (answer: unknown) => answers.push(answer);
    // Longer than opening a connection may take. The later query is sent in between.
    const long = select(sql`pg_sleep(4.5)::text`);
    const first = select(sql`1`).then(note);
    await admin.query("select pg_sleep(1)");
    await Promise.all([long, first, select(sql`2`).then(note)]);
    expect(answers).toEqual([{ value: 1 }, { value: 2 }]);
    await storage.close();
  });

  it("every accepted run reaches its end all the same", async () => {
    const accepted: { thread_id: string; run_id: string }[] = [];
    // On a busy machine the first connections can all break before a run is accepted.
    for (let n = 0; n < MIN_BREAKS || accepted.length === 0; n++) {
      const created = Array.from({ length: RUNS }, async () => {
        const thread = await api.service.request("POST", "/threads", {});
        const path = `/threads/${thread.body?.thread_id}/runs`;
        const run = await api.service.request("POST", path, { assistant_id: "chain", input: { steps: [] } });
        if (run.status === 200) accepted.push(run.body);
      });
      await breakAll();
      await Promise.all(created);
      await breakAll();
    }
    for (const { thread_id, run_id } of accepted) {
      const join = () => api.service.request("GET", `/threads/${thread_id}/runs/${run_id}/join`);
      // The last break may still be felt; clients repeat a 503.
      const joined = await until("it is told how the run ended", async () => {
        const answer = await join();
        return answer.status === 503 ? undefined : answer;
      });
      expect([run_id, joined.status, joined.body]).toEqual([run_id, 200, { steps: ["a", "b", "c"] }]);
    }
  }, 120_000);
});
