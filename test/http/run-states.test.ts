import { sql } from "kysely";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Tx } from "../../src/platform/database/database.ts";
import { databases } from "../support/databases.ts";
import { language } from "../support/language.ts";
import { RUN_TRANSITIONS, THREAD_TRANSITIONS, type Transition } from "../support/run-states.ts";
import { openOn } from "../support/storage.ts";
import { Scenario } from "./scenario.ts";

const TABLES = ["runs", "threads"] as const;

/** Triggers that write down every change of a status, whoever makes it. */
const TRIGGERS: Record<"sqlite" | "postgres", string[]> = {
  sqlite: TABLES.flatMap((table) => [
    `create trigger log_insert_${table} after insert on ${table} begin
      insert into moves values ('${table}', null, new.status); end`,
    `create trigger log_update_${table} after update on ${table} when old.status <> new.status begin
      insert into moves values ('${table}', old.status, new.status); end`,
    `create trigger log_delete_${table} after delete on ${table} begin
      insert into moves values ('${table}', old.status, null); end`,
  ]),
  postgres: [
    `create function log_move() returns trigger language plpgsql as $$ begin
      if tg_op = 'INSERT' then insert into moves values (tg_table_name, null, new.status);
      elsif tg_op = 'DELETE' then insert into moves values (tg_table_name, old.status, null);
      elsif old.status <> new.status then insert into moves values (tg_table_name, old.status, new.status);
      end if; return null; end $$`,
    ...TABLES.map(
      (table) => `create trigger log_${table} after insert or update or delete on ${table}
        for each row execute function log_move()`,
    ),
  ],
};

describe.each(databases)("the states of runs and threads on %s", (database) => {
  let api: Scenario;
  beforeAll(async () => {
    // Short, and yet longer than any other run here takes: a Python host may start for more than 6 s on a busy machine.
    const timeout_secs = language === "python" ? "20" : "6";
    api = await Scenario.start(database, { BG_JOB_TIMEOUT_SECS: timeout_secs }, { inline: false });
    await withStorage(async (tx) => {
      const statements = ["create table moves (what text, before text, after text)", ...TRIGGERS[database]];
      for (const statement of statements) await tx.run(sql.raw(statement).compile(tx.k));
    });
  });
  afterAll(() => api.stop());

  async function withStorage<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    const storage = openOn(api.service.database);
    try {
      return await storage.write(work);
    } finally {
      await storage.close();
    }
  }

  const CHAIN = { assistant_id: "chain", input: { steps: [] } };
  const LATER = { ...CHAIN, after_seconds: 3600 };
  const pause = (thread_id: string) => api.wait(thread_id, { assistant_id: "gate", input: { steps: [] } });
  const fail = (thread_id: string) => api.wait(thread_id, { assistant_id: "fails", input: { kind: "type_error" } });
  const update = (thread_id: string, as_node: string) =>
    api.post(`/threads/${thread_id}/state`, { values: { steps: ["by hand"] }, as_node });

  /** Everything that can happen to a run or a thread. */
  async function liveThroughItAll(): Promise<void> {
    for (const prepare of [async () => undefined, pause, fail]) {
      for (const query of ["", "?action=rollback"]) {
        const thread_id = await api.newThread();
        await prepare(thread_id);
        expect((await api.cancel(await api.newRun(thread_id, LATER), query)).status).toBe(202);
        await api.cancel(await api.runningSlow(thread_id), `${query}${query ? "&" : "?"}wait=1`);
        await api.call("DELETE", `/threads/${thread_id}`);
      }
      const thread_id = await api.newThread();
      await prepare(thread_id);
      await api.wait(thread_id, CHAIN);
      await api.call("DELETE", `/threads/${thread_id}`);
    }
    for (const [prepare, as_node] of [
      [pause, "close"],
      [fail, "second"],
      [fail, "first"],
      [api.wait, "a"],
    ] as const) {
      const thread_id = await api.newThread();
      await prepare(thread_id, CHAIN);
      await update(thread_id, as_node);
      await api.call("DELETE", `/threads/${thread_id}`);
    }
    const slow = await api.newThread();
    await api.wait(slow, { assistant_id: "slow", input: { door: null } });
    const dying = await api.newThread();
    await api.wait(dying, { assistant_id: "dies", input: {} });
    for (const thread_id of [slow, dying]) await api.call("DELETE", `/threads/${thread_id}`);
  }

  it("change as the tables say, in all of these ways and in no other", async () => {
    await liveThroughItAll();
    const rows = await withStorage((tx) =>
      tx.all(sql<Record<string, string>>`select distinct what, before, after from moves`.compile(tx.k)),
    );
    const seen = (table: string) =>
      rows.filter(({ what }) => what === table).map(({ before, after }) => `${before ?? "*"} > ${after ?? "*"}`);
    const documented = (transitions: readonly Transition<string>[]) =>
      transitions.map(({ from, to }) => `${from ?? "*"} > ${to ?? "*"}`);
    // DELETE takes a thread in any state.
    const threads = seen("threads").filter((move) => !move.endsWith("> *"));
    expect(seen("runs").sort()).toEqual(documented(RUN_TRANSITIONS).sort());
    expect(threads.sort()).toEqual(documented(THREAD_TRANSITIONS).sort());
  });
});
