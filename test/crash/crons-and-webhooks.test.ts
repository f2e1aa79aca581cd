import { sql } from "kysely";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createDatabase, databases, type TestDatabase } from "../support/databases.ts";
import { freePort, type ServerProcess, startProcess } from "../support/process.ts";
import { openOn } from "../support/storage.ts";
import { until } from "../support/until.ts";
import { startReceiver, type WebhookReceiver } from "../support/webhook-receiver.ts";

const CRONS = 5;

describe.each(databases)("a kill on %s", (name) => {
  let database: TestDatabase;
  let server: ServerProcess;
  let receiver: WebhookReceiver;
  beforeEach(async () => {
    database = await createDatabase(name);
    receiver = await startReceiver();
  });
  afterEach(async () => {
    server.child.kill("SIGKILL");
    await server.ended;
    await receiver.close();
    await database.drop();
  });

  /** @param fail_after the passage of the failpoint at which the process is killed */
  const start = async (failpoint?: string, fail_after = 1) => {
    server = await startProcess({
      data: database.data_dir,
      databaseUrl: database.url,
      port: await freePort(),
      config: "test/graphs/shared/webhooks.json",
      env: {
        LG_WEBHOOK_PROCESS: "0",
        ...(failpoint && { FAILPOINT: failpoint, FAIL_AFTER: String(fail_after) }),
      },
      ...(failpoint && { preload: "test/crash/failpoints.ts" }),
    });
  };
  const post = async (path: string, body: object) => {
    const headers = { "content-type": "application/json" };
    const answer = await fetch(`${server.url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
    return (await answer.json()) as Record<string, string>;
  };
  const rows = async (text: string): Promise<Record<string, unknown>[]> => {
    const storage = openOn(database);
    const found = await storage.read.all<Record<string, unknown>>(sql.raw(text).compile(storage.read.k));
    await storage.close();
    return found;
  };

  it.each([
    ["before the tick and its run are committed", "tick-is-not-committed"],
    ["after the tick and its run are committed", "tick-is-committed"],
  ])("%s leaves one run for each tick", async (_, failpoint) => {
    await start(failpoint, 3);
    const cron = { assistant_id: "steps", schedule: "0 0 1 1 *", input: {}, on_run_completed: "keep" };
    const ids: string[] = [];
    for (let n = 0; n < CRONS; n++) ids.push((await post("/runs/crons", cron)).cron_id as string);
    const storage = openOn(database);
    await storage.write((tx) => tx.run(sql`update crons set next_at = now_ms()`.compile(tx.k)));
    await storage.close();
    // Wakes the scheduler. The process may die before it answers.
    await post("/runs/crons", { ...cron, enabled: false }).catch(() => undefined);
    await server.ended;

    await start();
    await until("every cron has moved to its next tick", async () => {
      return (await rows("select cron_id from crons where next_at <= now_ms()")).length === 0;
    });
    const runs = await until("all runs have succeeded", async () => {
      const found = await rows("select status, metadata from runs");
      return found.every(({ status }) => status === "success") ? found : undefined;
    });
    const fired = runs.map(({ metadata }) => JSON.parse(metadata as string).cron_id);
    expect(fired.toSorted()).toEqual(ids.toSorted());
  });

  it.each([
    ["after the claim of a webhook", "webhook-is-claimed", { before: 0, total: 1 }],
    ["before the result of a webhook is stored", "webhook-is-sent", { before: 1, total: 2 }],
    ["after the result of a webhook is stored", "webhook-is-stored", { before: 1, total: 1 }],
  ])("%s leaves a webhook that is sent at least once, with the same id", async (_, failpoint, requests) => {
    await start(failpoint);
    const { run_id } = await post("/runs", { assistant_id: "steps", input: {}, webhook: receiver.at("end") });
    await server.ended;
    expect(receiver.of("end")).toHaveLength(requests.before);

    await start();
    const delivered = "select delivery_id from webhook_deliveries where status = 'delivered'";
    await until("the webhook is stored as delivered", async () => (await rows(delivered)).length === 1);
    const received = receiver.of("end");
    expect(received.map(({ headers }) => headers["webhook-id"])).toEqual(Array(requests.total).fill(run_id));
    const bodies = received.map(({ body: { webhook_sent_at: _, ...body } }) => body);
    for (const body of bodies) expect(body).toEqual(bodies[0]);
    expect(bodies[0]).toMatchObject({ run_id, status: "success" });
  });
});
