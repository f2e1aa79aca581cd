import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startService, type TestService } from "../support/service.ts";
import { outcomesOf, readTables } from "./methods/outcomes.ts";
import { callPython } from "./methods/python.ts";
import { pythonEnv } from "./python-env.ts";

const CLIENTS = ["python", "python_async"];

const tables = readTables("langsmith");
const { python } = await pythonEnv();

describe.skipIf(!python)("the methods of the official Python clients", () => {
  let service: TestService;
  let called: Awaited<ReturnType<typeof callPython>>;
  beforeAll(async () => {
    service = await startService({ database: "sqlite", config: "examples/langgraph.json" });
    called = await callPython("langsmith_methods.py", await service.listen());
  }, 150_000);
  afterAll(() => service.stop());

  it.each(CLIENTS)("are those of the version in the table: %s", (client) => {
    const requirements = readFileSync(join(import.meta.dirname, "python/requirements.txt"), "utf8");
    const version = /^langsmith\[pytest\]==(.+)$/m.exec(requirements)?.[1];
    expect(tables[client]?.client).toContain(` ${version},`);
  });

  it.each(CLIENTS)("are all called: %s", (client) => {
    expect(Object.keys(called.results[client] ?? {}).sort()).toEqual(called.names[client]?.sort());
  });

  it.each(CLIENTS)("do what the table says; node test/docs/langsmith-methods.ts updates it: %s", (client) => {
    const table = tables[client] ?? { methods: {} };
    expect(outcomesOf(called.results[client] ?? {}, table)).toEqual(table.methods);
  });
});
