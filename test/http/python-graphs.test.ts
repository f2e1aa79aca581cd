import { readFileSync } from "node:fs";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { createLog, type Log } from "../../src/platform/lib/log.ts";
import { databases } from "../support/databases.ts";
import { createProject } from "../support/project.ts";
import { parseSse } from "../support/sse.ts";
import { readUntil } from "../support/stream.ts";
import { until } from "../support/until.ts";
import { Scenario, type Wire } from "./scenario.ts";

const MIXED = { config: "test/graphs/scenarios/mixed.json" };
const DONE = { steps: ["in", "a", "b", "c"] };

const runOf = (assistant_id: string, more: object = {}) => ({ assistant_id, input: { steps: ["in"] }, ...more });

const isRunning = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

describe.each(databases)("Python graphs together with JavaScript graphs on %s", (database) => {
  let api: Scenario;
  beforeAll(async () => {
    api = await Scenario.start(database, {}, MIXED);
  });
  afterAll(() => api.stop());

  it("run together with JavaScript graphs of the same project", async () => {
    const ids = Array.from({ length: 12 }, (_, n) => (n % 2 === 0 ? "js" : "python"));
    const answers = await Promise.all(ids.map((id) => api.post("/runs/wait", runOf(id))));
    for (const answer of answers) expect(answer).toEqual(DONE);
    const [js, python] = await Promise.all(
      ["js", "python"].map(async (id) => {
        const events = await api.stream(await api.newThread(), runOf(id, { stream_mode: ["updates", "custom"] }));
        return events.slice(1);
      }),
    );
    expect(python).toEqual(js);
  });

  describe("on a thread", () => {
    it.each([
      ["python", "js", "Python", "JavaScript"],
      ["js", "python", "JavaScript", "Python"],
    ])("that a graph in %s wrote, refuse a run in %s with 409, and change nothing", async (writer, other, ...named) => {
      const [written, language] = named;
      const thread_id = await api.newThread();
      await api.wait(thread_id, runOf(writer));
      const before = [await api.thread(thread_id), await api.history(thread_id)];
      const refused = {
        status: 409,
        body: {
          detail: `The state of this thread was written by a ${written} graph, but "${other}" is a ${language} graph. Use a new thread.`,
        },
      };
      for (const rest of ["", "/wait", "/stream"])
        expect(await api.send("POST", `/threads/${thread_id}/runs${rest}`, runOf(other))).toMatchObject(refused);
      expect([await api.thread(thread_id), await api.history(thread_id)]).toEqual(before);
      expect((await api.wait(thread_id, runOf(writer))).steps).toHaveLength(8);
    });

    it("that was written after their run was accepted fail that run, and refuse to read the state with 409", async () => {
      const thread_id = await api.newThread();
      const js = await api.newRun(thread_id, runOf("js", { after_seconds: 0.5 }));
      expect(await api.wait(thread_id, runOf("python"))).toEqual(DONE);
      expect((await api.join(js)).__error__).toEqual({
        error: "LanguageMismatchError",
        message: expect.stringContaining("Use a new thread."),
      });
      expect((await api.run(js)).status).toBe("error");
      expect(await api.thread(thread_id)).toMatchObject({
        status: "error",
        values: DONE,
        metadata: { graph_id: "js" },
      });
      for (const [method, path, body] of [
        ["GET", "/state", undefined],
        ["POST", "/history", {}],
        ["POST", "/state", { values: { steps: ["x"] }, as_node: "a" }],
      ] as const)
        expect(await api.send(method, `/threads/${thread_id}${path}`, body)).toMatchObject({
          status: 409,
          body: { detail: expect.stringContaining('written by a Python graph, but "js" is a JavaScript graph') },
        });
      expect((await api.wait(thread_id, runOf("python"))).steps).toHaveLength(8);
      expect((await api.state(thread_id)).values.steps).toHaveLength(8);
    });

    it("that was copied or written by hand keep its language", async () => {
      const source = await api.newThread({ metadata: { graph_id: "python" } });
      await api.post(`/threads/${source}/state`, { values: { steps: ["by hand"] }, as_node: "a" });
      const { thread_id } = await api.post(`/threads/${source}/copy`);
      for (const thread of [source, thread_id]) {
        expect((await api.send("POST", `/threads/${thread}/runs`, runOf("js"))).status).toBe(409);
        expect(await api.wait(thread, { assistant_id: "python", input: null })).toEqual({
          steps: ["by hand", "b", "c"],
        });
      }
    });
  });

  it("that cannot be imported are refused with the reason, and the others run", async () => {
    await api.service.threadmill.loaded;
    const answer = await api.send("POST", "/runs/wait", runOf("unimportable"));
    expect(answer).toMatchObject({
      status: 422,
      body: {
        detail: expect.stringMatching(
          /^The graph "unimportable" could not be loaded: ModuleNotFoundError: .*package_that_is_not_installed.* \(python\/unimportable\.py, line 1\); package_that_is_not_installed is not installed in /,
        ),
      },
    });
    for (const id of ["python", "js"]) expect(await api.post("/runs/wait", runOf(id))).toEqual(DONE);
  });
});

