import { sql } from "kysely";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import type { ServerProcess } from "../support/process.ts";
import { openOn } from "../support/storage.ts";
import { until } from "../support/until.ts";
import { type ReceivedWebhook, startReceiver, type WebhookReceiver } from "../support/webhook-receiver.ts";
import { sharing } from "./sharing.ts";

const RUNS = 40;
/** The request at which its process is killed. */
const KILLED_AT = 10;

describe.each(databases)("webhooks of processes that share a database (%s)", (name) => {
  const shared = sharing(name);
  let processes: ServerProcess[];
  let receiver: WebhookReceiver;
  let onRequest: (request: ReceivedWebhook) => void;
  beforeEach(async () => {
    onRequest = () => undefined;
    receiver = await startReceiver((request) => onRequest(request));
    processes = await Promise.all(
      ["0", "1"].map((n) => shared.start("test/graphs/shared/webhooks.json", { LG_WEBHOOK_PROCESS: n })),
    );
  });
  afterEach(() => receiver.close());

  const kill = (n: number) => (processes[n] as ServerProcess).child.kill("SIGKILL");
  const survivor = () => processes.find(({ child }) => !child.killed) as ServerProcess;
  const call = async ({ url }: ServerProcess, path: string, body?: object) => {
    const init = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
    const answer = await fetch(`${url}${path}`, body && init);
    if (!answer.ok) throw new Error(`${path} was answered ${answer.status}: ${await answer.text()}`);
    return (await answer.json()) as { run_id: string; status: string }[];
  };
  const startRuns = async () => {
    const run = { assistant_id: "steps", input: {}, webhook: receiver.at("runs") };
    return (await call(processes[0] as ServerProcess, "/runs/batch", Array(RUNS).fill(run))).map(
      ({ run_id }) => run_id,
    );
  };
  const count = async (query: string) => {
    // A request to the killed process fails.
    const found = await call(survivor(), `/webhooks/deliveries?limit=1000${query}`).catch(() => []);
    return found.length;
  };
  /** Waits until each webhook is stored as delivered, and returns the requests by the id of their webhook. */
  const delivered = async () => {
    await until("all are delivered", async () => (await count("&status=delivered")) === RUNS, 60_000);
    return Map.groupBy(receiver.of("runs"), ({ headers }) => headers["webhook-id"] as string);
  };

  it("are stored with the end of their run, and sent once each by one of the processes", async () => {
    const ids = await startRuns();
    const storage = openOn(shared.database());
    const ended = sql<{ run_id: string; stored: string | null }>`select runs.run_id, webhook_deliveries.run_id as stored
      from runs left join webhook_deliveries using (run_id) where ended_at is not null`.compile(storage.read.k);
    await until("all runs have ended", async () => {
      const found = await storage.read.all(ended);
      expect(found.filter(({ stored }) => stored === null)).toEqual([]);
      return found.length === RUNS;
    });
    await storage.close();
    const requests = await delivered();
    expect([...requests.keys()].toSorted()).toEqual(ids.toSorted());
    expect(receiver.of("runs")).toHaveLength(RUNS);
  });

  it("are sent at least once, with the same id, if a process is killed during a request", async () => {
    let killed: ReceivedWebhook | undefined;
    onRequest = (request) => {
      if (receiver.of("runs").length !== KILLED_AT) return;
      // The process dies with a request that was received and is not stored, and with runs that have not ended.
      killed = request;
      kill(Number(request.headers["x-process"]));
    };
    const ids = await startRuns();
    const requests = await delivered();
    expect([...requests.keys()].toSorted()).toEqual(ids.toSorted());
    const repeated = requests.get(killed?.headers["webhook-id"] as string) ?? [];
    expect(repeated.map(({ headers }) => headers["x-process"]).toSorted()).toEqual(["0", "1"]);
    const [first, second] = repeated.map(({ body: { webhook_sent_at: _, ...body } }) => body);
    expect(second).toEqual(first);
  });

  it("are sent if the process is killed that has ended the runs", async () => {
    const ids = await startRuns();
    await until("a run has ended", async () => (await count("")) > 0);
    kill(0);
    const requests = await delivered();
    expect([...requests.keys()].toSorted()).toEqual(ids.toSorted());
  });
});
