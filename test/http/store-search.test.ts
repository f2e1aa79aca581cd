import { describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import { Scenario } from "./scenario.ts";
import { STORE_CONFIG, searchScenarios } from "./store-search-scenarios.ts";

describe.each(databases)("semantic search on %s", (database) => {
  searchScenarios(() => Scenario.start(database, {}, { config: STORE_CONFIG }));
});

it("a project without an embedding function has no semantic search", async () => {
  const api = await Scenario.start("sqlite");
  for (const [method, path, body] of [
    ["POST", "/store/items/search", { query: "a" }],
    ["PUT", "/store/items", { namespace: ["a"], key: "k", value: {}, index: ["a"] }],
  ] as const) {
    const answer = await api.send(method, path, body);
    expect([answer.status, answer.body.detail]).toEqual([422, expect.stringContaining("store.index")]);
  }
  await api.stop();
});
