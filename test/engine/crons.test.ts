import { sql } from "kysely";
import { describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import type { ServerProcess } from "../support/process.ts";
import { openOn } from "../support/storage.ts";
import { until } from "../support/until.ts";
import { sharing } from "./sharing.ts";

const CRONS = 60;

describe.each(databases)("crons of processes that share a database (%s)", (name) => {
  const shared = sharing(name);

  const post = async ({ url }: ServerProcess, path: string, body: object) => {
    const headers = { "content-type": "application/json" };
    const answer = await fetch(`${url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(`${path} was answered ${answer.status}: ${await answer.text()}`);
    return (await answer.json()) as { cron_id: string };
  };
  const cron = (enabled: boolean) => ({
    assistant_id: "steps",
    schedule: "0 0 1 1 *",
    input: {},
    enabled,
    on_run_completed: "keep",
  });

  it("create one run for each tick, even when one of them is killed meanwhile", async () => {
    const [first, second] = await Promise.all([1, 2].map(() => shared.start("test/graphs/shared/before.json")));
    const ids: string[] = [];
    for (let n = 0; n < CRONS; n++) ids.push((await post(first as ServerProcess, "/runs/crons", cron(true))).cron_id);
    const storage = openOn(shared.database());
    const query = async (text: string) =>
      storage.read.all<Record<string, unknown>>(sql.raw(text).compile(storage.read.k));
    try {
      await storage.write((tx) => tx.run(sql`update crons set next_at = now_ms()`.compile(tx.k)));
      // Wakes both.
      await post(first as ServerProcess, "/runs/crons", cron(false));
      await until("the first runs are there", async () => (await query("select run_id from runs")).length > 0);
      (first as ServerProcess).child.kill("SIGKILL");
      await until(
        "every cron has moved to its next tick",
        async () => (await query("select cron_id from crons where next_at <= now_ms()")).length === 0,
      );
      const runs = await query("select metadata from runs");
      const fired = runs.map(({ metadata }) => JSON.parse(metadata as string).cron_id);
      expect(fired.toSorted()).toEqual(ids.toSorted());
      expect((second as ServerProcess).child.exitCode).toBeNull();
    } finally {
      await storage.close();
    }
  });
});
