import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import { Scenario, type Wire } from "./scenario.ts";

/** What is searched through; their names say in which order they were made. */
const MADE = [
  { name: "1 Ada", graph_id: "chain", metadata: { team: "blue", tags: ["x", "y"], owner: { id: 1, mail: "a@x" } } },
  { name: "2 Bob", graph_id: "loop", metadata: { team: "blue", tags: ["y"] } },
  { name: "3 ADAM 100%", graph_id: "chain", metadata: { team: "red", owner: { id: 2 }, created: null } },
  { name: "4 c_d", graph_id: "gate", metadata: { team: "red", tags: [] } },
  { name: "5 cxd", graph_id: "gate", metadata: { team: 'gr"een\\' } },
];

describe.each(databases)("searching assistants on %s", (database) => {
  let api: Scenario;
  beforeAll(async () => {
    api = await Scenario.start(database);
    for (const body of MADE) await api.post("/assistants", { ...body, metadata: { ...body.metadata, made: true } });
    // Changed last, so that updated_at gives another order than created_at.
    const [first] = await search({ name: "1 Ada" });
    await api.call("PATCH", `/assistants/${first.assistant_id}`, {});
  });
  afterAll(() => api.stop());

  const MINE = { made: true };
  const search = (body: object = {}): Promise<Wire[]> =>
    api.post("/assistants/search", { ...body, metadata: { ...MINE, ...(body as Wire).metadata } });
  const numbers = async (body: object = {}) => (await search(body)).map(({ name }) => Number(name[0]));

  it.each<[string, object, number[]]>([
    ["everything without a filter, newest first", {}, [5, 4, 3, 2, 1]],
    ["by a key of metadata", { metadata: { team: "blue" } }, [2, 1]],
    ["by several keys, all of which must match", { metadata: { team: "red", tags: [] } }, [4]],
    ["by a part of a nested object", { metadata: { owner: { id: 1 } } }, [1]],
    ["by an item of a list", { metadata: { tags: ["y"] } }, [2, 1]],
    ["by items of a list in any order", { metadata: { tags: ["y", "x"] } }, [1]],
    ["not by a value of another type", { metadata: { owner: { id: "1" } } }, []],
    ["by null, which is a value", { metadata: { created: null } }, [3]],
    ["by text with quotes and backslashes", { metadata: { team: 'gr"een\\' } }, [5]],
    ["by graph", { graph_id: "gate" }, [5, 4]],
    ["by a part of the name in any case", { name: "ada" }, [3, 1]],
    ["by a % that is no wildcard", { name: "0%" }, [3]],
    ["by a _ that is no wildcard", { name: "c_d" }, [4]],
    ["by name, graph and metadata together", { name: "A", graph_id: "chain", metadata: { team: "red" } }, [3]],
    ["nothing when nothing matches", { name: "zoe" }, []],
    [
      "with null for a filter that is not set",
      { name: null, graph_id: null, select: null, limit: null },
      [5, 4, 3, 2, 1],
    ],
  ])("finds %s, and counts as many", async (_, body, expected) => {
    expect(await numbers(body)).toEqual(expected);
    const { metadata, ...filter } = body as Wire;
    expect(await api.post("/assistants/count", { ...filter, metadata: { ...MINE, ...metadata } })).toBe(
      expected.length,
    );
  });

  it("without a body finds the default assistants too", async () => {
    const all = await api.post("/assistants/search", { limit: 1000 });
    expect(all.filter((a: Wire) => a.metadata.created_by === "system").length).toBeGreaterThan(10);
    expect(await api.post("/assistants/count")).toBe(all.length);
    expect(await api.post("/assistants/search")).toHaveLength(10);
  });

  it.each<[object, number[]]>([
    [{ sort_by: "name", sort_order: "asc" }, [1, 2, 3, 4, 5]],
    [{ sort_by: "name" }, [5, 4, 3, 2, 1]],
    [{ sort_by: "created_at", sort_order: "asc" }, [1, 2, 3, 4, 5]],
    [{ sort_by: "updated_at" }, [1, 5, 4, 3, 2]],
  ])("sorts by %j", async (body, expected) => {
    expect(await numbers(body)).toEqual(expected);
  });

  it.each(["assistant_id", "graph_id"])("sorts by %s both ways", async (sort_by) => {
    const values = async (sort_order: string) => (await search({ sort_by, sort_order })).map((a) => a[sort_by]);
    const up = await values("asc");
    expect(up).toEqual([...up].sort());
    expect(await values("desc")).toEqual([...up].reverse());
  });

  it("answers page by page, and names the next page until the last", async () => {
    const page = async (offset: number) => {
      const { body, headers } = await api.send("POST", "/assistants/search", { metadata: MINE, limit: 2, offset });
      return {
        found: body.map(({ name }: Wire) => Number(name[0])),
        next: headers.get("x-pagination-next"),
        total: headers.get("x-pagination-total"),
      };
    };
    expect(await page(0)).toEqual({ found: [5, 4], next: "2", total: "3" });
    expect(await page(2)).toEqual({ found: [3, 2], next: "4", total: "5" });
    expect(await page(4)).toEqual({ found: [1], next: null, total: "5" });
    expect(await page(9)).toMatchObject({ found: [], next: null });
  });

  it("returns only the selected fields", async () => {
    expect(await search({ name: "bob", select: ["name", "version"] })).toEqual([{ name: "2 Bob", version: 1 }]);
  });

  it.each<[object, string]>([
    [{ select: ["name", "password"] }, "body.select"],
    [{ sort_by: "version" }, "body.sort_by"],
    [{ sort_order: "up" }, "body.sort_order"],
    [{ limit: 0 }, "body.limit"],
    [{ limit: 1001 }, "body.limit"],
    [{ limit: 1.5 }, "body.limit"],
    [{ offset: -1 }, "body.offset"],
    [{ metadata: ["team"] }, "body.metadata"],
  ])("refuses %j and says where", async (body, where) => {
    const answer = await api.send("POST", "/assistants/search", body);
    expect(answer).toMatchObject({ status: 422, body: { detail: expect.stringContaining(where) } });
  });
});
