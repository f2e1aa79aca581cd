import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import { until } from "../support/until.ts";
import { Scenario, type Wire } from "./scenario.ts";

/** The grace of these services, in ms; the product's is 2,000. */
const GRACE_MS = 150;

describe.each(databases)("a client that hangs up on %s", (database) => {
  let api: Scenario;
  let url: string;
  beforeAll(async () => {
    api = await Scenario.start(database, { THREADMILL_DISCONNECT_GRACE: `${GRACE_MS}ms` });
    url = await api.service.listen();
  });
  afterAll(() => api.stop());

  const SLOW = { assistant_id: "slow", input: { steps: ["in"], door: null } };

  /** A request over a socket that can be broken. */
  function open(method: string, path: string, body?: object, headers: Record<string, string> = {}) {
    const abort = new AbortController();
    const answered = fetch(`${url}${path}`, {
      method,
      body: body && JSON.stringify(body),
      headers: { "content-type": "application/json", ...headers },
      signal: abort.signal,
    });
    answered.catch(() => undefined);
    return { answered, hangUp: () => abort.abort() };
  }

  /** The run of a thread once it waits in its node. */
  const begun = (thread_id: string): Promise<Wire> =>
    until("it waits", async () => {
      const [run] = await api.get(`/threads/${thread_id}/runs?status=running`);
      return run && (await api.state(thread_id)).next?.includes("wait") ? run : undefined;
    });
  const interrupted = (run: Wire) =>
    until("it is cancelled", async () => (await api.run(run)).status === "interrupted");

  /** Nothing tells that something does not happen; a second run with a grace of its own does. */
  async function graceIsOver(): Promise<void> {
    const thread_id = await api.newThread();
    const other = open("POST", `/threads/${thread_id}/runs/wait`, { ...SLOW, on_disconnect: "cancel" });
    const run = await begun(thread_id);
    other.hangUp();
    await interrupted(run);
  }

  describe.each(["stream", "wait"])("on POST .../runs/%s", (kind) => {
    it.each([
      ["on_disconnect in the body", "", { on_disconnect: "cancel" }],
      ["on_disconnect in the query", "?on_disconnect=cancel", {}],
      ["cancel_on_disconnect in the query", "?cancel_on_disconnect=1", {}],
    ])("cancels the run with %s, and keeps what it has done", async (_, query, more) => {
      const thread_id = await api.newThread();
      const client = open("POST", `/threads/${thread_id}/runs/${kind}${query}`, { ...SLOW, ...more });
      const run = await begun(thread_id);
      client.hangUp();
      await interrupted(run);
      expect(await api.thread(thread_id)).toMatchObject({ status: "idle", values: { steps: ["in", "begin"] } });
    });

    it.each([
      ["by default", "", {}],
      ["when the body says continue, whatever the query says", "?on_disconnect=cancel", { on_disconnect: "continue" }],
    ])("lets the run continue %s", async (_, query, more) => {
      const thread_id = await api.newThread();
      const client = open("POST", `/threads/${thread_id}/runs/${kind}${query}`, { ...SLOW, ...more });
      const run = await begun(thread_id);
      client.hangUp();
      await graceIsOver();
      expect((await api.run(run)).status).toBe("running");
      await api.cancel(run);
    });

    it("cancels a stateless run", async () => {
      const before: Wire[] = await api.post("/threads/search", { limit: 1000 });
      const body = { ...SLOW, on_disconnect: "cancel", on_completion: "keep" };
      const client = open("POST", `/runs/${kind}`, body);
      const thread = await until("it waits", async () => {
        const busy: Wire[] = await api.post("/threads/search", { limit: 1000, status: "busy" });
        const found = busy.filter(({ thread_id }) => !before.some((old) => old.thread_id === thread_id));
        return found[0];
      });
      const run = await begun(thread.thread_id);
      client.hangUp();
      await interrupted(run);
    });
  });

  it.each(["stream", "join"])("on GET .../%s with cancel_on_disconnect cancels the run", async (kind) => {
    for (const value of ["1", "true", "cancel"]) {
      const run = await api.runningSlow(await api.newThread());
      const path = `/threads/${run.thread_id}/runs/${run.run_id}/${kind}?cancel_on_disconnect=${value}`;
      const client = open("GET", path, undefined, { "Last-Event-ID": "-1" });
      // A join that has to wait sends its head after a second.
      expect((await client.answered).status).toBe(200);
      client.hangUp();
      await interrupted(run);
    }
  });

  it("may reconnect at the returned Location within the grace period, and disconnect for good later", async () => {
    const thread_id = await api.newThread();
    const client = open("POST", `/threads/${thread_id}/runs/stream`, { ...SLOW, on_disconnect: "cancel" });
    const location = (await client.answered).headers.get("location") as string;
    const run = await begun(thread_id);
    client.hangUp();
    const again = open("GET", location, undefined, { "Last-Event-ID": "1" });
    const reader = ((await again.answered).body as ReadableStream<Uint8Array>).getReader();
    await reader.read();
    await graceIsOver();
    expect((await api.run(run)).status).toBe("running");
    again.hangUp();
    await interrupted(run);
  });

  it("is not replaced by others who read the run all the time", async () => {
    const thread_id = await api.newThread();
    const client = open("POST", `/threads/${thread_id}/runs/stream`, { ...SLOW, on_disconnect: "cancel" });
    const run = await begun(thread_id);
    const other = open("GET", `/threads/${thread_id}/runs/${run.run_id}/stream`, undefined, { "Last-Event-ID": "-1" });
    await (await other.answered).body?.getReader().read();
    client.hangUp();
    await interrupted(run);
  });
});
