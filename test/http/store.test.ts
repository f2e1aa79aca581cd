import { sql } from "kysely";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import { openOn } from "../support/storage.ts";
import { until } from "../support/until.ts";
import { ADMIN, closedService, newCaller, newWorkspace } from "./callers.ts";
import { Scenario, type Wire } from "./scenario.ts";

describe.each(databases)("the store on %s", (database) => {
  let api: Scenario;
  beforeAll(async () => {
    api = await Scenario.start(database, {}, { config: "test/graphs/store/langgraph.json" });
  });
  afterAll(() => api.stop());

  const put = (namespace: string[], key: string, value: object, options: object = {}) =>
    api.call("PUT", "/store/items", { namespace, key, value, ...options });
  const get = (namespace: string[], key: string, query = "") =>
    api.get(`/store/items?namespace=${encodeURIComponent(namespace.join("."))}&key=${encodeURIComponent(key)}${query}`);
  const search = async (namespace_prefix: string[], body: object = {}): Promise<Wire[]> =>
    (await api.post("/store/items/search", { namespace_prefix, ...body })).items;
  const keys = async (namespace_prefix: string[], body: object = {}) =>
    (await search(namespace_prefix, body)).map(({ key }) => key);
  const namespaces = async (body: object): Promise<string[][]> =>
    (await api.post("/store/namespaces", body)).namespaces;
  const rows = async (key: string): Promise<Wire[]> => {
    const storage = openOn(api.service.database);
    const found = await storage.read.all(sql`select * from store_items where key = ${key}`.compile(storage.read.k));
    await storage.close();
    return found;
  };
  const setExpiry = async (key: string, in_ms: number) => {
    const storage = openOn(api.service.database);
    const change = sql`update store_items set expires_at = now_ms() + ${sql.lit(in_ms)} where key = ${key}`;
    await storage.write((tx) => tx.run(change.compile(tx.k)));
    await storage.close();
  };

  it("has items with the fields of the official record", async () => {
    const value = { text: "a\0b é 😀", list: [1, { deep: null }], "": 1, 'q"': true };
    expect(await put(["users", "ada"], "k/1", value)).toBeUndefined();
    const item = await get(["users", "ada"], "k/1");
    expect(item).toEqual({
      namespace: ["users", "ada"],
      key: "k/1",
      value: { ...value, text: "a\ufffdb é 😀" },
      created_at: expect.stringMatching(/^\d{4}-.*\+00:00$/),
      updated_at: expect.stringMatching(/^\d{4}-.*\+00:00$/),
    });
    await put(["users", "ada"], "k/1", { new: 1 });
    expect(await get(["users", "ada"], "k/1")).toMatchObject({ value: { new: 1 }, created_at: item.created_at });
    expect(await api.get("/store/items?namespace=users&namespace=ada&key=k/1")).toMatchObject({ value: { new: 1 } });
    expect(await api.get(`/store/items?namespace=${encodeURIComponent('["a\\u0000"]')}&key=k`)).toBeNull();
    await api.call("DELETE", "/store/items", { namespace: ["users", "ada"], key: "k/1" });
    expect(await get(["users", "ada"], "k/1")).toBeNull();
    await api.call("DELETE", "/store/items", { namespace: ["users", "ada"], key: "k/1" });
  });

  it("finds items by prefix, whole labels at a time, the newest first", async () => {
    for (const [n, namespace] of [["p", "a"], ["p", "a", "x"], ["p", "ab"], ["p", "a%"], ["p"], ["p_"]].entries())
      await put(namespace, `k${n}`, { n });
    expect((await keys(["p", "a"])).toSorted()).toEqual(["k0", "k1"]);
    expect((await keys(["p"])).toSorted()).toEqual(["k0", "k1", "k2", "k3", "k4"]);
    await setExpiry("k0", 3_600_000);
    await put(["p", "a"], "k0", { n: 0 });
    expect((await keys(["p"], { limit: 5 }))[0]).toBe("k0");
    expect(await keys(["p"], { limit: 2, offset: 4 })).toHaveLength(1);
    expect(await keys([], { limit: 1 })).toEqual(["k0"]);
  });

  it("compares fields of their values", async () => {
    const values = { one: 1, two: 2.5, text: "b", later: "é", yes: true, nothing: null, list: [1], missing: undefined };
    for (const [key, f] of Object.entries(values)) await put(["f"], key, { f, "odd key.[0]": key });
    const matching = async (f: unknown) => (await keys(["f"], { filter: { f }, limit: 100 })).toSorted();
    expect(await matching(1)).toEqual(["one"]);
    expect(await matching("1")).toEqual([]);
    expect(await matching({ $eq: 2.5 })).toEqual(["two"]);
    expect(await matching("b")).toEqual(["text"]);
    expect(await matching(true)).toEqual(["yes"]);
    expect(await matching(null)).toEqual(["nothing"]);
    expect(await matching({ $ne: 1 })).toEqual(
      Object.keys(values)
        .filter((key) => key !== "one")
        .toSorted(),
    );
    expect(await matching({ $gt: 1 })).toEqual(["two"]);
    expect(await matching({ $gte: 1, $lt: 2.5 })).toEqual(["one"]);
    expect(await matching({ $lte: 2.5 })).toEqual(["one", "two"]);
    expect(await matching({ $gt: "b" })).toEqual(["later"]);
    expect(await keys(["f"], { filter: { "odd key.[0]": "two", f: { $gt: 0 } } })).toEqual(["two"]);
  });

  it("lists namespaces by prefix, suffix and depth", async () => {
    for (const namespace of [
      ["n", "a", "v1"],
      ["n", "b", "v1"],
      ["n", "b", "v2"],
      ["n", "b", "(x)*"],
      ["m", "v1"],
    ])
      await put(namespace, "k", {});
    const all = [
      ["n", "a", "v1"],
      ["n", "b", "(x)*"],
      ["n", "b", "v1"],
      ["n", "b", "v2"],
    ]; // prettier-ignore
    expect(await namespaces({ prefix: ["n"] })).toEqual(all);
    expect(await namespaces({ prefix: ["n"], limit: 2, offset: 1 })).toEqual(all.slice(1, 3));
    expect(await namespaces({ prefix: ["n", "*", "v1"] })).toEqual([all[0], all[2]]);
    expect(await namespaces({ prefix: ["n"], suffix: ["b", "*"] })).toEqual(all.slice(1));
    expect(await namespaces({ suffix: ["v1"] })).toEqual([["m", "v1"], all[0], all[2]]);
    expect(await namespaces({ prefix: ["n"], suffix: ["(x)*"] })).toEqual([all[1]]);
    expect(await namespaces({ prefix: ["n"], max_depth: 2 })).toEqual([
      ["n", "a"],
      ["n", "b"],
    ]);
  });

  it("hides items from the end of their time to live on, and then deletes them", async () => {
    await put(["t"], "short", { a: 1 }, { ttl: 0.000_001 });
    expect(await until("it has expired", async () => (await get(["t"], "short")) === null)).toBe(true);
    expect(await keys(["t"])).toEqual([]);
    expect(await namespaces({ prefix: ["t"] })).toEqual([]);
    await until("it is deleted", async () => (await rows("short")).length === 0);
  });

  it("starts the time to live again when an item is read or searched", async () => {
    const minutes_left = async () => ((await rows("ttl"))[0].expires_at - Date.now()) / 60_000;
    await put(["r"], "ttl", { a: 1 }, { ttl: 60 });
    await setExpiry("ttl", 60_000);
    await get(["r"], "ttl", "&refresh_ttl=false");
    await search(["r"], { refresh_ttl: false });
    expect(await minutes_left()).toBeLessThan(2);
    await search(["r"]);
    expect(await minutes_left()).toBeGreaterThan(50);
    await setExpiry("ttl", 60_000);
    await get(["r"], "ttl");
    expect(await minutes_left()).toBeGreaterThan(50);
    await put(["r"], "ttl", { a: 1 }, { ttl: null });
    expect((await rows("ttl"))[0].expires_at).toBeNull();
  });

  const longText = "x".repeat(1_300);
  it.each<[string, object, string]>([
    ["no namespace", { namespace: [] }, "at least one label"],
    ["an empty label", { namespace: [""] }, "must not be empty"],
    ["a period in a label", { namespace: ["a.b"] }, "period"],
    ["a long namespace", { namespace: [longText] }, "1200 bytes"],
    ["a long key", { key: longText }, "1200 bytes"],
    ["a value that is no object", { value: [1] }, "value"],
    ["no time to live", { ttl: 0 }, "ttl"],
    ["an endless time to live", { ttl: 1e300 }, "ttl"],
  ])("refuses %s", async (_, body, reason) => {
    const answer = await api.send("PUT", "/store/items", { namespace: ["a"], key: "k", value: {}, ...body });
    expect([answer.status, answer.body.detail]).toEqual([422, expect.stringContaining(reason)]);
  });

  it.each<[string, object, string]>([
    ["an unknown operator", { f: { $like: "a" } }, "$gte"],
    ["a list", { f: [1] }, "$gte"],
    ["an order of booleans", { f: { $gt: true } }, "filter.f"],
    ["no operator", { f: {} }, "filter.f"],
    ["a quote in a field", { 'a"': 1 }, "quotes"],
  ])("refuses to filter by %s", async (_, filter, reason) => {
    const answer = await api.send("POST", "/store/items/search", { namespace_prefix: [], filter });
    expect([answer.status, answer.body.detail]).toEqual([422, expect.stringContaining(reason)]);
  });
});

