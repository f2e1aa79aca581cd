import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import { Scenario, UNKNOWN_ID, type Wire } from "./scenario.ts";

describe.each(databases)("runs on %s", (database) => {
  let api: Scenario;
  beforeAll(async () => {
    api = await Scenario.start(database);
  });
  afterAll(() => api.stop());

  const CHAIN = { assistant_id: "chain", input: { steps: ["in"] } };
  const DONE = { steps: ["in", "a", "b", "c"] };

  it("a new run waits in its thread's queue, and is read as it was returned", async () => {
    const thread_id = await api.newThread();
    const run = await api.newRun(thread_id, {
      ...CHAIN,
      metadata: { a: 1 },
      stream_mode: "updates",
      after_seconds: 3600,
      interrupt_before: ["b"],
    });
    const { assistant_id } = await api.get("/assistants/chain");
    expect(run).toMatchObject({
      run_id: expect.any(String),
      thread_id,
      assistant_id,
      status: "pending",
      metadata: { a: 1 },
      multitask_strategy: "enqueue",
    });
    expect(run.kwargs).toMatchObject({
      input: { steps: ["in"] },
      command: null,
      stream_mode: ["updates"],
      interrupt_before: ["b"],
      interrupt_after: null,
      webhook: null,
      temporary: false,
      subgraphs: false,
      resumable: false,
    });
    expect(await api.run(run)).toEqual(run);
    expect(await api.thread(thread_id)).toMatchObject({
      status: "busy",
      metadata: { graph_id: "chain", assistant_id },
    });
  });

  it("are listed newest first, by page, by status and with the selected fields", async () => {
    const thread_id = await api.newThread();
    const made: Wire[] = [];
    for (let i = 0; i < 3; i++) made.push(await api.newRun(thread_id, CHAIN));
    await api.join(made[2]);
    made.push(await api.newRun(thread_id, { ...CHAIN, after_seconds: 3600 }));
    const [first, second, third, last] = made.map(({ run_id }) => run_id);
    const list = async (query = ""): Promise<string[]> =>
      (await api.get(`/threads/${thread_id}/runs${query}`)).map(({ run_id }: Wire) => run_id);
    expect(await list()).toEqual([last, third, second, first]);
    expect(await list("?limit=2&offset=1")).toEqual([third, second]);
    expect(await list("?status=success")).toEqual([third, second, first]);
    expect(await list("?status=pending&limit=1")).toEqual([last]);
    expect(await list("?status=error")).toEqual([]);
    expect(await api.get(`/threads/${thread_id}/runs?select=run_id&select=status&limit=1`)).toEqual([
      { run_id: last, status: "pending" },
    ]);
    expect(await api.get(`/threads/${await api.newThread()}/runs`)).toEqual([]);
  });

  it.each<["GET" | "POST" | "DELETE", string]>([
    ["GET", ""],
    ["DELETE", ""],
    ["GET", "/join"],
    ["GET", "/stream"],
    ["POST", "/cancel"],
  ])(
    "%s /threads/{id}/runs/{run}%s is 404 for an unknown run, and for the run of another thread",
    async (method, rest) => {
      const thread_id = await api.newThread();
      const { run_id } = await api.newRun(await api.newThread(), CHAIN);
      for (const path of [
        `/threads/${thread_id}/runs/${UNKNOWN_ID}`,
        `/threads/${thread_id}/runs/${run_id}`,
        `/threads/${UNKNOWN_ID}/runs/${run_id}`,
      ]) {
        expect(await api.send(method, path + rest)).toMatchObject({
          status: 404,
          body: { detail: expect.stringMatching(/not found/i) },
        });
      }
    },
  );

  it.each([
    ["GET", "/threads/{nobody}/runs", undefined],
    ["POST", "/threads/{nobody}/runs", CHAIN],
    ["POST", "/threads/{nobody}/runs/wait", CHAIN],
    ["POST", "/threads/{nobody}/runs/stream", CHAIN],
    ["POST", "/threads/{thread}/runs", { assistant_id: "nobody" }],
    ["POST", "/threads/{thread}/runs/wait", { assistant_id: UNKNOWN_ID }],
    ["POST", "/threads/{thread}/runs/stream", { assistant_id: UNKNOWN_ID }],
    ["POST", "/runs", { assistant_id: UNKNOWN_ID }],
    ["POST", "/runs/wait", { assistant_id: UNKNOWN_ID }],
    ["POST", "/runs/stream", { assistant_id: UNKNOWN_ID }],
    ["POST", "/runs/batch", [{ assistant_id: "chain" }, { assistant_id: UNKNOWN_ID }]],
    ["GET", "/runs/{nobody}/join", undefined],
    ["GET", "/runs/{nobody}/stream", undefined],
  ] as const)("%s %s of an unknown ID is 404 as JSON", async (method, path, body) => {
    const answer = await api.send(
      method,
      path.replace("{nobody}", UNKNOWN_ID).replace("{thread}", await api.newThread()),
      body,
    );
    expect(answer).toMatchObject({
      status: 404,
      body: { detail: expect.stringMatching(/No assistant found for "|not found/) },
    });
  });

  describe("deleting one", () => {
    it("deletes its checkpoints, and the thread is as the run before left it", async () => {
      const thread_id = await api.newThread();
      await api.wait(thread_id, CHAIN);
      await api.wait(thread_id, CHAIN);
      const [{ run_id }] = await api.get(`/threads/${thread_id}/runs`);
      expect(await api.send("DELETE", `/threads/${thread_id}/runs/${run_id}`)).toMatchObject({ status: 204, text: "" });
      expect((await api.send("GET", `/threads/${thread_id}/runs/${run_id}`)).status).toBe(404);
      expect(await api.history(thread_id)).toHaveLength(5);
      expect((await api.state(thread_id)).values).toEqual(DONE);
      expect((await api.thread(thread_id)).values).toEqual(DONE);
    });

    it("leaves later runs everything that they built on", async () => {
      const thread_id = await api.newThread();
      await api.wait(thread_id, { assistant_id: "fails", input: { kind: "none", value: 42, steps: ["in"] } });
      await api.wait(thread_id, { assistant_id: "fails", input: { steps: ["again"] } });
      const [, { run_id }] = await api.get(`/threads/${thread_id}/runs`);
      const before = (await api.state(thread_id)).values;
      expect(before).toMatchObject({ kind: "none", value: 42 });
      await api.send("DELETE", `/threads/${thread_id}/runs/${run_id}`);
      expect((await api.state(thread_id)).values).toEqual(before);
    });

    it("returns to the interrupt that it had answered", async () => {
      const thread_id = await api.newThread();
      await api.wait(thread_id, { assistant_id: "gate", input: {} });
      const before = await api.thread(thread_id);
      await api.wait(thread_id, { assistant_id: "gate", command: { resume: "Ada" } });
      const [{ run_id }] = await api.get(`/threads/${thread_id}/runs`);
      await api.call("DELETE", `/threads/${thread_id}/runs/${run_id}`);
      const { status, values, interrupts } = await api.thread(thread_id);
      expect({ status, values, interrupts }).toEqual({
        status: "interrupted",
        values: before.values,
        interrupts: before.interrupts,
      });
    });

    it("leaves the thread as its state is, even when several are deleted at once", async () => {
      const thread_id = await api.newThread();
      for (let n = 0; n < 6; n++) await api.wait(thread_id, CHAIN);
      const runs = await api.get(`/threads/${thread_id}/runs`);
      const paths = runs.slice(0, 3).map(({ run_id }: { run_id: string }) => `/threads/${thread_id}/runs/${run_id}`);
      const answers = await Promise.all(paths.map((path: string) => api.send("DELETE", path)));
      const deleted = answers.filter(({ status }) => status === 204).length;
      expect(deleted).toBeGreaterThan(0);
      for (const { status } of answers) expect([204, 409]).toContain(status);
      expect(await api.get(`/threads/${thread_id}/runs`)).toHaveLength(6 - deleted);
      expect((await api.thread(thread_id)).values).toEqual((await api.state(thread_id)).values);
    });

    it("is refused while it is pending or running", async () => {
      const thread_id = await api.newThread();
      const running = await api.runningSlow(thread_id);
      const pending = await api.newRun(thread_id, CHAIN);
      for (const [run, status] of [
        [running, "running"],
        [pending, "pending"],
      ] as const) {
        const answer = await api.send("DELETE", `/threads/${thread_id}/runs/${run.run_id}`);
        expect(answer).toMatchObject({ status: 409, body: { detail: expect.stringContaining(status) } });
      }
    });
  });

  describe("waiting for one", () => {
    it("returns the values that it ended with", async () => {
      const thread_id = await api.newThread();
      expect(await api.wait(thread_id, CHAIN)).toEqual(DONE);
      expect(await api.thread(thread_id)).toMatchObject({ status: "idle", values: DONE });
    });

    it("by join answers each run's own end, also later, and waits for one that runs", async () => {
      const thread_id = await api.newThread();
      const first = await api.newRun(thread_id, CHAIN);
      expect(await api.join(first)).toEqual(DONE);
      const door = api.newDoor();
      const slow = await api.runningSlow(thread_id, door.path, { input: { steps: ["slow"], door: door.path } });
      const joins = [api.join(slow), api.join(slow), api.get(`/runs/${slow.run_id}/join`)];
      door.open();
      for (const joined of joins) expect((await joined).steps).toEqual([...DONE.steps, "slow", "begin", "end"]);
      expect(await api.join(first)).toEqual(DONE);
      expect((await api.run(slow)).status).toBe("success");
    });
  });

  describe("the headers", () => {
    const STATELESS_RUN = /^\/runs\/[0-9a-f-]{36}$/;
    const THREAD_RUN = /^\/threads\/[0-9a-f-]{36}\/runs\/[0-9a-f-]{36}$/;

    it.each([
      ["/threads/T/runs", "", null],
      ["/threads/T/runs/wait", "", "/join"],
      ["/threads/T/runs/wait", "?on_disconnect=cancel", "/join?on_disconnect=cancel"],
      ["/threads/T/runs/stream", "", "/stream"],
      [
        "/threads/T/runs/stream",
        "?on_disconnect=continue&cancel_on_disconnect=0",
        "/stream?on_disconnect=continue&cancel_on_disconnect=0",
      ],
      ["/runs", "", null],
      ["/runs/wait", "", "/join"],
      ["/runs/stream", "?on_disconnect=continue", "/stream?on_disconnect=continue"],
    ])("of POST %s%s say where the run is, and where to continue", async (path, query, rest) => {
      const { headers } = await api.send("POST", path.replace("T", await api.newThread()) + query, CHAIN);
      const where = headers.get("content-location") ?? "";
      expect(where).toMatch(path.startsWith("/threads") ? THREAD_RUN : STATELESS_RUN);
      expect(headers.get("location")).toBe(rest && where + rest);
      // A client that follows the header finds the run.
      if (rest) expect((await api.send("GET", headers.get("location") as string)).status).toBe(200);
    });

    it("of a stateless run that keeps its thread are those of a stateless run", async () => {
      const { headers } = await api.send("POST", "/runs", { ...CHAIN, on_completion: "keep" });
      expect(headers.get("content-location")).toMatch(STATELESS_RUN);
    });

    it("of join and of a cancel that waits name the join", async () => {
      const run = await api.runningSlow(await api.newThread());
      const path = `/threads/${run.thread_id}/runs/${run.run_id}`;
      expect((await api.cancel(run, "?wait=1")).headers.get("location")).toContain(`${path}/join`);
      expect((await api.send("GET", `${path}/join?cancel_on_disconnect=0`)).headers.get("location")).toBe(
        `${path}/join?cancel_on_disconnect=0`,
      );
    });

    it("of a stream are those of server-sent events", async () => {
      const { headers } = await api.send("POST", `/threads/${await api.newThread()}/runs/stream`, CHAIN);
      expect(headers.get("content-type")).toMatch(/^text\/event-stream/);
      expect(headers.get("cache-control")).toMatch(/no-cache|no-store/);
    });
  });

  describe("with if_not_exists", () => {
    it("create, create the thread that they run on", async () => {
      const thread_id = randomUUID();
      expect(await api.wait(thread_id, { ...CHAIN, if_not_exists: "create", metadata: { owner: "ada" } })).toEqual(
        DONE,
      );
      const { assistant_id } = await api.get("/assistants/chain");
      expect((await api.thread(thread_id)).metadata).toEqual({ owner: "ada", graph_id: "chain", assistant_id });
      expect((await api.wait(thread_id, { ...CHAIN, if_not_exists: "create" })).steps).toHaveLength(8);
    });

    it("reject, which is the default, do not", async () => {
      const thread_id = randomUUID();
      for (const body of [CHAIN, { ...CHAIN, if_not_exists: "reject" }]) {
        const answer = await api.send("POST", `/threads/${thread_id}/runs`, body);
        expect(answer).toMatchObject({ status: 404, body: { detail: `Thread with ID ${thread_id} not found` } });
      }
      expect((await api.send("GET", `/threads/${thread_id}`)).status).toBe(404);
    });
  });

  it("several assistants work on one thread one after another, and the last one reads its state", async () => {
    const thread_id = await api.newThread();
    await api.wait(thread_id, CHAIN);
    const { assistant_id } = await api.post("/assistants", {
      graph_id: "factory",
      config: { configurable: { word: "moin" } },
    });
    expect(await api.wait(thread_id, { assistant_id, input: { steps: [] } })).toEqual({
      steps: [...DONE.steps, "moin"],
    });
    expect((await api.thread(thread_id)).metadata).toMatchObject({ graph_id: "factory", assistant_id });
    await api.wait(thread_id, { assistant_id: "loop", input: { steps: [] } });
    expect((await api.thread(thread_id)).metadata.graph_id).toBe("loop");
    expect((await api.state(thread_id)).values.steps.slice(0, 6)).toEqual([...DONE.steps, "moin", "turn"]);
  });
});
