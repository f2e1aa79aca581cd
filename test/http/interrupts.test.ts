import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import { expected } from "./language-differences.ts";
import { Scenario, type Wire } from "./scenario.ts";

describe.each(databases)("pauses on %s", (database) => {
  let api: Scenario;
  beforeAll(async () => {
    api = await Scenario.start(database);
  });
  afterAll(() => api.stop());

  const wait = (thread_id: string, assistant_id: string, body: object = {}): Promise<Wire> =>
    api.wait(thread_id, { assistant_id, ...body });
  const paused = async (assistant_id: string, body: object = {}): Promise<[string, Wire]> => {
    const thread_id = await api.newThread();
    return [thread_id, await wait(thread_id, assistant_id, { input: { steps: ["in"] }, ...body })];
  };
  const resume = (thread_id: string, assistant_id: string, value: unknown) =>
    wait(thread_id, assistant_id, { command: { resume: value } });

  describe("for a question", () => {
    it("return the values so far and the question, which the thread, the run and the state show", async () => {
      const [thread_id, output] = await paused("gate");
      const interrupt = { id: expect.any(String), value: { question: "name?" }, ...expected.interrupt_fields };
      expect(output).toEqual({ steps: ["in", "open"], answers: {}, __interrupt__: [interrupt] });
      const state = await api.state(thread_id);
      expect(state).toMatchObject({
        next: ["ask"],
        values: { steps: ["in", "open"] },
        tasks: [{ name: "ask", interrupts: [interrupt], error: null }],
      });
      const [task] = state.tasks;
      const thread = await api.thread(thread_id);
      expect(thread).toMatchObject({ status: "interrupted", values: { steps: ["in", "open"] } });
      expect(thread.interrupts).toEqual({ [task.id]: [interrupt] });
      expect(thread.interrupts[task.id][0].id).toBe(output.__interrupt__[0].id);
      expect(thread.values).not.toHaveProperty("__interrupt__");
      const [run] = await api.get(`/threads/${thread_id}/runs`);
      expect(run.status).toBe("interrupted");
      expect(await api.join(run)).toEqual(output);
    });

    it("are answered by value, one after the other, until the graph is done", async () => {
      const [thread_id] = await paused("gate");
      const second = await resume(thread_id, "gate", "Ada");
      expect(second.__interrupt__).toMatchObject([{ value: { question: "age?", name: "Ada" } }]);
      const [question] = second.__interrupt__;
      const thread = await api.thread(thread_id);
      expect(thread.status).toBe("interrupted");
      expect(Object.values(thread.interrupts)).toEqual([[question]]);
      expect(await api.state(thread_id)).toMatchObject({ next: ["ask"], interrupts: [question] });
      expect(await resume(thread_id, "gate", 36)).toEqual({
        steps: ["in", "open", "ask", "close"],
        answers: { name: "Ada", age: 36 },
      });
      expect(await api.thread(thread_id)).toMatchObject({ status: "idle", interrupts: {} });
      expect(await api.state(thread_id)).toMatchObject({ next: [], tasks: [] });
    });

    it.each([[null], [false], [0], [""], [[]], [{}], [{ deep: [1, null] }]])(
      "are answered by %j as well",
      async (value) => {
        const [thread_id] = await paused("gate");
        const second = await resume(thread_id, "gate", value);
        expect(second).toMatchObject({ __interrupt__: [{ value: { question: "age?", name: value } }] });
        expect((await resume(thread_id, "gate", 1)).answers).toEqual({ name: value, age: 1 });
      },
    );

    it("may be answered by null also when it is the second of a node", async () => {
      const [thread_id] = await paused("gate");
      await resume(thread_id, "gate", "Ada");
      expect((await resume(thread_id, "gate", null)).answers).toEqual({ name: "Ada", age: null });
    });

    it("stay open when the state is changed meanwhile, also the second of a node", async () => {
      const [thread_id] = await paused("gate");
      await resume(thread_id, "gate", "Ada");
      await api.post(`/threads/${thread_id}/state`, { values: { steps: ["by hand"] } });
      expect(await api.state(thread_id)).toMatchObject({ next: ["ask"] });
    });

    it("are answered by their id", async () => {
      const [thread_id, { __interrupt__ }] = await paused("gate");
      const second = await resume(thread_id, "gate", { [__interrupt__[0].id]: "Ada" });
      expect(second.__interrupt__[0].value).toEqual({ question: "age?", name: "Ada" });
    });

    it("in two branches are both listed, and each is answered by its id", async () => {
      const [thread_id, { __interrupt__ }] = await paused("parallel");
      expect(__interrupt__.map(({ value }: Wire) => value.question).sort()).toEqual(["left", "right"]);
      expect(Object.values((await api.thread(thread_id)).interrupts)).toHaveLength(2);
      const { tasks, interrupts } = await api.state(thread_id);
      expect(tasks.map(({ name }: Wire) => name).sort()).toEqual(["left", "right"]);
      expect(interrupts).toHaveLength(2);
      const answers = Object.fromEntries(__interrupt__.map(({ id, value }: Wire) => [id, `to ${value.question}`]));
      expect(await resume(thread_id, "parallel", answers)).toEqual({
        steps: ["in", "join"],
        answers: { left: "to left", right: "to right" },
      });
      expect(await api.thread(thread_id)).toMatchObject({ status: "idle", interrupts: {} });
    });

    it("in two branches may be answered one by one", async () => {
      const [thread_id, { __interrupt__ }] = await paused("parallel");
      const [one, other] = __interrupt__;
      const half = await resume(thread_id, "parallel", { [one.id]: 1 });
      expect(half.__interrupt__).toMatchObject([{ id: other.id, value: other.value }]);
      expect(half.__interrupt__).toHaveLength(1);
      expect(Object.values((await api.thread(thread_id)).interrupts).flat()).toMatchObject([{ id: other.id }]);
      expect((await resume(thread_id, "parallel", { [other.id]: 2 })).steps).toEqual(["in", "join"]);
    });

    it("are left as they are by a strict resume that names another interrupt", async () => {
      const [thread_id, { __interrupt__ }] = await paused("parallel");
      const [one, other] = __interrupt__;
      const before = await api.thread(thread_id);
      const strict = (resume: object) => wait(thread_id, "parallel", { command: { resume }, strict_resume: true });
      const unknown = "0".repeat(32);
      const refused = await strict({ [one.id]: 1, [unknown]: 2 });
      expect(refused.__error__).toEqual({
        error: "UnknownInterruptError",
        message: `The thread has no open interrupt with the ID ${unknown}.`,
      });
      const { status, values, interrupts } = await api.thread(thread_id);
      expect({ status, values, interrupts }).toEqual({
        status: "interrupted",
        values: before.values,
        interrupts: before.interrupts,
      });
      expect((await api.get(`/threads/${thread_id}/runs`))[0].status).toBe("error");
      expect((await strict({ [one.id]: 1, [other.id]: 2 })).steps).toEqual(["in", "join"]);
    });

    it("in a subgraph are returned at the root, and answered there", async () => {
      const [thread_id, output] = await paused("parent", { input: { steps: ["pause"] } });
      expect(output.__interrupt__).toMatchObject([{ value: "go on?" }]);
      expect(Object.values((await api.thread(thread_id)).interrupts).flat()).toMatchObject([{ value: "go on?" }]);
      const done = await resume(thread_id, "parent", "yes");
      expect(done.steps).toEqual(expect.arrayContaining(["answer yes", "deep", "deeper", "after"]));
      expect(await api.thread(thread_id)).toMatchObject({ status: "idle", interrupts: {} });
    });

    it("are asked again by a run without input, and left behind by one with input", async () => {
      const [thread_id] = await paused("gate");
      expect((await wait(thread_id, "gate", { input: null })).__interrupt__[0].value).toEqual({ question: "name?" });
      const restarted = await wait(thread_id, "gate", { input: { steps: ["new"] } });
      expect(restarted).toMatchObject({
        steps: ["in", "open", "new", "open"],
        __interrupt__: [{ value: { question: "name?" } }],
      });
    });

    it("are no longer open once a run with another graph has passed", async () => {
      const [thread_id] = await paused("gate");
      await wait(thread_id, "chain", { input: { steps: [] } });
      expect(await api.thread(thread_id)).toMatchObject({ status: "idle", interrupts: {} });
    });
  });

  describe("at a breakpoint", () => {
    it.each<[string, object, string[], string[]]>([
      ["before b", { interrupt_before: ["b"] }, ["in", "a"], ["b"]],
      ["after b", { interrupt_after: ["b"] }, ["in", "a", "b"], ["c"]],
      ["before every node", { interrupt_before: "*" }, ["in"], ["a"]],
      ["after every node", { interrupt_after: "*" }, ["in", "a"], ["b"]],
      [
        "before b or after a, whichever comes first",
        { interrupt_before: ["b"], interrupt_after: ["a"] },
        ["in", "a"],
        ["b"],
      ],
    ])("%s show what comes next and no question, and continue without input", async (_, body, steps, next) => {
      const [thread_id, output] = await paused("chain", body);
      expect(output.steps).toEqual(steps);
      expect(await api.state(thread_id)).toMatchObject({
        next,
        values: { steps },
        tasks: [{ name: next[0], interrupts: [] }],
      });
      expect(await api.thread(thread_id)).toMatchObject({ status: "interrupted", values: { steps }, interrupts: {} });
      expect((await api.get(`/threads/${thread_id}/runs`))[0].status).toBe("interrupted");
      expect(await wait(thread_id, "chain", { input: null })).toEqual({ steps: ["in", "a", "b", "c"] });
      expect((await api.thread(thread_id)).status).toBe("idle");
    });

    it("before every node go through the graph step by step", async () => {
      const [thread_id] = await paused("chain", { interrupt_before: "*" });
      const seen: string[][] = [];
      for (let i = 0; i < 3; i++) {
        await wait(thread_id, "chain", { input: null, interrupt_before: "*" });
        seen.push((await api.state(thread_id)).next);
      }
      expect(seen).toEqual([["b"], ["c"], []]);
    });

    it("continue with what was changed meanwhile", async () => {
      const [thread_id] = await paused("chain", { interrupt_before: ["b"] });
      await api.post(`/threads/${thread_id}/state`, { values: { steps: ["x"] } });
      expect(await wait(thread_id, "chain", { input: null })).toEqual({ steps: ["in", "a", "x", "b", "c"] });
    });
  });

  describe("left by a command", () => {
    it("goto runs that node next", async () => {
      const [thread_id] = await paused("chain", { interrupt_before: ["a"] });
      expect((await wait(thread_id, "chain", { command: { goto: "c" } })).steps).toContain("c");
      const steps = (await api.state(thread_id)).values.steps;
      expect(steps.indexOf("in")).toBe(0);
      expect(steps.at(-1)).toBe("c");
    });

    it.each<[string, object, string[]]>([
      ["a node", { goto: "c" }, ["c"]],
      ["a list of nodes", { goto: ["a", "c"] }, ["a", "b", "c", "c"]],
      ["a node with an input of its own", { goto: { node: "b", input: { steps: ["sent"] } } }, ["b", "c"]],
      ["a node, and an update", { goto: "c", update: { steps: ["u"] } }, ["c", "u"]],
    ])("goto %s starts there on a thread that is done", async (_, command, added) => {
      const [thread_id] = await paused("chain");
      const { steps } = await wait(thread_id, "chain", { command });
      expect(steps.slice(0, 4)).toEqual(["in", "a", "b", "c"]);
      expect(steps.slice(4).sort()).toEqual(added);
    });

    it("goto gives the node the input of a Send of the libraries", async () => {
      const args = { messages: [{ type: "human", content: "Sent?" }] };
      const command = { goto: { lg_name: "Send", node: "answer", args } };
      const { messages } = await wait(await api.newThread(), "talk", { command });
      expect(messages.at(-1)).toMatchObject({ type: "ai", content: "yes" });
    });

    it.each([
      ["an object", { steps: ["u"], answers: { extra: 1 } }],
      [
        "pairs",
        [
          ["steps", ["u"]],
          ["answers", { extra: 1 }],
        ],
      ],
    ])("update as %s goes with the answer", async (_, update) => {
      const [thread_id] = await paused("gate");
      await resume(thread_id, "gate", "Ada");
      const done = await wait(thread_id, "gate", { command: { resume: 36, update } });
      expect(done).toEqual({ steps: ["in", "open", "u", "ask", "close"], answers: { extra: 1, name: "Ada", age: 36 } });
    });
  });

  it("are not the result of too many steps: such a run fails with GraphRecursionError", async () => {
    const thread_id = await api.newThread();
    const output = await wait(thread_id, "loop", { input: { steps: [] }, config: { recursion_limit: 5 } });
    expect(output).toEqual({ __error__: { error: "GraphRecursionError", message: expect.stringContaining("5") } });
    expect(await api.thread(thread_id)).toMatchObject({ status: "error", values: { steps: Array(5).fill("turn") } });
    expect((await wait(thread_id, "loop", { input: { steps: [] } })).steps).toHaveLength(12);
  });

  describe.each(["sync", "async", "exit"])("with durability %s", (durability) => {
    it("store questions and their answers", async () => {
      const [thread_id, first] = await paused("gate", { durability });
      expect(first.__interrupt__[0].value).toEqual({ question: "name?" });
      expect(await api.thread(thread_id)).toMatchObject({ status: "interrupted" });
      expect(
        (await wait(thread_id, "gate", { command: { resume: "Ada" }, durability })).__interrupt__[0].value.name,
      ).toBe("Ada");
      expect((await wait(thread_id, "gate", { command: { resume: 36 }, durability })).answers).toEqual({
        name: "Ada",
        age: 36,
      });
    });

    it("store the checkpoints that the value specifies, and the final state", async () => {
      const [thread_id, output] = await paused("chain", { durability });
      expect(output).toEqual({ steps: ["in", "a", "b", "c"] });
      expect(await api.history(thread_id)).toHaveLength(durability === "exit" ? 1 : 5);
      expect((await api.state(thread_id)).values).toEqual(output);
      expect((await wait(thread_id, "chain", { input: { steps: ["more"] }, durability })).steps).toHaveLength(8);
    });

    it("store the steps before an error", async () => {
      const [thread_id] = await paused("fails", { input: { kind: "type_error", steps: ["in"] }, durability });
      expect((await api.state(thread_id)).values.steps).toEqual(["in", "first"]);
      expect(await api.thread(thread_id)).toMatchObject({ status: "error", values: { steps: ["in", "first"] } });
    });
  });
});
