import { globSync } from "node:fs";
import { sql } from "kysely";
import { describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import type { ServerProcess } from "../support/process.ts";
import { openOn } from "../support/storage.ts";
import { until } from "../support/until.ts";
import { sharing } from "./sharing.ts";

const CRONS = 60;
const PROCESSES = 5;
/** A process is killed during each. */
const TICKS = 3;
/** Between the clocks of two processes: those of five are ten minutes fast to ten minutes slow. */
const SKEW_S = 300;
const [FAKETIME] = globSync("/usr/lib/*/faketime/libfaketimeMT.so.1");

describe.each(databases)("crons of processes that share a database (%s)", (name) => {
  const shared = sharing(name);

  const post = async ({ url }: ServerProcess, path: string, body: object) => {
    const headers = { "content-type": "application/json" };
    const answer = await fetch(`${url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(`${path} was answered ${answer.status}: ${await answer.text()}`);
    return (await answer.json()) as { cron_id: string };
  };
  /** With SQLite, all processes are on one machine. */
  const clockOf = (n: number): Record<string, string> => {
    if (name === "sqlite" || !FAKETIME) return {};
    const skew_s = (n - (PROCESSES - 1) / 2) * SKEW_S;
    return { LD_PRELOAD: FAKETIME, FAKETIME: `${skew_s < 0 ? "" : "+"}${skew_s}`, FAKETIME_DONT_FAKE_MONOTONIC: "1" };
  };
  const cron = (enabled: boolean) => ({
    assistant_id: "steps",
    schedule: "0 0 1 1 *",
    input: {},
    enabled,
    on_run_completed: "keep",
  });

  it("create one run for each tick, even when some of them are killed meanwhile", async () => {
    const processes = await Promise.all(
      Array.from({ length: PROCESSES }, (_, n) => shared.start("test/graphs/shared/before.json", clockOf(n))),
    );
    const last = processes.at(-1) as ServerProcess;
    const ids: string[] = [];
    for (let n = 0; n < CRONS; n++) ids.push((await post(last, "/runs/crons", cron(true))).cron_id);
    const storage = openOn(shared.database());
    const query = async (text: string) =>
      storage.read.all<Record<string, unknown>>(sql.raw(text).compile(storage.read.k));
    try {
      for (let tick = 1; tick <= TICKS; tick++) {
        const before = (await query("select run_id from runs")).length;
        await storage.write((tx) => tx.run(sql`update crons set next_at = now_ms() where enabled = 1`.compile(tx.k)));
        // Wakes all.
        await post(last, "/runs/crons", cron(false));
        await until("new runs are there", async () => (await query("select run_id from runs")).length > before);
        processes[tick - 1]?.child.kill("SIGKILL");
        await until(
          "every cron has moved to its next tick",
          async () => (await query("select cron_id from crons where next_at <= now_ms()")).length === 0,
        );
        const runs = await query("select metadata from runs");
        const fired = runs.map(({ metadata }) => JSON.parse(metadata as string).cron_id);
        expect(fired.toSorted()).toEqual(
          Array.from({ length: tick }, () => ids)
            .flat()
            .toSorted(),
        );
      }
      expect(last.child.exitCode).toBeNull();
    } finally {
      await storage.close();
    }
  });
});
