import { sql } from "kysely";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  activateRolloutIfNewer,
  claimRuns,
  mayClaim,
  msUntilNextRun,
} from "../../src/agent-server/storage/claims/claims.ts";
import { EventReader } from "../../src/agent-server/storage/event-reader.ts";
import { insertEvents } from "../../src/agent-server/storage/events.ts";
import { endRunIfHeld, findLostRuns, holdsLease, returnRunIfHeld } from "../../src/agent-server/storage/run-leases.ts";
import { insertRun, interruptIfPending, requestCancel } from "../../src/agent-server/storage/runs.ts";
import type { RunRow } from "../../src/agent-server/storage/schema.ts";
import { searchThreads } from "../../src/agent-server/storage/thread-search.ts";
import { findThread, insertThread, recomputeStatus, setThreadBusy } from "../../src/agent-server/storage/threads.ts";
import { MIGRATIONS } from "../../src/app/compose/migrations.ts";
import { migrate } from "../../src/platform/database/migrate.ts";
import { newId } from "../../src/platform/lib/ids.ts";
import { createDatabase, databases } from "../support/databases.ts";
import { openOn, openTestStorage, type TestStorage } from "../support/storage.ts";

describe.each(databases)("storage on %s", (name) => {
  let storage: TestStorage;
  let tenant_id: string;
  beforeAll(async () => {
    storage = await openTestStorage(name);
  });
  afterAll(() => storage?.close());
  beforeEach(() => {
    tenant_id = newId();
  });
  // Claims see the runs of all workspaces. A database for each test takes 0.1 s on Postgres, and 1.5 s while other suites run.
  afterEach(() => storage.database.write((tx) => tx.run(tx.k.deleteFrom("runs"))));

  const newThread = async (metadata: object = {}): Promise<string> => {
    const thread_id = newId();
    await storage.database.write((tx) =>
      insertThread(tx, { thread_id, tenant_id, metadata: JSON.stringify(metadata), hidden: 0 }),
    );
    return thread_id;
  };
  const enqueue = (thread_id: string, delay_ms = 0, { database } = storage): Promise<RunRow> =>
    database.write((tx) =>
      insertRun(tx, {
        run_id: newId(),
        tenant_id,
        user_id: "user",
        thread_id,
        assistant_id: newId(),
        graph_id: "g",
        metadata: "{}",
        kwargs: "{}",
        multitask_strategy: "enqueue",
        temporary: 0,
        thread_snapshot: null,
        webhook: null,
        push_configs: null,
        delay_ms,
      }),
    );
  const claim = (limit = 10, lease_ms = 60_000): Promise<RunRow[]> =>
    storage.database.write((tx) => claimRuns(tx, { worker_id: 1, lease_ms, limit }));
  const settle = (run: RunRow) =>
    storage.database.write(
      async (tx) => (await endRunIfHeld(tx, { ...run, status: "success", output: "{}" })) !== undefined,
    );
  const giveBack = (run: RunRow, delay_ms = 0) =>
    storage.database.write((tx) => returnRunIfHeld(tx, { ...run, spent: 0, crashed: 0, delay_ms }));
  const ids = (runs: RunRow[]) => runs.map((run) => run.run_id);

  describe("the queue", () => {
    it("gives out one run of a thread at a time, in the order of acceptance", async () => {
      const thread = await newThread();
      const [a, b, c] = [await enqueue(thread), await enqueue(thread), await enqueue(thread)];
      for (const expected of [a, b, c]) {
        const claimed = await claim();
        expect(ids(claimed)).toEqual([expected.run_id]);
        expect(await claim()).toEqual([]);
        await settle(claimed[0] as RunRow);
      }
    });

    it.runIf(name === "sqlite")("takes all times of a new run from one reading of the clock", async () => {
      let now = Date.now();
      const database = openOn(storage.at, undefined, { now: () => ++now });
      const run = await enqueue(await newThread(), 5_000, { ...storage, database });
      await database.close();
      expect(run).toMatchObject({
        start_at: run.created_at + 5_000,
        run_after: run.start_at,
        updated_at: run.created_at,
      });
    });

    it("gives out runs of several threads together, the oldest first, up to the limit", async () => {
      const runs = [
        await enqueue(await newThread()),
        await enqueue(await newThread()),
        await enqueue(await newThread()),
      ];
      expect(ids(await claim(2)).toSorted()).toEqual(ids(runs.slice(0, 2)).toSorted());
      expect(ids(await claim(2))).toEqual(ids(runs.slice(2)));
    });

    it("does not delay other runs because of a delayed run, and reports when it is due", async () => {
      const thread = await newThread();
      await enqueue(thread, 60_000);
      const now = await enqueue(thread);
      expect(ids(await claim())).toEqual([now.run_id]);
      const ms = await msUntilNextRun(storage.database.read);
      expect(ms).toBeGreaterThan(50_000);
      expect(ms).toBeLessThanOrEqual(60_000);
      expect(await mayClaim(storage.database.read)).toBe(false);
    });

    it("lets a run in back-off hold up the runs behind it", async () => {
      const thread = await newThread();
      await enqueue(thread);
      await enqueue(thread);
      const [first] = await claim();
      await giveBack(first as RunRow, 60_000);
      expect(await claim()).toEqual([]);
    });

    it("never assigns a run to two workers, however many claim concurrently", async () => {
      const threads = await Promise.all(Array.from({ length: 10 }, () => newThread()));
      for (const thread of [...threads, ...threads]) await enqueue(thread);
      const asked = await Promise.allSettled(Array.from({ length: 8 }, () => claim(3)));
      const claimed = asked.flatMap((answer) => (answer.status === "fulfilled" ? ids(answer.value) : []));
      expect(new Set(claimed).size).toBe(claimed.length);
      const left = await claim(100);
      expect(claimed.length + left.length).toBe(10);
    });

    it("cannot hold two running runs of a thread, whatever a program does", async () => {
      const thread = await newThread();
      await enqueue(thread);
      await claim();
      const second = await enqueue(thread);
      const { k, dialect } = storage.database.read;
      const force = k.updateTable("runs").set({ status: "running" }).where("run_id", "=", second.run_id);
      const error = await storage.database.write((tx) => tx.run(force)).catch((thrown) => thrown);
      expect(dialect.isUniqueViolation(error)).toBe(true);
    });
  });

  describe("the fence", () => {
    const held = (run: RunRow) => storage.database.write((tx) => holdsLease(tx, run));

    it("is open only to the holder", async () => {
      await enqueue(await newThread());
      const [run] = (await claim()) as [RunRow];
      expect(await held(run)).toBe(true);
      expect(await held({ ...run, epoch: run.epoch - 1 })).toBe(false);
      await giveBack(run);
      expect(await held(run)).toBe(false);
      const [again] = (await claim()) as [RunRow];
      expect([again.run_id, again.epoch > run.epoch, again.attempt]).toEqual([run.run_id, true, 1]);
      expect(await settle(run)).toBe(false);
      expect(await settle(again)).toBe(true);
      expect(await held(again)).toBe(false);
    });

    it("closes when a cancel is stored", async () => {
      await enqueue(await newThread());
      const [run] = (await claim()) as [RunRow];
      await storage.database.write((tx) => requestCancel(tx, run.run_id, { action: "interrupt", reason: null }));
      expect(await held(run)).toBe(false);
      expect(await settle(run)).toBe(false);
    });

    it("gives runs only to the rollout that was named last, if one was, and lost runs to no other", async () => {
      const name = (rollout: number) => storage.database.write((tx) => activateRolloutIfNewer(tx, rollout));
      const claimAs = (rollout: number, lease_ms = 60_000) =>
        storage.database.write((tx) => claimRuns(tx, { worker_id: 1, lease_ms, limit: 1, rollout }));
      const lostTo = (rollout: number) =>
        storage.database.write((tx) => findLostRuns(tx, { lease_ms: 4_000, missed_ms: 1_500, limit: 10, rollout }));
      for (let i = 0; i < 3; i++) await enqueue(await newThread());
      expect(await claimAs(7)).toHaveLength(1);

      expect(await name(8)).toBe(1);
      expect([await mayClaim(storage.database.read, 7), await claimAs(7)]).toEqual([false, []]);
      expect(await mayClaim(storage.database.read, 8)).toBe(true);
      expect(await claimAs(8, -1)).toHaveLength(1);
      expect([await lostTo(7), (await lostTo(8)).length]).toEqual([[], 1]);

      expect([await name(8), await name(7)]).toEqual([0, 0]);
      expect(await claimAs(7)).toEqual([]);
      // Where nobody shares the database nobody asks.
      expect(await claim()).toHaveLength(1);
    });

    it("finds the runs whose lease has run out", async () => {
      await enqueue(await newThread());
      await claim(1, -1);
      const lost = await storage.database.write((tx) =>
        findLostRuns(tx, { lease_ms: 4_000, missed_ms: 1_500, limit: 10 }),
      );
      expect(lost).toHaveLength(1);
    });
  });

  describe("a transaction", () => {
    it("that fails is rolled back without effect on others of the same commit", async () => {
      const kept = newId();
      const thread = (thread_id: string) => ({ thread_id, tenant_id, metadata: "{}", hidden: 0 as const });
      const failed = newId();
      const results = await Promise.allSettled([
        storage.database.write((tx) => insertThread(tx, thread(kept))),
        storage.database.write(async (tx) => {
          await insertThread(tx, thread(failed));
          throw new Error("no");
        }),
        storage.database.write((tx) => recomputeStatus(tx, kept)),
      ]);
      expect(results.map((result) => result.status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
      expect(await findThread(storage.database.read, tenant_id, failed)).toBeUndefined();
      expect(await findThread(storage.database.read, tenant_id, kept)).toBeDefined();
    });

    it("is not seen by readers before its end", async () => {
      const thread_id = newId();
      let seen: unknown = "nothing read";
      await storage.database.write(async (tx) => {
        await insertThread(tx, { thread_id, tenant_id, metadata: "{}", hidden: 0 });
        seen = await findThread(storage.database.read, tenant_id, thread_id);
      });
      expect(seen).toBeUndefined();
      expect(await findThread(storage.database.read, tenant_id, thread_id)).toBeDefined();
    });
  });

  it("a thread that loses a pending run has the status from before", async () => {
    const thread = await newThread();
    await storage.database.write((tx) =>
      tx.run(
        tx.k
          .updateTable("threads")
          .set({ status: "interrupted", idle_status: "interrupted" })
          .where("thread_id", "=", thread),
      ),
    );
    const run = await enqueue(thread);
    await storage.database.write((tx) => setThreadBusy(tx, thread, "{}"));
    await storage.database.write(async (tx) => {
      expect(await interruptIfPending(tx, run.run_id, null)).toBe(1);
      await recomputeStatus(tx, thread);
    });
    expect((await findThread(storage.database.read, tenant_id, thread))?.status).toBe("interrupted");
  });

  it("events are read in order, page by page, and kept to the byte", async () => {
    const run = await enqueue(await newThread());
    const events = Array.from({ length: 30 }, (_, i) => ({
      seq: i + 1,
      event: "custom",
      data: `{"z":1.0,"a":"${i} ü"}`,
    }));
    await storage.database.write((tx) => insertEvents(tx, run, events));
    const after = (seq: number) => new EventReader(run.run_id).after(storage.database.read, seq);
    for (const from of [0, 20, events.length]) expect(await after(from)).toEqual(events.slice(from));
  });

  it.each([
    [{ a: 1 }, { a: 1 }, true],
    [{ a: 1, b: 2 }, { a: 1 }, true],
    [{ a: { b: [1, 2, { c: 3 }] } }, { a: { b: [{ c: 3 }] } }, true],
    [{ a: [1, 2] }, { a: [2, 1, 1] }, true],
    [{ a: 1 }, { a: "1" }, false],
    [{ a: null }, { a: null }, true],
    [{}, { a: null }, false],
    [{ a: { b: 1 } }, { a: {} }, true],
    [{ a: [[1]] }, { a: [1] }, false],
    [{ "a'b": '"' }, { "a'b": '"' }, true],
  ])("whether %j contains %j is %s", async (metadata, part, expected) => {
    const thread = await newThread(metadata);
    const paging = { sort_by: "created_at", sort_order: "asc", limit: 10, offset: 0 } as const;
    const found = await searchThreads(storage.database.read, tenant_id, { metadata: part }, paging);
    expect(found.map((row) => row.thread_id)).toEqual(expected ? [thread] : []);
  });

  it("the time is that of the database, in milliseconds", async () => {
    const { read } = storage.database;
    const row = await read.first(sql<{ now: number }>`select now_ms() as now`.compile(read.k));
    expect(Math.abs((row as { now: number }).now - Date.now())).toBeLessThan(60_000);
  });
});

describe.each(databases)("migrating %s", (name) => {
  it("is done once when several processes start together", async () => {
    const at = await createDatabase(name, { empty: true });
    const programs = Array.from({ length: 4 }, () => openOn(at));
    const applied = await Promise.all(programs.map((program) => migrate(program, MIGRATIONS.agents)));
    expect(applied.flat()).toEqual([
      "001-agent-server",
      "002-rollback",
      "003-event-copies",
      "004-vault",
      "005-assistants-of-workspaces",
      "006-control-plane",
      "007-claimant",
      "008-runs-of-workspaces",
      "009-task-paths",
      "010-deployment-roles",
      "011-member-roles",
      "012-queues-of-workspaces",
      "013-column-names",
      "015-active-rollout",
      "016-trace-deletions",
      "017-crons",
      "018-store",
      "019-webhooks",
      "020-cron-users",
      "021-thread-ttl",
      "022-push-notifications",
      "023-instance-auth",
      "024-checkpoint-language",
      "025-project-encryption",
      "026-runs-of-users",
      "027-event-bases",
    ]);
    for (const program of programs) await program.close();
    await at.drop();
  });
});
