import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startService, type TestService } from "../support/service.ts";
import { CALLS, callJavaScript, publicMethods } from "./langsmith-methods/javascript.ts";
import { type CallResults, outcomesOf, readTables } from "./methods/outcomes.ts";

const { javascript } = readTables("langsmith");
const langsmith = JSON.parse(readFileSync("node_modules/langsmith/package.json", "utf8")) as { version: string };

describe("the methods of the official JavaScript client", () => {
  let service: TestService;
  let results: CallResults;
  beforeAll(async () => {
    service = await startService({ database: "sqlite", config: "examples/langgraph.json" });
    results = await callJavaScript(await service.listen());
  });
  afterAll(() => service.stop());

  it("are those of the version in the table", () => {
    expect(javascript?.client).toContain(` ${langsmith.version},`);
  });

  it("are all called", () => {
    expect(Object.keys(CALLS).sort()).toEqual(publicMethods().sort());
  });

  it("do what the table says; node test/docs/langsmith-methods.ts updates it", () => {
    expect(outcomesOf(results, javascript ?? { methods: {} })).toEqual(javascript?.methods);
  });
});
