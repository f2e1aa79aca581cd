import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SCOPES } from "../../src/platform/contract/caller.ts";
import { databases } from "../support/databases.ts";
import { language } from "../support/language.ts";
import { Scenario, UNKNOWN_ID, type Wire } from "./scenario.ts";

/** Keys that the service alone may say. */
const RESERVED = {
  thread_id: UNKNOWN_ID,
  run_id: UNKNOWN_ID,
  graph_id: "loop",
  assistant_id: UNKNOWN_ID,
  user_id: "eve",
  __pregel_read: 1,
  __mine: 1,
  langgraph_auth_user: { identity: "eve" },
};

describe.each(databases)("the config of a run on %s", (database) => {
  let api: Scenario;
  beforeAll(async () => {
    api = await Scenario.start(database);
  });
  afterAll(() => api.stop());

  /** What a node of this run saw, and the run's record. */
  const inspect = async (body: Wire, thread: object = {}): Promise<{ seen: Wire; run: Wire; thread_id: string }> => {
    const thread_id = await api.newThread(thread);
    const { seen } = await api.wait(thread_id, { assistant_id: "inspect", input: {}, ...body });
    const [run] = await api.get(`/threads/${thread_id}/runs`);
    return { seen, run, thread_id };
  };
  const assistant = async (body: object): Promise<string> =>
    (await api.post("/assistants", { graph_id: "inspect", ...body })).assistant_id;

  it("contains the run's id in configurable", async () => {
    const { seen, run, thread_id } = await inspect({});
    const { assistant_id } = await api.get("/assistants/inspect");
    expect(seen.configurable).toMatchObject({
      run_id: run.run_id,
      thread_id,
      graph_id: "inspect",
      assistant_id,
      user_id: "local",
    });
  });

  it("contains the user in configurable, but in no checkpoint's metadata", async () => {
    const { seen, thread_id } = await inspect({});
    const permissions = [...SCOPES];
    expect(seen.configurable).toMatchObject({
      langgraph_auth_user: { identity: "local", is_authenticated: true, display_name: "local", permissions },
      langgraph_auth_user_id: "local",
      langgraph_auth_permissions: permissions,
    });
    const described = (await api.history(thread_id)).map(({ metadata }) => metadata);
    expect(JSON.stringify(described)).not.toContain("langgraph_auth");
  });

  it("contains the assistant's configurable, unless the run overrides it", async () => {
    const assistant_id = await assistant({
      config: { configurable: { a: 1, b: { x: 1 }, c: [1] }, tags: ["assistant"], recursion_limit: 7 },
    });
    const { seen } = await inspect({ assistant_id, config: { configurable: { b: { y: 2 }, c: [2], d: null } } });
    expect(seen.configurable).toMatchObject({ a: 1, b: { y: 2 }, c: [2], d: null });
    expect(seen.configurable.b).toEqual({ y: 2 });
    expect(seen).toMatchObject({ tags: expect.arrayContaining(["assistant"]), recursionLimit: 7 });
  });

  it("contains the run's tags and recursion limit, if there are any", async () => {
    const assistant_id = await assistant({ config: { tags: ["assistant"], recursion_limit: 7 } });
    const { seen } = await inspect({ assistant_id, config: { tags: ["run"], recursion_limit: 9 } });
    expect(seen.recursionLimit).toBe(9);
    expect(seen.tags).toContain("run");
    expect(seen.tags).not.toContain("assistant");
  });

  // LangGraph for Python passes its default to no node.
  it.skipIf(language === "python")("contains LangGraph's own recursion limit by default", async () => {
    expect((await inspect({})).seen.recursionLimit).toBeGreaterThanOrEqual(25);
  });

  it("contains the assistant's context, overridden by the run's", async () => {
    const assistant_id = await assistant({ context: { a: 1, b: { x: 1 } } });
    expect((await inspect({ assistant_id })).seen.context).toEqual({ a: 1, b: { x: 1 } });
    expect((await inspect({ assistant_id, context: { b: { y: 2 }, c: 3 } })).seen.context).toEqual({
      a: 1,
      b: { y: 2 },
      c: 3,
    });
  });

  it("contains the metadata of assistant, thread and run, in ascending precedence, which is stored with the run and its checkpoints", async () => {
    const assistant_id = await assistant({ metadata: { from: "assistant", a: 1 } });
    const { seen, run, thread_id } = await inspect(
      { assistant_id, metadata: { from: "run", r: 3 } },
      { metadata: { from: "thread", t: 2 } },
    );
    const merged = { from: "run", a: 1, t: 2, r: 3 };
    expect(seen.metadata).toMatchObject(merged);
    expect(run.metadata).toMatchObject(merged);
    expect(run.kwargs.config.metadata).toMatchObject(merged);
    for (const { metadata } of await api.history(thread_id)) expect(metadata).toMatchObject(merged);
    expect((await api.thread(thread_id)).metadata).toMatchObject({ from: "thread", t: 2 });
  });

  it("is in the metadata of checkpoints: configurable, and the IDs of run, thread and assistant", async () => {
    const { run, thread_id } = await inspect({ config: { configurable: { colour: "blue" } } });
    const { run_id, assistant_id } = run;
    for (const { metadata } of await api.history(thread_id)) {
      expect(metadata).toMatchObject({ colour: "blue", run_id, assistant_id, thread_id, graph_id: "inspect" });
      expect(Object.keys(metadata).filter((key) => key.startsWith("__") || key.startsWith("langgraph_auth"))).toEqual(
        [],
      );
    }
  });

  it.each([
    ["config.configurable", { config: { configurable: { ...RESERVED, mine: 1 } } }],
    ["metadata", { metadata: { ...RESERVED, mine: 1 } }],
  ])("never has the values that a client sends under reserved keys in %s", async (where, body) => {
    const { seen, run, thread_id } = await inspect(body);
    const own = { run_id: run.run_id, thread_id, graph_id: "inspect", user_id: "local" };
    expect(seen.configurable).toMatchObject(own);
    expect(seen.configurable.langgraph_auth_user.identity).toBe("local");
    expect(where === "metadata" ? run.metadata.mine : run.kwargs.config.configurable.mine).toBe(1);
    expect(await api.thread(thread_id)).toMatchObject({
      metadata: { graph_id: "inspect", assistant_id: run.assistant_id },
    });
    const checkpoints = await api.history(thread_id);
    for (const { metadata } of checkpoints)
      expect(metadata).toMatchObject({ run_id: run.run_id, thread_id, graph_id: "inspect" });
    for (const kept of [run, checkpoints, await api.thread(thread_id)])
      expect(JSON.stringify(kept)).not.toMatch(new RegExp(`eve|"__mine"|"__pregel_read"|${UNKNOWN_ID}`));
  });

  it("never has the values that a client sends under reserved keys when the run creates its thread", async () => {
    const thread_id = randomUUID();
    await api.wait(thread_id, {
      assistant_id: "inspect",
      input: {},
      if_not_exists: "create",
      metadata: { ...RESERVED, mine: 1 },
    });
    const { metadata } = await api.thread(thread_id);
    expect(metadata).toMatchObject({ mine: 1, graph_id: "inspect" });
    expect(Object.keys(metadata).filter((key) => key.startsWith("__") || key.startsWith("langgraph_auth"))).toEqual([]);
  });

  it("contains no header of the request", async () => {
    const thread_id = await api.newThread();
    const body = { assistant_id: "inspect", input: {} };
    const { seen } = await api.call("POST", `/threads/${thread_id}/runs/wait`, body, {
      "X-Secret": "s3cret",
      "User-Agent": "agent-47",
    });
    expect(JSON.stringify([seen, await api.history(thread_id), await api.thread(thread_id)])).not.toMatch(
      /s3cret|agent-47/,
    );
  });

  it("is passed to a factory, including when the state is read", async () => {
    const thread_id = await api.newThread();
    const body = { assistant_id: "factory", input: { steps: [] }, config: { configurable: { word: "hello" } } };
    expect(await api.wait(thread_id, body)).toEqual({ steps: ["hello"] });
    expect(await api.wait(thread_id, { ...body, config: {} })).toEqual({ steps: ["hello", "nothing"] });
    expect((await api.state(thread_id)).values).toEqual({ steps: ["hello", "nothing"] });
  });

  it("belongs to one run: the next one on the thread starts without it", async () => {
    const { thread_id } = await inspect({
      config: { configurable: { a: 1 }, tags: ["once"] },
      metadata: { once: true },
      context: { b: 1 },
    });
    const { seen } = await api.wait(thread_id, { assistant_id: "inspect", input: {} });
    expect(seen.configurable).not.toHaveProperty("a");
    expect(seen.metadata).not.toHaveProperty("once");
    expect(seen.tags ?? []).not.toContain("once");
    expect(seen.context ?? {}).toEqual({});
  });

  it("is stored as it was requested, complete and unchanged", async () => {
    const input = { steps: ["ü ✓ 𝄞", ""], nested: { list: [1, 2.5, null, true, { a: [] }] } };
    const thread_id = await api.newThread();
    const run = await api.newRun(thread_id, { assistant_id: "inspect", input, after_seconds: 3600 });
    expect(run.kwargs.input).toEqual(input);
    expect((await api.run(run)).kwargs).toEqual(run.kwargs);
  });
});
