import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import { Scenario } from "./scenario.ts";

describe.each(databases)("the checkpointer of Python hosts on %s", (database) => {
  let api: Scenario;
  beforeAll(async () => {
    api = await Scenario.start(database, {}, { config: "test/python/projects/langgraph.json" });
  });
  afterAll(() => api.stop());

  it.each([
    ["asynchronous", false],
    ["synchronous", true],
  ])("passes LangGraph's conformance tests with %s calls", async (_, is_sync) => {
    const { results } = await api.post("/runs/wait", { assistant_id: "conformance", input: { is_sync } });
    const found: [passed: number, failures: string[]][] = Object.values(results);
    expect(Object.keys(results).sort()).toEqual(["get_tuple", "list", "put", "put_writes"]);
    expect(found.flatMap(([, failures]) => failures)).toEqual([]);
    expect(found.reduce((sum, [passed]) => sum + passed, 0)).toBeGreaterThanOrEqual(50);
  });

  describe("with a DeltaChannel, which stores the writes of a step instead of the value", () => {
    const contentsOf = ({ messages }: { messages: { content: string }[] }) => messages.map(({ content }) => content);
    const say = (content: string) => ({ messages: [{ role: "user", content }] });

    it("reads the value from the writes of all ancestors, even after an update", async () => {
      const thread_id = await api.newThread();
      const expected: string[] = [];
      for (let turn = 0; turn < 4; turn++) {
        expected.push(`turn ${turn}`);
        for (let n = 0; n < 2; n++) expected.push(`reply ${expected.length}`);
        const values = await api.wait(thread_id, { assistant_id: "deltas", input: say(`turn ${turn}`) });
        expect(contentsOf(values)).toEqual(expected);
      }
      expect(contentsOf((await api.state(thread_id)).values)).toEqual(expected);
      await api.post(`/threads/${thread_id}/state`, { values: say("update"), as_node: "two" });
      expected.push("update");
      expect(contentsOf((await api.state(thread_id)).values)).toEqual(expected);
      const history = await api.history(thread_id);
      expect(history.map(({ values }) => values.messages.length).slice(0, 4)).toEqual([13, 12, 11, 10]);
      expect(contentsOf(history[4]?.values as never)).toEqual(expected.slice(0, 9));
    });

    it("keeps what later runs are rebuilt from when an earlier run is deleted", async () => {
      const thread_id = await api.newThread();
      for (let turn = 0; turn < 3; turn++)
        await api.wait(thread_id, { assistant_id: "deltas", input: say(`turn ${turn}`) });
      const { values } = await api.state(thread_id);
      expect(contentsOf(values)).toHaveLength(9);
      const [, , first] = await api.get(`/threads/${thread_id}/runs`);
      await api.call("DELETE", `/threads/${thread_id}/runs/${first.run_id}`);
      expect((await api.state(thread_id)).values).toEqual(values);
      expect((await api.thread(thread_id)).values).toEqual(values);
      const after = await api.wait(thread_id, { assistant_id: "deltas", input: say("last") });
      expect(contentsOf(after)).toHaveLength(12);
    });
  });
});
