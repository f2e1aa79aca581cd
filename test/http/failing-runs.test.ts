import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import { expected } from "./language-differences.ts";
import { Scenario } from "./scenario.ts";

describe.each(databases)("runs that fail on %s", (database) => {
  let api: Scenario;
  beforeAll(async () => {
    api = await Scenario.start(database);
  });
  afterAll(() => api.stop());

  const fails = (kind: string) => ({ assistant_id: "fails", input: { kind, steps: ["in"] } });
  const FREE = { kind: "none", steps: [] };

  /** What must hold after any run that failed. */
  const expectFailed = async (thread_id: string, error: { error: unknown; message: unknown }) => {
    const [run] = await api.get(`/threads/${thread_id}/runs`);
    expect(run.status).toBe("error");
    expect(await api.join(run)).toEqual({ __error__: error });
    const thread = await api.thread(thread_id);
    expect(thread).toMatchObject({ status: "error", error });
    const next = await api.wait(thread_id, { assistant_id: "fails", input: FREE });
    expect(next.steps.slice(-2)).toEqual(["first", "second"]);
    expect(await api.thread(thread_id)).toMatchObject({ status: "idle", error: null });
  };

  describe("because the graph throws", () => {
    it.each<[string, { error: unknown; message: unknown }]>([
      ["type_error", { error: "TypeError", message: "steps is not iterable" }],
      ["own_class", { error: "PaymentError", message: "card refused" }],
      ["string", { error: expect.any(String), message: expect.stringContaining("just a string") }],
      ["object", { error: expect.any(String), message: expect.stringContaining("42") }],
      ["circular_object", { error: expect.any(String), message: expect.any(String) }],
      ["null", { error: expect.any(String), message: expect.any(String) }],
      ["undefined", { error: expect.any(String), message: expect.any(String) }],
    ])("%s are answered 200 with class and message, and leave the thread usable", async (kind, error) => {
      const thread_id = await api.newThread();
      const answer = await api.send("POST", `/threads/${thread_id}/runs/wait`, fails(kind));
      expect(answer).toMatchObject({ status: 200, body: { __error__: error } });
      expect((await api.thread(thread_id)).values.steps).toEqual(["in", "first"]);
      await expectFailed(thread_id, error);
    });
  });

  describe("because the graph returns a value that JSON cannot represent", () => {
    it.each(expected.unserializable)("%s end with the class and message of the error", async (kind) => {
      const thread_id = await api.newThread();
      const answer = await api.wait(thread_id, {
        assistant_id: "nonsense",
        input: { kind, steps: ["in"] },
        stream_mode: ["custom"],
      });
      const error = {
        error: expect.stringMatching(/Error$/),
        message: expect.stringMatching(expected.unserializable_message),
      };
      expect(answer).toEqual({ __error__: error });
      await expectFailed(thread_id, error);
    });

    it.each(expected.unserializable)("%s end their stream with an error event", async (kind) => {
      const events = await api.stream(await api.newThread(), {
        assistant_id: "nonsense",
        input: { kind, steps: ["in"] },
        stream_mode: ["values", "custom", "updates"],
      });
      expect(events.at(-1)).toMatchObject({
        event: "error",
        data: {
          error: expect.stringMatching(/Error$/),
          message: expect.stringMatching(expected.unserializable_message),
        },
      });
    });
  });

  it.each(["string", "number"])(
    "because a node returns a %s instead of an update end with an error that says so",
    async (kind) => {
      const thread_id = await api.newThread();
      const answer = await api.wait(thread_id, { assistant_id: "nonsense", input: { kind, steps: ["in"] } });
      expect(answer).toEqual({ __error__: { error: "InvalidUpdateError", message: expected.invalid_update } });
      await expectFailed(thread_id, answer.__error__);
    },
  );

  it.each([
    ["nul", "a\ufffdb"],
    ["surrogate", "a\ufffdb"],
    ["nan", null],
    ["date", expected.date],
  ])("do not include those with unusual but valid JSON values: %s", async (kind, value) => {
    const thread_id = await api.newThread();
    const answer = await api.wait(thread_id, { assistant_id: "nonsense", input: { kind, steps: ["in"] } });
    expect(answer).toMatchObject({ steps: ["in", "first"] });
    expect(answer.value).toEqual(value);
    expect(await api.thread(thread_id)).toMatchObject({ status: "idle" });
    expect((await api.thread(thread_id)).values.value).toEqual(value);
    expect((await api.send("GET", `/threads/${thread_id}/state`)).status).toBe(200);
    expect((await api.send("POST", `/threads/${thread_id}/history`)).status).toBe(200);
  });

  it.each(["function", "symbol"])(
    "or not, leave a thread that can be read and used: a %s in the state",
    async (kind) => {
      const thread_id = await api.newThread();
      await api.wait(thread_id, { assistant_id: "nonsense", input: { kind, steps: ["in"] } });
      expect((await api.state(thread_id)).values.steps).toEqual(["in", "first"]);
      expect((await api.history(thread_id)).length).toBeGreaterThan(0);
      expect((await api.wait(thread_id, { assistant_id: "chain", input: { steps: [] } })).steps).toEqual([
        "in",
        "first",
        "a",
        "b",
        "c",
      ]);
    },
  );

  it("do not stop others that run at the same time", async () => {
    const door = api.newDoor();
    const slow = await api.runningSlow(await api.newThread(), door.path);
    for (const kind of ["type_error", "null", "circular_object"]) await api.wait(await api.newThread(), fails(kind));
    for (const kind of ["bigint", "emit_circular"])
      await api.wait(await api.newThread(), { assistant_id: "nonsense", input: { kind } });
    door.open();
    expect((await api.join(slow)).steps).toEqual(["in", "begin", "end"]);
    expect((await api.run(slow)).status).toBe("success");
  });

  it("because their graph does not load are refused with the reason", async () => {
    await api.service.threadmill.loaded;
    for (const path of [`/threads/${await api.newThread()}/runs`, "/runs", "/runs/wait", "/runs/stream"]) {
      const answer = await api.send("POST", path, { assistant_id: "broken" });
      expect(answer).toMatchObject({
        status: 422,
        body: { detail: expect.stringContaining(expected.broken_graph) },
      });
    }
  });

  it("because the input does not fit the graph get an error that states it", async () => {
    for (const body of [{ input: "text" }, { input: null }, { input: [1] }]) {
      const answer = await api.wait(await api.newThread(), { assistant_id: "chain", ...body });
      expect(answer).toEqual({ __error__: { error: expect.stringMatching(/Error$/), message: expect.any(String) } });
    }
  });
});
