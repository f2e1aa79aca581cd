import { describe, expect, it } from "vitest";
import { httpError, type NewClient, TIME, UUID, unique } from "./support.ts";

export function assistantScenarios(newClient: NewClient): void {
  describe("assistants", () => {
    it("are created with everything that the client sends", async () => {
      const { assistants } = newClient();
      const given = {
        name: "Kind one",
        description: "Speaks kindly.",
        metadata: { team: { id: unique() } },
        config: { tags: ["a"], recursion_limit: 9, configurable: { color: "red" } },
        context: { tone: "kindly" },
      };
      const created = await assistants.create({ graphId: "agent", ...given });
      expect(created).toEqual({
        ...given,
        assistant_id: UUID,
        graph_id: "agent",
        version: 1,
        created_at: TIME,
        updated_at: TIME,
      });
      expect(await assistants.get(created.assistant_id)).toEqual(created);
    });

    it("have defaults for omitted fields", async () => {
      const created = await newClient().assistants.create({ graphId: "agent" });
      expect(created).toMatchObject({
        name: "Untitled",
        description: null,
        metadata: {},
        config: {},
        context: {},
        version: 1,
      });
    });

    it("exist for each graph from the start, under an id derived from the graph's name", async () => {
      const found = await newClient().assistants.get("fe096781-5601-53d2-b2f6-0d3403f7e9ca");
      expect(found).toMatchObject({ graph_id: "agent", name: "agent", version: 1, metadata: { created_by: "system" } });
      expect(await newClient().assistants.get("agent")).toEqual(found);
    });

    it("with a taken id are refused, or returned unchanged", async () => {
      const { assistants } = newClient();
      const first = await assistants.create({ graphId: "agent", name: "first" });
      const second = { graphId: "agent", assistantId: first.assistant_id, name: "second" };
      await expect(assistants.create(second)).rejects.toEqual(httpError(409, "Assistant already exists"));
      expect(await assistants.create({ ...second, ifExists: "do_nothing" })).toEqual(first);
    });

    it("of an unknown graph, or under an unknown id, are not found", async () => {
      const { assistants } = newClient();
      await expect(assistants.create({ graphId: "nowhere" })).rejects.toEqual(httpError(404, "nowhere"));
      await expect(assistants.get(unique())).rejects.toEqual(httpError(404, "Assistant not found"));
    });

    it("get a version with every update: metadata merges, the rest is replaced", async () => {
      const { assistants } = newClient();
      const { assistant_id } = await assistants.create({
        graphId: "agent",
        name: "one",
        metadata: { a: 1, b: 1 },
        config: { tags: ["x"], configurable: { color: "red" } },
      });
      const updated = await assistants.update(assistant_id, {
        name: "two",
        metadata: { b: 2 },
        config: { configurable: { size: "large" } },
        context: { tone: "plainly" },
      });
      expect(updated).toMatchObject({
        version: 2,
        name: "two",
        metadata: { a: 1, b: 2 },
        context: { tone: "plainly" },
      });
      expect(updated.config).toEqual({ configurable: { size: "large" } });
      expect(await assistants.update(assistant_id, {})).toMatchObject({
        version: 3,
        name: "two",
        metadata: { a: 1, b: 2 },
      });
    });

    it("list their versions, newest first, and go back to one of them", async () => {
      const { assistants } = newClient();
      const { assistant_id } = await assistants.create({ graphId: "agent", name: "one", metadata: { step: 1 } });
      await assistants.update(assistant_id, { name: "two", metadata: { step: 2 }, description: "Second." });
      await assistants.update(assistant_id, { name: "three", metadata: { step: 3 } });
      const versions = await assistants.getVersions(assistant_id);
      expect(versions.map(({ version, name }) => [version, name])).toEqual([
        [3, "three"],
        [2, "two"],
        [1, "one"],
      ]);
      expect(await assistants.getVersions(assistant_id, { limit: 1, offset: 1 })).toEqual([versions[1]]);
      expect(await assistants.getVersions(assistant_id, { metadata: { step: 1 } })).toEqual([versions[2]]);
      const restored = await assistants.setLatest(assistant_id, 1);
      expect(restored).toMatchObject({ version: 1, name: "one", metadata: { step: 1 }, description: null });
      expect(await assistants.get(assistant_id)).toEqual(restored);
      expect(await assistants.update(assistant_id, {})).toMatchObject({ version: 4, name: "one" });
      await expect(assistants.setLatest(assistant_id, 99)).rejects.toEqual(httpError(404, "version 99"));
    });

    it("are searched and counted by graph, name and metadata, a page at a time", async () => {
      const { assistants } = newClient();
      const key = unique();
      for (const [name, graphId] of [
        ["Alpha", "agent"],
        ["Beta", "echo"],
        ["Gamma", "agent"],
      ] as const) {
        await assistants.create({ graphId, name: `${name} ${key}`, metadata: { key, nested: { name } } });
      }
      const search = async (query: object) =>
        (await assistants.search({ metadata: { key }, ...query })).map(({ name }) => name.split(" ")[0]);
      expect(await search({})).toEqual(["Gamma", "Beta", "Alpha"]);
      expect(await search({ sortBy: "name", sortOrder: "asc" })).toEqual(["Alpha", "Beta", "Gamma"]);
      expect(await search({ graphId: "echo" })).toEqual(["Beta"]);
      expect(await search({ metadata: { key, nested: { name: "Alpha" } } })).toEqual(["Alpha"]);
      expect(await search({ name: `GAMMA ${key}` })).toEqual(["Gamma"]);
      expect(await search({ limit: 1, offset: 1 })).toEqual(["Beta"]);
      const selected = await assistants.search({ metadata: { key }, graphId: "echo", select: ["name", "graph_id"] });
      expect(selected).toEqual([{ name: `Beta ${key}`, graph_id: "echo" }]);
      expect(await assistants.count({ metadata: { key } })).toBe(3);
      expect(await assistants.count({ metadata: { key }, graphId: "agent" })).toBe(2);
    });

    it("say where the next page starts, and that the last page has none", async () => {
      const { assistants } = newClient();
      const key = unique();
      for (const name of ["one", "two", "three"])
        await assistants.create({ graphId: "agent", name, metadata: { key } });
      const page = (offset: number) =>
        assistants.search({ metadata: { key }, limit: 2, offset, includePagination: true });
      const first = await page(0);
      expect(first).toMatchObject({ assistants: [{ name: "three" }, { name: "two" }], next: "2" });
      expect(await page(2)).toMatchObject({ assistants: [{ name: "one" }], next: null });
    });

    it("draw their graph, and its subgraphs when asked", async () => {
      const { assistants } = newClient();
      const drawing = await assistants.getGraph("agent");
      expect(drawing.nodes.map(({ id }) => id)).toEqual(["__start__", "begin", "inner", "finish", "__end__"]);
      expect(drawing.edges).toContainEqual(expect.objectContaining({ source: "begin", target: "inner" }));
      const ids = async (xray: boolean | number) =>
        (await assistants.getGraph("agent", { xray })).nodes.map(({ id }) => id);
      expect(await ids(true)).toEqual(
        expect.arrayContaining(["inner:look", "inner:deepest:dig", "inner:deepest:fill"]),
      );
      expect(await ids(1)).toEqual(expect.arrayContaining(["inner:look", "inner:deepest"]));
    });

    it("give the schemas of their graph", async () => {
      const schemas = await newClient().assistants.getSchemas("agent");
      expect(schemas.graph_id).toBe("agent");
      const properties = { topic: { type: "string" }, trail: { type: "array", items: { type: "string" } } };
      expect(schemas.state_schema).toMatchObject({ type: "object", properties });
      expect(schemas.input_schema).toMatchObject({ type: "object", properties });
      expect(schemas.output_schema).toMatchObject({ type: "object", properties });
      expect(schemas.context_schema).toMatchObject({ properties: { tone: { type: "string" } } });
      expect(schemas.config_schema).toEqual(schemas.context_schema);
    });

    it("list the subgraphs of their graph, by namespace", async () => {
      const { assistants } = newClient();
      const names = async (options?: object) => Object.keys(await assistants.getSubgraphs("agent", options));
      expect(await names()).toEqual(["inner"]);
      expect(await names({ recurse: true })).toEqual(["inner", "inner|deepest"]);
      expect(await names({ namespace: "inner" })).toEqual(["inner"]);
      expect(await names({ namespace: "inner|deepest", recurse: true })).toEqual(["inner|deepest"]);
      expect((await assistants.getSubgraphs("agent")).inner).toMatchObject({ state_schema: { type: "object" } });
    });

    it("are deleted with their versions, and with their threads when asked", async () => {
      const { assistants, threads, runs } = newClient();
      const { assistant_id } = await assistants.create({ graphId: "echo" });
      const { thread_id } = await threads.create();
      await runs.wait(thread_id, assistant_id, { input: { text: "hi" } });
      await assistants.delete(assistant_id, { deleteThreads: true });
      await expect(assistants.get(assistant_id)).rejects.toEqual(httpError(404, "Assistant not found"));
      await expect(threads.get(thread_id)).rejects.toEqual(httpError(404, thread_id));
      await expect(assistants.delete(assistant_id)).rejects.toEqual(httpError(404, "Assistant not found"));
    });

    it("give their configuration and context to their runs", async () => {
      const { assistants, runs } = newClient();
      const { assistant_id } = await assistants.create({ graphId: "agent", context: { tone: "kindly" } });
      const own = await runs.wait(null, assistant_id, { input: {} });
      expect(own).toMatchObject({ trail: ["begin", "look", "dig", "fill", "finish kindly"] });
      const overridden = await runs.wait(null, assistant_id, { input: {}, context: { tone: "sternly" } });
      expect(overridden).toMatchObject({ trail: ["begin", "look", "dig", "fill", "finish sternly"] });
    });
  });
}