describe.each(databases)("the store of a workspace on %s", (database) => {
  let api: Scenario;
  beforeAll(async () => {
    api = await closedService(database);
  });
  afterAll(() => api.stop());

  it("is not that of another workspace", async () => {
    const [own, stranger] = await Promise.all(
      [1, 2].map(async () => newCaller(api, { tenant_id: await newWorkspace(api), user_id: "eve" })),
    );
    const item = { namespace: ["a"], key: "k" };
    await api.call("PUT", "/store/items", { ...item, value: { of: "own" } }, own);
    expect(await api.call("GET", "/store/items?namespace=a&key=k", undefined, stranger)).toBeNull();
    expect(await api.call("POST", "/store/items/search", {}, stranger)).toEqual({ items: [] });
    expect(await api.call("POST", "/store/namespaces", {}, stranger)).toEqual({ namespaces: [] });
    await api.call("PUT", "/store/items", { ...item, value: { of: "stranger" } }, stranger);
    await api.call("DELETE", "/store/items", item, stranger);
    expect(await api.call("GET", "/store/items?namespace=a&key=k", undefined, own)).toMatchObject({
      value: { of: "own" },
    });
    expect((await api.send("GET", "/store/items?namespace=a&key=k", undefined, ADMIN)).status).toBe(200);
  });
});
