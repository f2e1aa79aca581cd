import { describe, expect, it } from "vitest";
import { throughput } from "../../src/agent-server/runs/run-overview.ts";
import {
  countRunsByMinute,
  findPositionBefore,
  firstCreation,
  groupEndedRuns,
  listRunsOfTenant,
} from "../../src/agent-server/storage/run-overview.ts";
import { listActiveRunsOfTenant } from "../../src/agent-server/storage/runs.ts";
import { planOf } from "../support/query-plan.ts";
import { openTestStorage } from "../support/storage.ts";

const TENANT = "00000000-0000-4000-8000-000000000001";

describe("the runs of a workspace", () => {
  it("are found by an index, and counted without reading a row", async () => {
    const { database, close } = await openTestStorage("sqlite");
    const all = {
      tenant_id: TENANT,
      access: undefined,
      status: undefined,
      assistant_id: undefined,
      thread_id: undefined,
      run_id: undefined,
      created_from: 1,
      created_until: undefined,
      ended_from: undefined,
      ended_until: undefined,
      after: { created_at: 5, seq: 5 },
      back_to: undefined,
      limit: 10,
    };
    const list = await planOf(database, (tx) => listRunsOfTenant(tx, all));
    expect(list).toContain("USING INDEX runs_of_workspace (tenant_id=?");
    expect(list).not.toMatch(/TEMP B-TREE|SCAN/);
    expect(await planOf(database, (tx) => findPositionBefore(tx, all, 5))).toContain(
      "COVERING INDEX runs_of_workspace",
    );
    const ended = await planOf(database, (tx) => listRunsOfTenant(tx, { ...all, ended_from: 1, ended_until: 9 }));
    expect(ended).toContain(list);
    expect(ended).toContain("USING COVERING INDEX runs_by_end (tenant_id=? AND ended_at>? AND ended_at<?");
    expect(ended).not.toMatch(/TEMP B-TREE|SCAN/);
    expect(await planOf(database, (tx) => firstCreation(tx, { ...all, ended_from: 1, ended_until: 9 }))).toContain(
      "COVERING INDEX runs_by_end",
    );
    const bounds = { ended_from: 1, ended_until: 9, bucket_ms: 60_000, limit: 10 };
    const groups = await planOf(database, (tx) =>
      groupEndedRuns(tx, { tenant_id: TENANT, access: undefined, ...bounds }),
    );
    expect(groups).toContain("USING INDEX runs_by_end (tenant_id=? AND ended_at>? AND ended_at<?");
    const running = await planOf(database, (tx) => listRunsOfTenant(tx, { ...all, status: ["running"] }));
    expect(running).toContain("USING INDEX runs_by_end (tenant_id=? AND ended_at=?");
    const active = { tenant_id: TENANT, before: undefined, limit: 10, access: undefined };
    expect(await planOf(database, (tx) => listActiveRunsOfTenant(tx, active))).toContain("runs_by_end");
    for (const ended_from of [null, 1_000]) {
      const counts = await planOf(database, (tx) =>
        countRunsByMinute(tx, { tenant_id: TENANT, ended_from, limit: 10, access: undefined }),
      );
      expect(counts).toContain("USING COVERING INDEX runs_by_end (tenant_id=? AND ended_at");
    }
    await close();
  });
});

describe("the throughput", () => {
  const now = 100 * 60_000 + 1;
  const run = (accepted: number, started: number | null, ended: number | null, count = 1) => ({
    accepted,
    started,
    ended,
    count,
  });

  it("reckons back from now how many waited and ran", () => {
    const minutes = throughput({
      now,
      active: [run(98, null, null, 2), run(20, 99, null)],
      ended: [run(97, 98, 100, 3), run(99, null, 99)],
      isCut: false,
    });
    expect(minutes).toHaveLength(60);
    expect(minutes.slice(-4).map(({ at, ...numbers }) => Object.values(numbers))).toEqual([
      [3, 0, 0, 4, 0],
      [2, 3, 0, 3, 3],
      [1, 1, 1, 2, 4],
      [0, 0, 3, 2, 1],
    ]);
    expect(minutes[0]).toMatchObject({ waiting: 1, running: 0 });
  });

  it("leaves out the minutes of which not all runs were counted", () => {
    const minutes = throughput({ now, active: [], ended: [run(90, 95, 97, 5), run(99, 99, 99)], isCut: true });
    expect(minutes.map(({ ended }) => ended)).toEqual([0, 1, 0]);
  });
});