describe.each(databases)("the hosts of Python graphs on %s", (database) => {
  let api: Scenario;
  const start = async (env: Record<string, string> = {}, options: Parameters<typeof Scenario.start>[2] = {}) => {
    api = await Scenario.start(database, env, { ...MIXED, ...options });
  };
  afterEach(() => api.stop());

  /** The events of a run from its start to its end. */
  const eventsOf = async ({ thread_id, run_id }: Wire) => {
    const path = `/threads/${thread_id}/runs/${run_id}/stream`;
    return parseSse((await api.send("GET", path, undefined, { "Last-Event-ID": "-1" })).text);
  };

  const attemptsOf = async (run: Wire): Promise<number[]> =>
    (await eventsOf(run)).flatMap(({ event, data }) => (event === "metadata" ? data.attempt : []));

  it("have slots while JavaScript graphs hold all of theirs", async () => {
    await start({ N_JOBS_PER_WORKER: "1", THREADMILL_HOSTS: "1" });
    const door = api.newDoor();
    const js = await api.runningSlow(await api.newThread(), door.path, { assistant_id: "js_slow" });
    const queued = await api.newRun(await api.newThread(), runOf("js"));
    expect(await api.post("/runs/wait", runOf("python"))).toEqual(DONE);
    expect((await api.run(queued)).status).toBe("pending");
    door.open();
    expect((await api.join(js)).steps).toEqual(["in", "begin", "end"]);
    expect(await api.join(queued)).toEqual(DONE);
  });

  it("keep the order of a thread's runs while they load the graphs and JavaScript hosts are free", async () => {
    await start();
    const thread_id = await api.newThread();
    const first = await api.newRun(thread_id, runOf("python"));
    const second = await api.newRun(thread_id, runOf("js"));
    expect((await api.join(second)).__error__.error).toBe("LanguageMismatchError");
    expect(await api.join(first)).toEqual(DONE);
  });

  describe("that are killed", () => {
    it("lose no run: it continues from its last step in another host, and no event is repeated", async () => {
      await start();
      const [door, ledger] = [api.newDoor(), `${api.newDoor().path}-ledger`];
      const lines = () => readFileSync(ledger, "utf8").trim().split("\n");
      const thread_id = await api.newThread();
      const input = { steps: ["in"], ledger, door: door.path };
      const run = await api.newRun(thread_id, {
        assistant_id: "ledger",
        input,
        stream_mode: ["updates", "custom", "values"],
      });
      await readUntil(api.service, run, ({ data }) => data.at === "second");
      const pid = Number(lines().at(-1)?.split(" ")[1]);
      process.kill(pid, "SIGKILL");
      await until("another process executes the second step", async () => lines().length === 3);
      door.open();
      expect((await api.join(run)).steps).toEqual(["in", "first", "second", "third"]);
      expect((await api.run(run)).status).toBe("success");
      expect(lines().map((line) => line.split(" ")[0])).toEqual(["first", "second", "second", "third"]);
      expect(new Set(lines().map((line) => line.split(" ")[1]))).toHaveLength(2);
      const history = await api.history(thread_id);
      expect(history.map(({ next }) => next)).toEqual([[], ["third"], ["second"], ["first"], ["__start__"]]);
      const events = await eventsOf(run);
      const updates = events.filter(({ event }) => event === "updates").map(({ data }) => Object.keys(data)[0]);
      expect(updates).toEqual(["first", "second", "third"]);
      expect(events.map(({ id }) => Number(id))).toEqual(events.map((_, i) => i + 1));
      expect((await api.state(thread_id)).values.steps).toEqual(["in", "first", "second", "third"]);
    });

    it("by a node end its run with an error after the third time, and its neighbours succeed", async () => {
      await start();
      const door = api.newDoor();
      const neighbour = await api.runningSlow(await api.newThread(), door.path, { stream_mode: "values" });
      const js = await api.runningSlow(await api.newThread(), door.path, { assistant_id: "js_slow" });
      const culprit = await api.newRun(await api.newThread(), runOf("dies", { stream_mode: "values" }));
      expect((await api.join(culprit)).__error__).toEqual({
        error: "GraphHostError",
        message: expect.stringContaining("exit code 1"),
      });
      expect((await api.run(culprit)).status).toBe("error");
      expect(await attemptsOf(culprit)).toEqual([1, 2, 3]);
      door.open();
      for (const run of [neighbour, js]) {
        expect((await api.join(run)).steps).toEqual(["in", "begin", "end"]);
        expect((await api.run(run)).status).toBe("success");
      }
      expect(await api.post("/runs/wait", runOf("python"))).toEqual(DONE);
    });
  });

  it("end with an error if their code writes to the connection of their host, and the service continues", async () => {
    await start();
    const run = await api.newRun(await api.newThread(), runOf("intruder"));
    expect((await api.join(run)).__error__).toMatchObject({ error: "GraphHostError" });
    expect(await api.post("/runs/wait", runOf("python"))).toEqual(DONE);
  });

  it("are replaced if a synchronous node continues after the grace of its cancel, and its neighbours continue in another one", async () => {
    await start();
    const door = api.newDoor();
    const neighbour = await api.runningSlow(await api.newThread(), door.path);
    const thread_id = await api.newThread();
    const run = await api.newRun(thread_id, runOf("sleeper", { stream_mode: "custom" }));
    const events = await readUntil(api.service, run, ({ event }) => event === "custom");
    const pid: number = events.find(({ event }) => event === "custom")?.data.asleep_in;
    const before = performance.now();
    expect((await api.cancel(run)).status).toBe(204);
    // The grace is 0.5 s, and the node sleeps for a minute.
    expect(performance.now() - before).toBeLessThan(15_000);
    expect((await api.run(run)).status).toBe("interrupted");
    expect(await api.thread(thread_id)).toMatchObject({ status: "idle", values: { steps: ["in"] } });
    expect(await api.wait(thread_id, runOf("python"))).toEqual({ steps: ["in", ...DONE.steps] });
    await until("the process that still sleeps is ended", async () => !isRunning(pid));
    door.open();
    expect((await api.join(neighbour)).steps).toEqual(["in", "begin", "end"]);
    expect((await api.run(neighbour)).status).toBe("success");
    // The attempt does not count.
    expect(await attemptsOf(neighbour)).not.toContain(2);
  });

  describe("that harm their host", () => {
    const poison = (kind: string) => ({
      assistant_id: "poison",
      input: { steps: ["in"], kind },
      stream_mode: "custom",
    });

    it.each([
      [
        "compute without end in the event loop",
        "spin",
        { THREADMILL_HOST_TIMEOUT: "2500ms" },
        /no response for 2500 ms/,
      ],
      ["exceed the memory limit", "memory", { THREADMILL_HOST_MEMORY: "512MiB" }, /^MemoryError/],
      ["return more than can be stored", "output", {}, /^The checkpoint has 70 MB; at most 64 MB can be stored/],
      ["stream an event that is too large", "event", {}, /^The event has 70 MB; at most 64 MB/],
    ])("%s end with an error, and their neighbours succeed", async (_, kind, env, message) => {
      await start(env, { intervals: { host_silent_ms: 500 } });
      const door = api.newDoor();
      const neighbour = await api.runningSlow(await api.newThread(), door.path);
      const culprit = await api.newRun(await api.newThread(), poison(kind));
      expect((await api.join(culprit)).__error__.message).toMatch(message);
      expect((await api.run(culprit)).status).toBe("error");
      door.open();
      expect((await api.join(neighbour)).steps).toEqual(["in", "begin", "end"]);
      expect(await api.post("/runs/wait", runOf("python"))).toEqual(DONE);
    });

    it("compute without end in a thread are cancelled after the grace, and the process is ended", async () => {
      await start();
      const run = await api.newRun(await api.newThread(), poison("spin_in_thread"));
      await readUntil(api.service, run, ({ event }) => event === "custom");
      expect((await api.cancel(run)).status).toBe(204);
      expect((await api.run(run)).status).toBe("interrupted");
      expect(await api.post("/runs/wait", runOf("python"))).toEqual(DONE);
    });
  });

  it("warn once if their interpreter is older than python_version, and execute runs", async () => {
    const project = createProject({
      "langgraph.json": JSON.stringify({ python_version: "3.99", graphs: { python: "./chain.py:chain" } }),
      "chain.py": readFileSync("test/graphs/scenarios/python/chain.py", "utf8"),
    });
    const warnings: string[] = [];
    const warn = ({ warning }: { warning?: string }) => warning && warnings.push(warning);
    const log = Object.assign(createLog("silent"), { warn }) as unknown as Log;
    await start({ THREADMILL_PYTHON_HOSTS: "2" }, { config: project.config, log });
    expect(await api.post("/runs/wait", runOf("python"))).toEqual(DONE);
    expect(warnings).toEqual([
      expect.stringMatching(
        /^THREADMILL_PYTHON is Python 3\.\d+\.\d+, which is older than python_version \(3\.99\) in langgraph\.json\. /,
      ),
    ]);
    project.drop();
  });

  it("need an interpreter: without one, runs are refused with the reason, and JavaScript graphs run", async () => {
    await start({ THREADMILL_PYTHON: "/nonexistent" });
    await api.service.threadmill.loaded;
    const thread_id = await api.newThread({ metadata: { graph_id: "python" } });
    const reason = "The Python interpreter /nonexistent (--python or THREADMILL_PYTHON) cannot be executed";
    for (const [method, path, body] of [
      ["POST", `/threads/${thread_id}/runs`, runOf("python")],
      ["POST", "/runs/wait", runOf("slow")],
      ["GET", "/assistants/python/graph", undefined],
    ] as const)
      expect(await api.send(method, path, body)).toMatchObject({
        status: 422,
        body: { detail: expect.stringContaining(reason) },
      });
    expect(await api.post("/runs/wait", runOf("js"))).toEqual(DONE);
  });
});
