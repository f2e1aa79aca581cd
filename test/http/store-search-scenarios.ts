import { sql } from "kysely";
import { afterAll, beforeAll, expect, it } from "vitest";
import { openOn } from "../support/storage.ts";
import type { Scenario, Wire } from "./scenario.ts";

export const STORE_CONFIG = "test/graphs/store/langgraph.json";

/** Semantic search as clients see it, whatever searches. @param start starts a service with {@link STORE_CONFIG} */
export function searchScenarios(start: () => Promise<Scenario>): void {
  let api: Scenario;
  beforeAll(async () => {
    api = await start();
  });
  afterAll(() => api.stop());

  const put = (namespace: string[], key: string, value: object, options: object = {}) =>
    api.call("PUT", "/store/items", { namespace, key, value, ...options });
  const search = async (namespace_prefix: string[], query: string, body: object = {}): Promise<Wire[]> =>
    (await api.post("/store/items/search", { namespace_prefix, query, ...body })).items;
  const keys = async (...args: Parameters<typeof search>) => (await search(...args)).map(({ key }) => key);

  it("returns the most similar items first, by the most similar of their texts", async () => {
    await put(["a"], "cat", { title: "cat" });
    await put(["a"], "both", { title: "cat dog" });
    await put(["a", "sub"], "parts", { parts: [{ text: "car" }, { text: "dog dog dog" }, { other: "cat" }] });
    await put(["ab"], "outside", { title: "dog" });
    await put(["a"], "hidden", { title: "dog" }, { index: false });
    await put(["a"], "own path", { title: "dog", deep: { list: ["car", "cat"] } }, { index: ["deep.list[-1]"] });
    const found = await search(["a"], "dog");
    expect(found.map(({ key, score }) => [key, Math.round(score * 100)])).toEqual([
      ["parts", 100],
      ["both", 71],
      ["cat", 0],
      ["own path", 0],
    ]);
    expect(found[0]).toMatchObject({ namespace: ["a", "sub"], value: { parts: expect.any(Array) } });
    expect(await keys(["a"], "dog", { limit: 1, offset: 1 })).toEqual(["both"]);
    expect(await keys([], "dog", { filter: { title: { $gte: "cat", $ne: "dog" } } })).toEqual(["both", "cat"]);
  });

  it("knows only the current texts", async () => {
    await put(["b"], "changing", { title: "cat" });
    await put(["b"], "constant", { title: "cat dog" });
    expect(await keys(["b"], "cat")).toEqual(["changing", "constant"]);
    await put(["b"], "changing", { title: "car" });
    expect(await keys(["b"], "cat")).toEqual(["constant", "changing"]);
    await put(["b"], "changing", { title: "car" }, { ttl: 0.000_001 });
    await api.call("DELETE", "/store/items", { namespace: ["b"], key: "constant" });
    await expect.poll(() => keys(["b"], "cat")).toEqual([]);
    const storage = openOn(api.service.database);
    const rows = sql`select * from store_vectors where namespace = 'b.'`.compile(storage.read.k);
    await expect.poll(() => storage.read.all(rows)).toEqual([]);
    await storage.close();
  });

  it("finds items beyond many that a filter excludes", async () => {
    const puts = Array.from({ length: 150 }, (_, n) => put(["c"], `k${n}`, { title: "cat", n, last: n === 149 }));
    await Promise.all(puts);
    expect(await keys(["c"], "cat", { filter: { last: true } })).toEqual(["k149"]);
    expect(await keys(["c"], "cat", { limit: 1_000 })).toHaveLength(150);
  });

  it("includes what a run has stored", async () => {
    const calls = [
      ["put", ["d"], "k", { title: "dog" }],
      ["search", ["d"], { query: "a dog" }],
    ];
    const { results } = await api.post("/runs/wait", { assistant_id: "store", input: { calls } });
    expect(results[1]).toMatchObject([{ key: "k", score: 1 }]);
    expect(await keys(["d"], "dog")).toEqual(["k"]);
  });

  it.each<[string, object, string]>([
    ["a function that fails", { value: { title: "explode" } }, "RangeError: the model is not available"],
    ["a vector of another length", { value: { title: "short" } }, "3 numbers"],
    ["a path that is none", { value: {}, index: ["{a,b}"] }, "path"],
    ["too many texts", { value: { list: Array(1_001).fill(1) }, index: ["list[*]"] }, "1001 texts"],
  ])("refuses %s, and stores nothing", async (_, body, reason) => {
    const answer = await api.send("PUT", "/store/items", { namespace: ["e"], key: "k", ...body });
    expect([answer.status, answer.body.detail]).toEqual([422, expect.stringContaining(reason)]);
    expect(await api.get("/store/items?namespace=e&key=k")).toBeNull();
  });
}
