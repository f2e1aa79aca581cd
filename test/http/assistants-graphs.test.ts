import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import { expected } from "./language-differences.ts";
import { Scenario, type Wire } from "./scenario.ts";

describe.each(databases)("the graphs of assistants on %s", (database) => {
  let api: Scenario;
  beforeAll(async () => {
    api = await Scenario.start(database);
  });
  afterAll(() => api.stop());

  const nodes = async (graph: string, query = ""): Promise<string[]> =>
    (await api.get(`/assistants/${graph}/graph${query}`)).nodes.map(({ id }: Wire) => id);

  it("the drawing of a chain has its nodes and edges in order", async () => {
    const { nodes, edges } = await api.get("/assistants/chain/graph");
    expect(nodes.map(({ id }: Wire) => id)).toEqual(["__start__", "a", "b", "c", "__end__"]);
    expect(nodes.map(({ type }: Wire) => type)).toEqual(expected.node_types);
    const arrows = edges.map(({ source, target }: Wire) => `${source} ${target}`);
    expect(arrows.sort()).toEqual(["__start__ a", "a b", "b c", "c __end__"]);
  });

  it("an edge that depends on the state is marked", async () => {
    const { edges } = await api.get("/assistants/loop/graph");
    const conditional = edges
      .filter((edge: Wire) => edge.conditional)
      .map(({ source, target }: Wire) => `${source} ${target}`);
    expect(conditional.sort()).toEqual(["turn __end__", "turn turn"]);
  });

  it.each([
    ["", ["before", "child", "after"], []],
    ["?xray=false", ["before", "child", "after"], []],
    ["?xray=0", ["before", "child", "after"], []],
    ["?xray=1", ["child:inner", "child:ask", "child:grandchild"], ["child", "child:grandchild:deep"]],
    ["?xray=true", ["child:inner", "child:ask", "child:grandchild:deep"], ["child"]],
    ["?xray=2", ["child:inner", "child:grandchild:deep"], ["child"]],
  ])("a drawing with %j opens as many levels", async (query, inside, outside) => {
    const found = await nodes("parent", query);
    expect(found).toEqual(expect.arrayContaining(inside));
    expect(found.filter((id) => outside.includes(id))).toEqual([]);
  });

  it("a factory's drawing is that of the graph it builds", async () => {
    const { assistant_id } = await api.post("/assistants", {
      graph_id: "factory",
      config: { configurable: { word: "moin" } },
    });
    expect(await nodes("factory")).toEqual(["__start__", "say", "__end__"]);
    expect(await nodes(assistant_id)).toEqual(["__start__", "say", "__end__"]);
  });

  it("state defined with Zod or Pydantic has JSON schemas", async () => {
    const schemas = await api.get("/assistants/zod/schemas");
    expect(schemas.graph_id).toBe("zod");
    for (const part of ["input_schema", "output_schema", "state_schema"]) {
      expect(schemas[part].properties).toMatchObject({
        topic: { type: "string", description: "What to write about." },
        length: { type: "number" },
      });
    }
    expect(schemas.input_schema.required ?? []).not.toContain("length");
  });

  it("state defined by types has JSON schemas, too", async () => {
    const schemas = await api.get("/assistants/chain/schemas");
    const steps = { type: "array", items: { type: "string" } };
    for (const part of ["input_schema", "output_schema", "state_schema"])
      expect(schemas[part]).toMatchObject({ type: "object", properties: { steps } });
    expect(schemas.config_schema).toBeNull();
  });

  it.each([
    ["/parent/subgraphs", ["child"]],
    ["/parent/subgraphs?recurse=true", ["child", "child|grandchild"]],
    ["/parent/subgraphs/child", ["child"]],
    ["/parent/subgraphs/child%7Cgrandchild?recurse=true", ["child|grandchild"]],
    ["/chain/subgraphs?recurse=true", []],
  ])("GET /assistants%s names the subgraphs", async (path, namespaces) => {
    const found = await api.get(`/assistants${path}`);
    expect(Object.keys(found).sort()).toEqual(namespaces);
    // Of a subgraph the running graph names the keys.
    for (const schemas of Object.values(found))
      expect(schemas).toMatchObject({ state_schema: { type: "object", properties: { steps: {} } } });
  });

  it.each([
    ["/chain/graph?xray=maybe", 422, "query.xray"],
    ["/parent/subgraphs?recurse=2", 422, "query.recurse"],
    ["/nobody/graph", 404, "Assistant not found"],
    ["/broken/graph", 422, expected.broken_graph],
    ["/broken/schemas", 422, expected.broken_graph],
  ])("GET /assistants%s is %i and says why", async (path, status, why) => {
    await api.service.threadmill.loaded;
    expect(await api.send("GET", `/assistants${path}`)).toMatchObject({
      status,
      body: { detail: expect.stringContaining(why) },
    });
  });
});
