import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import { Scenario, UNKNOWN_ID, type Wire } from "./scenario.ts";

describe.each(databases)("searching threads on %s", (database) => {
  let api: Scenario;
  /** The thread with each number. */
  const ids: string[] = [];
  beforeAll(async () => {
    api = await Scenario.start(database);
    for (const [i, metadata] of METADATA.entries())
      ids.push(await api.newThread({ metadata: { ...metadata, n: i, ...MINE } }));
    // 1 has values, 2 is paused, 3 has failed, 4 is busy; 0 was changed last.
    await api.wait(id(1), { assistant_id: "chain", input: { steps: ["in"] } });
    await api.wait(id(2), { assistant_id: "gate", input: { steps: ["in"] } });
    await api.wait(id(3), { assistant_id: "fails", input: { steps: ["in"], kind: "type_error" } });
    await api.runningSlow(id(4));
    await api.call("PATCH", `/threads/${id(0)}`, { metadata: {} });
  });
  afterAll(() => api.stop());

  const MINE = { made: true };
  const METADATA = [
    { team: "blue", owner: { id: 1, mail: "a@x" } },
    { team: "blue", tags: ["x", "y"] },
    { team: "red" },
    { team: "red", owner: { id: 2 } },
    {},
  ];
  const id = (n: number) => ids[n] as string;
  const search = (body: Wire = {}): Promise<Wire[]> =>
    api.post("/threads/search", { ...body, metadata: { ...MINE, ...body.metadata } });
  const numbers = async (body: object = {}) => (await search(body)).map(({ thread_id }) => ids.indexOf(thread_id));

  it.each<[string, object, number[]]>([
    ["everything without a filter", {}, [0, 1, 2, 3, 4]],
    ["by metadata", { metadata: { team: "blue" } }, [0, 1]],
    ["by a part of a nested object", { metadata: { owner: { id: 2 } } }, [3]],
    ["by an item of a list", { metadata: { tags: ["y"] } }, [1]],
    ["by the graph that ran last", { metadata: { graph_id: "chain" } }, [1]],
    ["by values", { values: { steps: ["a", "c"] } }, [1]],
    ["by a part of the values of a paused thread", { values: { steps: ["open"] } }, [2]],
    ["by values that no thread has", { values: { steps: ["zzz"] } }, []],
    ["by the status idle", { status: "idle" }, [0, 1]],
    ["by the status interrupted", { status: "interrupted" }, [2]],
    ["by the status error", { status: "error" }, [3]],
    ["by the status busy", { status: "busy" }, [4]],
    ["by status and metadata together", { status: "idle", metadata: { team: "blue", tags: ["x"] } }, [1]],
    [
      "with null for a filter that is not set",
      { status: null, values: null, ids: null, extract: null },
      [0, 1, 2, 3, 4],
    ],
  ])("finds %s, and counts as many", async (_, body, expected) => {
    expect((await numbers(body)).sort()).toEqual(expected);
    const { metadata, ids: _ids, extract: _extract, ...filter } = body as Wire;
    expect(await api.post("/threads/count", { ...filter, metadata: { ...MINE, ...metadata } })).toBe(expected.length);
  });

  it.each<[string, string, boolean]>([
    ["a word of the state in any case", "A_Word %", true],
    ["signs that JSON and patterns write otherwise", 'say "100%"', true],
    ["a sign of patterns that is not there", "a%word", false],
    ["what no thread has", "zzz", false],
  ])("finds by text: %s", async (_, text, isFound) => {
    const metadata = { searched: text };
    const thread_id = await api.newThread({ metadata });
    await api.wait(thread_id, { assistant_id: "chain", input: { steps: ['a_word % say "100%"'] } });
    const found: Wire[] = await api.post("/app/api/threads/search", { text, metadata, select: ["thread_id"] });
    expect(found).toEqual(isFound ? [{ thread_id }] : []);
    expect(await api.post("/app/api/threads/count", { text, metadata })).toBe(found.length);
    const byId = { text: thread_id.slice(0, -1), metadata, select: ["thread_id"] };
    expect(await api.post("/app/api/threads/search", byId)).toEqual([{ thread_id }]);
  });

  it("leaves out threads by metadata", async () => {
    const find = async (exclude_metadata: object) => {
      const body = {
        metadata: MINE,
        exclude_metadata,
        sort_by: "created_at",
        sort_order: "asc",
        select: ["thread_id"],
      };
      const found: Wire[] = await api.post("/app/api/threads/search", body);
      return found.map(({ thread_id }) => thread_id);
    };
    expect(await find({ team: "blue", tags: ["x"] })).toEqual([0, 2, 3, 4].map(id));
    expect(await find({ team: "blue", tags: ["none"] })).toEqual([0, 1, 2, 3, 4].map(id));
    const exclude_metadata = { team: "blue", tags: ["x"] };
    expect(await api.post("/app/api/threads/count", { metadata: MINE, exclude_metadata })).toBe(4);
  });

  it("finds by ids, and skips those that do not exist", async () => {
    expect((await numbers({ ids: [id(3), id(0), UNKNOWN_ID] })).sort()).toEqual([0, 3]);
    expect(await numbers({ ids: [] })).toEqual([]);
    expect(await numbers({ ids: [id(0).toUpperCase()] })).toEqual([0]);
  });

  it("sorts by the last update unless asked otherwise", async () => {
    expect((await numbers())[0]).toBe(0);
    expect(await numbers({ sort_by: "created_at" })).toEqual([4, 3, 2, 1, 0]);
    expect(await numbers({ sort_by: "created_at", sort_order: "asc" })).toEqual([0, 1, 2, 3, 4]);
    expect((await numbers({ sort_by: "state_updated_at", sort_order: "asc" })).slice(0, 2)).toEqual([0, 4]);
  });

  it.each(["thread_id", "status", "updated_at", "state_updated_at"])("sorts by %s both ways", async (sort_by) => {
    const values = async (sort_order: string) =>
      (await search({ sort_by, sort_order })).map((thread) => thread[sort_by]);
    const up = await values("asc");
    expect(up).toEqual([...up].sort());
    expect(await values("desc")).toEqual([...up].reverse());
  });

  it("answers page by page, and names the next page until the last", async () => {
    const page = async (offset: number) => {
      const { body, headers } = await api.send("POST", "/threads/search", {
        metadata: MINE,
        limit: 2,
        offset,
        sort_by: "created_at",
        sort_order: "asc",
      });
      return [body.map(({ thread_id }: Wire) => ids.indexOf(thread_id)), headers.get("x-pagination-next")];
    };
    expect([await page(0), await page(2), await page(4)]).toEqual([
      [[0, 1], "2"],
      [[2, 3], "4"],
      [[4], null],
    ]);
  });

  it("returns only the selected fields", async () => {
    expect(await search({ ids: [id(1)], select: ["thread_id", "status", "values"] })).toEqual([
      { thread_id: id(1), status: "idle", values: { steps: ["in", "a", "b", "c"] } },
    ]);
  });

  it("extracts parts by path, null where there is nothing", async () => {
    const extract = {
      last: "values.steps[-1]",
      first: "values.steps[0]",
      mail: "metadata.owner.mail",
      none: "values.steps[9].x",
      each: "values.steps[*]",
      all: "values",
    };
    const [found] = await search({ ids: [id(1)], extract, select: ["thread_id"] });
    expect(found).toEqual({
      thread_id: id(1),
      extracted: { last: "c", first: "in", mail: null, none: null, each: null, all: { steps: ["in", "a", "b", "c"] } },
    });
    const [other] = await search({ ids: [id(0)], extract });
    expect(other.extracted).toEqual({ last: null, first: null, mail: "a@x", none: null, each: null, all: null });
  });

  it("extracts interrupts", async () => {
    const [found] = await search({ ids: [id(2)], extract: { interrupts: "interrupts" } });
    expect(Object.values(found.extracted.interrupts)).toEqual([
      [{ id: expect.any(String), value: { question: "name?" } }],
    ]);
  });

  it("shows why a thread is in error", async () => {
    const [thread] = await search({ ids: [id(3)] });
    expect(thread).toMatchObject({ status: "error", values: { steps: ["in", "first"] } });
    expect(JSON.stringify(thread.error)).toContain("steps is not iterable");
  });

  it.each<[object, string]>([
    [{ select: ["thread_id", "secret"] }, "body.select"],
    [{ status: "sleeping" }, "body.status"],
    [{ sort_by: "metadata" }, "body.sort_by"],
    [{ limit: 1001 }, "body.limit"],
    [{ ids: ["1"] }, "body.ids.0"],
    [{ extract: { a: "kwargs.x" } }, "body.extract.a"],
    [{ extract: Object.fromEntries(Array.from({ length: 11 }, (_, i) => [`p${i}`, "values"])) }, "body.extract"],
  ])("refuses %j and says where", async (body, where) => {
    expect(await api.send("POST", "/threads/search", body)).toMatchObject({
      status: 422,
      body: { detail: expect.stringContaining(where) },
    });
  });

  it("never finds the thread of a stateless run", async () => {
    const before = await api.post("/threads/count");
    const run = await api.post("/runs", { assistant_id: "slow", input: { steps: [] }, metadata: { stateless: 1 } });
    expect(await api.post("/threads/count")).toBe(before);
    expect(await api.post("/threads/search", { metadata: { stateless: 1 } })).toEqual([]);
    expect(await api.post("/threads/search", { ids: [run.thread_id] })).toEqual([]);
  });
});
