import { setTimeout as pause } from "node:timers/promises";
import { type RawBuilder, sql } from "kysely";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SEED } from "../support/counts.ts";
import { databases } from "../support/databases.ts";
import { randomOf } from "../support/random.ts";
import { openOn } from "../support/storage.ts";
import { until } from "../support/until.ts";
import {
  type ReceivedWebhook,
  signatureOf,
  startReceiver,
  WEBHOOK_SECRET,
  type WebhookReceiver,
} from "../support/webhook-receiver.ts";
import { Scenario, UNKNOWN_ID, type Wire } from "./scenario.ts";

const ENV = { THREADMILL_WEBHOOK_SECRET: WEBHOOK_SECRET, LG_WEBHOOK_TOKEN: "of the receiver" };

describe.each(databases)("webhooks on %s", (database) => {
  let api: Scenario;
  let receiver: WebhookReceiver;
  let onRequest: (request: ReceivedWebhook) => void | Promise<void> = () => undefined;
  let count = 0;
  beforeAll(async () => {
    receiver = await startReceiver((request) => onRequest(request));
    const config = "test/graphs/scenarios/webhooks.json";
    const env = { ...ENV, RESUMABLE_STREAM_TTL_SECONDS: "0.05" };
    api = await Scenario.start(database, env, {
      config,
      intervals: { webhook_retry_ms: 50, webhook_timeout_ms: 2_000 },
    });
  });
  afterAll(async () => {
    await api.stop();
    await receiver.close();
  });

  /** A new name at the receiver. */
  const newName = () => `receiver-${++count}`;
  const chain = (name: string, body: object = {}) => ({
    assistant_id: "chain",
    input: { steps: ["in"] },
    webhook: receiver.at(name),
    ...body,
  });
  const deliveries = (query: string): Promise<Wire[]> => api.get(`/webhooks/deliveries?${query}`);
  const delivery = async ({ run_id }: Wire): Promise<Wire> => (await deliveries(`run_id=${run_id}`))[0];
  const has = (run: Wire, status: string) =>
    until(`the webhook is ${status}`, async () => {
      const found = await delivery(run);
      return found?.status === status ? found : undefined;
    });
  const change = async (assignment: RawBuilder<unknown>, { run_id }: Wire) => {
    const storage = openOn(api.service.database);
    const update = sql`update webhook_deliveries set ${assignment} where run_id = ${run_id}`;
    await storage.write((tx) => tx.run(update.compile(tx.k)));
    await storage.close();
  };

  it("send the ended run, its values and the times, with a signature", async () => {
    const name = newName();
    const run = await api.newRun(await api.newThread(), chain(name, { metadata: { team: "a" } }));
    const request = await receiver.nth(name);
    expect(request.body).toEqual({
      ...(await api.run(run)),
      status: "success",
      run_started_at: expect.any(String),
      run_ended_at: expect.any(String),
      webhook_sent_at: expect.any(String),
      values: { steps: ["in", "a", "b", "c"] },
    });
    expect(request.headers).toMatchObject({
      "content-type": "application/json",
      authorization: "Bearer of the receiver",
      "webhook-id": run.run_id,
      "webhook-signature": signatureOf(request),
    });
    expect(Math.abs(Number(request.headers["webhook-timestamp"]) - Date.now() / 1000)).toBeLessThan(60);
    expect(await has(run, "delivered")).toEqual({
      delivery_id: run.run_id,
      run_id: run.run_id,
      url: receiver.at(name),
      status: "delivered",
      // More than one if the machine is slow.
      attempts: expect.any(Number),
      next_attempt_at: null,
      response_status: 204,
      error: null,
      created_at: expect.any(String),
      updated_at: expect.any(String),
    });
  });

  it("send the error of a failed run", async () => {
    const name = newName();
    await api.newRun(await api.newThread(), chain(name, { assistant_id: "fails" }));
    const { body } = await receiver.nth(name);
    expect(body).toMatchObject({ status: "error", error: { error: expect.any(String), message: expect.any(String) } });
  });

  it("are sent for paused runs and for cancelled runs, even for those that never started", async () => {
    const paused = newName();
    await api.newRun(await api.newThread(), chain(paused, { assistant_id: "gate" }));
    expect((await receiver.nth(paused)).body).toMatchObject({
      status: "interrupted",
      values: { steps: ["in", "open"] },
    });
    const thread_id = await api.newThread();
    const [stopped, waiting, undone] = [newName(), newName(), newName()];
    const running = await api.runningSlow(thread_id, null, { webhook: receiver.at(stopped) });
    const pending = await api.newRun(thread_id, chain(waiting));
    await api.cancel(pending);
    expect((await receiver.nth(waiting)).body).toMatchObject({ status: "interrupted", run_started_at: null });
    await api.cancel(running);
    expect((await receiver.nth(stopped)).body).toMatchObject({
      status: "interrupted",
      values: { steps: ["in", "begin"] },
    });
    const rolled_back = await api.runningSlow(await api.newThread(), null, { webhook: receiver.at(undone) });
    await api.cancel(rolled_back, "?wait=1&action=rollback");
    expect(await delivery(rolled_back)).toBeUndefined();
  });

  it("are sent for stateless runs, batches and crons", async () => {
    const names = Array.from({ length: 4 }, newName) as [string, string, string, string];
    await api.post("/runs/wait", chain(names[0]));
    await api.post("/runs/batch", [chain(names[1]), chain(names[2])]);
    const cron = await api.post("/runs/crons", { ...chain(names[3]), schedule: "0 * * * *" });
    const storage = openOn(api.service.database);
    await storage.write((tx) => tx.run(sql`update crons set next_at = now_ms()`.compile(tx.k)));
    await storage.close();
    // Wakes the scheduler.
    await api.post("/runs/crons", { assistant_id: "chain", schedule: "0 * * * *", enabled: false });
    for (const name of names)
      expect((await receiver.nth(name)).body).toMatchObject({ values: { steps: ["in", "a", "b", "c"] } });
    expect((await receiver.nth(names[3])).body.metadata.cron_id).toBe(cron.cron_id);
  });

  it("are sent again with the same id, signed again, until the receiver accepts them", async () => {
    const name = newName();
    receiver.answer(name, 500);
    const run = await api.newRun(await api.newThread(), chain(name));
    const requests = [await receiver.nth(name), await receiver.nth(name, 2)];
    receiver.answer(name, 200);
    expect(await has(run, "delivered")).toMatchObject({ response_status: 200, error: null });
    requests.push(receiver.of(name).at(-1) as (typeof requests)[0]);
    expect(requests.map(({ headers }) => headers["webhook-id"])).toEqual(Array(3).fill(run.run_id));
    for (const request of requests) expect(request.headers["webhook-signature"]).toBe(signatureOf(request));
  });

  it(`reach a slow receiver that refuses half of the requests (seed ${SEED})`, async () => {
    const name = newName();
    const random = randomOf(SEED);
    const accepted = new Set<unknown>();
    const refusals = new Map<unknown, number>();
    const after: unknown[] = [];
    onRequest = async ({ path, headers }) => {
      if (path !== `/${name}`) return;
      const id = headers["webhook-id"];
      if (accepted.has(id)) after.push(id);
      await pause(random.integer(0, 50));
      // Each delay is twice as long, so the tenth attempt would be 30 s later.
      const count = refusals.get(id) ?? 0;
      const isRefused = count < 5 && random.integer(0, 1) === 1;
      if (isRefused) refusals.set(id, count + 1);
      else accepted.add(id);
      receiver.answer(name, isRefused ? 500 : 204);
    };
    const runs: Wire[] = await api.post("/runs/batch", Array(30).fill(chain(name)));
    const ids = runs.map(({ run_id }) => run_id).toSorted();
    await until("all are stored as delivered", async () => {
      const found = await deliveries("status=delivered&limit=1000");
      return ids.every((id) => found.some(({ run_id }) => run_id === id));
    });
    onRequest = () => undefined;
    expect([...accepted].toSorted()).toEqual(ids);
    // None is sent again after it was accepted.
    expect(after).toEqual([]);
    const requests = receiver.of(name);
    expect(requests.length).toBeGreaterThan(ids.length);
    expect(requests.filter((request) => request.headers["webhook-signature"] !== signatureOf(request))).toEqual([]);
  });

  it("fail after a day, and are sent again on request", async () => {
    const name = newName();
    receiver.answer(name, 503);
    const run = await api.newRun(await api.newThread(), chain(name));
    await receiver.nth(name);
    await change(sql`queued_at = queued_at - 86400000`, run);
    expect(await has(run, "failed")).toMatchObject({
      response_status: 503,
      error: "The receiver responded with status 503.",
      next_attempt_at: null,
    });
    expect((await deliveries("status=failed&limit=1000")).map(({ run_id }) => run_id)).toContain(run.run_id);
    receiver.answer(name, 204);
    expect(await api.post(`/webhooks/deliveries/${run.run_id}/redeliver`)).toMatchObject({
      status: "pending",
      attempts: 0,
    });
    await has(run, "delivered");
    expect(receiver.of(name).at(-1)?.body).toMatchObject({ run_id: run.run_id, values: { steps: expect.any(Array) } });
    const again = await api.send("POST", `/webhooks/deliveries/${run.run_id}/redeliver`);
    expect([again.status, again.body.detail]).toEqual([409, expect.stringContaining("was already delivered")]);
    expect((await api.send("POST", `/webhooks/deliveries/${UNKNOWN_ID}/redeliver`)).status).toBe(404);
  });

  it("fail at once if the receiver refuses them for good, and do not follow redirects", async () => {
    const [removed, moved] = [newName(), newName()];
    receiver.answer(removed, 410);
    receiver.answer(moved, 302);
    const run = await api.newRun(await api.newThread(), chain(removed));
    expect(await has(run, "failed")).toMatchObject({ response_status: 410 });
    const redirected = await api.newRun(await api.newThread(), chain(moved));
    await receiver.nth(moved);
    await until("the status is stored", async () => (await delivery(redirected))?.response_status === 302);
    expect(receiver.of("moved")).toEqual([]);
    await api.send("DELETE", `/threads/${redirected.thread_id}`);
  });

  it("delay no run while their receiver does not answer, and time out", async () => {
    const name = newName();
    receiver.answer(name, null);
    const thread_id = await api.newThread();
    await api.post("/runs/batch", Array(7).fill(chain(name)));
    await receiver.nth(name, 7);
    await api.post("/runs/batch", Array(10).fill(chain(name)));
    expect((await api.wait(thread_id, chain(name))).steps).toEqual(["in", "a", "b", "c"]);
    await until("as many requests as allowed are open", async () => receiver.maxOpen() === 8);
    const other = newName();
    await api.newRun(thread_id, chain(other));
    await receiver.nth(name);
    await until("a request has timed out", async () =>
      (await deliveries("status=pending&limit=100")).some(({ error }) => error === "No response within 2000 ms."),
    );
    // The receiver has the same origin, so it has its turn when requests have timed out.
    receiver.answer(name, 204);
    await receiver.nth(other);
    expect(receiver.maxOpen()).toBe(8);
  });

  it("are deleted with their run or thread, and some time after their end", async () => {
    const name = newName();
    const runs: Wire[] = [];
    for (let n = 0; n < 3; n++) runs.push(await api.newRun(await api.newThread(), chain(name)));
    for (const run of runs) await has(run, "delivered");
    const [first, second, third] = runs;
    await api.call("DELETE", `/threads/${first.thread_id}/runs/${first.run_id}`);
    await api.call("DELETE", `/threads/${second.thread_id}`);
    expect([await delivery(first), await delivery(second)]).toEqual([undefined, undefined]);
    await change(sql`updated_at = updated_at - ${31 * 86_400_000}`, third);
    await until("the old one is deleted", async () => (await delivery(third)) === undefined);
  });
});
