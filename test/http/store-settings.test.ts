import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { readConfig } from "../../src/config/config.ts";
import { databases } from "../support/databases.ts";
import { Scenario } from "./scenario.ts";

const folder = mkdtempSync(join(tmpdir(), "threadmill-store-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const graphs = { chain: `${resolve(import.meta.dirname, "../graphs/scenarios/chain.ts")}:chain` };
const embed = `${resolve(import.meta.dirname, "../graphs/store/embed.ts")}:embed`;

function projectWith(fields: object): string {
  const file = join(folder, "langgraph.json");
  writeFileSync(file, JSON.stringify({ graphs, ...fields }));
  return file;
}

describe("store of langgraph.json", () => {
  it("accepts fractions of minutes", () => {
    const ttl = { default_ttl: 0.5, sweep_interval_minutes: 0.01, refresh_on_read: false };
    const index = { embed, dims: 3 };
    const { store, ignored_fields } = readConfig("serve", { config: projectWith({ store: { ttl, index } }) }, {});
    expect(ignored_fields).toEqual([]);
    expect(store).toEqual({
      ttl: { default_ms: 30_000, sweep_interval_ms: 600, refresh_on_read: false },
      index: { embed: { file: embed.replace(/:embed$/, ""), export_name: "embed" }, dims: 3, fields: ["$"] },
    });
  });

  it.each<[string, unknown, string]>([
    ["an unknown provider", { index: { embed: "nobody:text-embedding", dims: 3 } }, "mistralai, ollama, openai"],
    ["a path without an export", { index: { embed: "./embed.ts", dims: 3 } }, "./file.ts:exportName"],
    ["a path that is no export", { index: { embed: "./embed.ts:a b", dims: 3 } }, "./file.ts:exportName"],
    ["no number of dimensions", { index: { embed: "./a.ts:b" } }, "store.index.dims"],
    ["no time to live", { ttl: { default_ttl: 0 } }, "store.ttl.default_ttl"],
    ["a text as interval", { ttl: { sweep_interval_minutes: "5" } }, "store.ttl.sweep_interval_minutes"],
    ["a text as a switch", { ttl: { refresh_on_read: "no" } }, "store.ttl.refresh_on_read"],
  ])("refuses %s", (_, store, reason) => {
    expect(() => readConfig("serve", { config: projectWith({ store }) }, {})).toThrow(reason);
  });
});

describe.each(databases)("on %s", (database) => {
  it("http.disable_store removes the routes", async () => {
    const api = await Scenario.start(database, {}, { config: projectWith({ http: { disable_store: true } }) });
    expect(await api.send("GET", "/store/items?namespace=a&key=k")).toMatchObject({ status: 404 });
    await api.stop();
  });

  it("writes without a time to live have that of the project", async () => {
    const config = projectWith({ store: { ttl: { default_ttl: 0.000_01, refresh_on_read: false } } });
    const api = await Scenario.start(database, {}, { config });
    const put = (key: string, body: object) =>
      api.call("PUT", "/store/items", { namespace: ["a"], key, value: {}, ...body });
    await put("default", {});
    await put("never", { ttl: null });
    await expect.poll(() => api.get("/store/items?namespace=a&key=default")).toBeNull();
    expect(await api.get("/store/items?namespace=a&key=never")).not.toBeNull();
    await api.stop();
  });
});
