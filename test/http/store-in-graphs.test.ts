import { existsSync, readFileSync } from "node:fs";
import { sql } from "kysely";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import { openOn } from "../support/storage.ts";
import { until } from "../support/until.ts";
import { closedService, newCaller, newWorkspace } from "./callers.ts";
import { Scenario, type Wire } from "./scenario.ts";

const config = "test/graphs/store/langgraph.json";

describe.each(databases)("the store in graphs on %s", (database) => {
  let api: Scenario;
  beforeAll(async () => {
    api = await Scenario.start(database, {}, { config });
  });
  afterAll(() => api.stop());

  const run = async (...calls: unknown[][]): Promise<Wire> =>
    (await api.post("/runs/wait", { assistant_id: "store", input: { calls } })).results;
  const get = (key: string) => api.get(`/store/items?namespace=g&key=${key}`);
  const start = async (...calls: unknown[][]): Promise<Wire> =>
    api.newRun(await api.newThread(), { assistant_id: "store", input: { calls } });
  const change = async (statement: string) => {
    const storage = openOn(api.service.database);
    await storage.write((tx) => tx.run(sql.raw(statement).compile(tx.k)));
    await storage.close();
  };

  it("contains the items of clients, and the reverse", async () => {
    const value = { text: "a\0b", at: "2026-01-31", list: [{ n: 1 }] };
    const clean = { ...value, text: "a\ufffdb" };
    await api.call("PUT", "/store/items", { namespace: ["g", "x"], key: "client", value: { n: 2 } });
    const results = await run(
      ["put", ["g"], "graph", value],
      ["get", ["g"], "graph"],
      ["get", ["g"], "missing"],
      ["search", ["g"], { filter: { n: { $gt: 1 } } }],
      ["put", ["g"], "dropped", {}],
      ["delete", ["g"], "dropped"],
      ["search", ["g"], { limit: 1, offset: 1 }],
      ["put", ["g\0"], "nul\0", { n: 3 }],
      ["search", ["g\0"], { filter: { n: 3, "\0": { $ne: "\ud800" } } }],
    );
    const item = { namespace: ["g"], key: "graph", value: clean, createdAt: expect.any(String) };
    const found = [expect.objectContaining({ key: "client", namespace: ["g", "x"], value: { n: 2 } })];
    const replaced = [expect.objectContaining({ key: "nul\ufffd", namespace: ["g\ufffd"], value: { n: 3 } })];
    expect(results).toEqual([null, expect.objectContaining(item), null, found, null, null, found, null, replaced]);
    expect(await get("graph")).toMatchObject({ value: clean });
    expect(await get("dropped")).toBeNull();
  });

  it("distinguishes items whose namespaces and keys look alike when joined", async () => {
    await run(["put", ["p"], "q.r", { n: 1 }], ["put", ["p", "q"], "r", { n: 2 }]);
    const valueAt = async (namespace: string, key: string) =>
      (await api.get(`/store/items?namespace=${namespace}&key=${key}`))?.value;
    expect([await valueAt("p", "q.r"), await valueAt("p.q", "r")]).toEqual([{ n: 1 }, { n: 2 }]);
  });

  it("lists namespaces, even in subgraphs", async () => {
    await run(["put", ["l", "a"], "k", {}], ["put", ["l", "b", "c"], "k", {}]);
    const found = [
      ["l", "a"],
      ["l", "b"],
    ]; // prettier-ignore
    expect(await run(["listNamespaces", { prefix: ["l"], maxDepth: 2 }])).toEqual([found, found, found]);
  });

  it("keeps the writes of a node until it ends, and drops them if it is cancelled", async () => {
    const door = api.newDoor();
    const marks = [`${door.path}-1`, `${door.path}-2`] as const;
    const cancelled = await start(["put", ["g"], "cancelled", {}], ["mark", marks[0]], ["wait", "/never"]);
    const waiting = await start(["put", ["g"], "waiting", {}], ["mark", marks[1]], ["wait", door.path]);
    await until("both have written", async () => marks.every((file) => existsSync(file)));
    await api.cancel(cancelled);
    expect(await get("waiting")).toBeNull();
    door.open();
    await api.join(waiting);
    expect(await get("waiting")).not.toBeNull();
    expect(await get("cancelled")).toBeNull();
  });

  it("refuses writes of a run that another process has taken over", async () => {
    const door = api.newDoor();
    const calls = [
      ["wait", door.path],
      ["put", ["g"], "late", {}],
      ["get", ["g"], "late"],
    ];
    const thread_id = await api.newThread();
    const { run_id } = await api.newRun(thread_id, { assistant_id: "stubborn", input: { calls } });
    await until("it runs", async () => (await api.run({ thread_id, run_id })).status === "running");
    await change(`update runs set epoch = epoch + 1, status = 'error' where run_id = '${run_id}'`);
    door.open();
    await until("the write is refused", async () => existsSync(`${door.path}-error`));
    expect(readFileSync(`${door.path}-error`, "utf8")).not.toBe("");
    expect(await get("late")).toBeNull();
  });

  it.each<[string, unknown[], string]>([
    ["a long key", ["put", ["g"], "k".repeat(2_000), {}], "1200 bytes"],
    ["an unknown operator", ["search", ["g"], { filter: { a: { $like: 1 } } }], "$gte"],
  ])("fails a run for %s", async (_, call, reason) => {
    const { __error__ } = await api.post("/runs/wait", { assistant_id: "store", input: { calls: [call] } });
    expect(__error__.message).toContain(reason);
  });
});

it.each(databases)("the store in the graphs of a workspace is not that of another one on %s", async (database) => {
  const api = await closedService(database, {}, { config });
  const callers = await Promise.all(
    [1, 2].map(async () => newCaller(api, { tenant_id: await newWorkspace(api), user_id: "eve" })),
  );
  const results = [];
  for (const [n, caller] of callers.entries()) {
    const calls = [
      ["search", [], {}],
      ["put", ["t"], "k", { n }],
      ["search", [], {}],
    ];
    results.push((await api.call("POST", "/runs/wait", { assistant_id: "store", input: { calls } }, caller)).results);
  }
  for (const [n, [before, , after]] of results.entries()) {
    expect(before).toEqual([]);
    expect(after).toMatchObject([{ value: { n } }]);
  }
  await api.stop();
});

it("the store and an embedding function are in worker threads", async () => {
  const api = await Scenario.start("sqlite", {}, { config: "test/graphs/store/function.json", inline: false });
  const calls = [
    ["put", ["t"], "k", { text: "a dog" }],
    ["search", ["t"], { query: "dog" }],
  ];
  const { results } = await api.post("/runs/wait", { assistant_id: "store", input: { calls } });
  expect(results[1]).toMatchObject([{ value: { text: "a dog" }, score: 1 }]);
  await api.stop();
});
