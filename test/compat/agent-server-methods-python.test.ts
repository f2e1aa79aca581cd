import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { rowOf } from "../docs/langgraph-json.ts";
import { startService, type TestService } from "../support/service.ts";
import { methodsProject } from "./agent-server-methods/project.ts";
import { methodOf, outcomesOf, readTables } from "./methods/outcomes.ts";
import { callPython, type PythonCalls } from "./methods/python.ts";
import { fieldsNotInTable } from "./methods/sent-fields.ts";
import { pythonEnv, runScript } from "./python-env.ts";

/** The packages of the clients. */
const CLIENTS = { python: "langgraph-sdk", python_sync: "langgraph-sdk", python_remote_graph: "langgraph" };

const tables = readTables("agent_server");
const { python } = await pythonEnv();

describe.skipIf(!python)("the methods of the official Python clients of the agent server", () => {
  const project = methodsProject();
  let service: TestService;
  let called: PythonCalls;
  let document: unknown;
  beforeAll(async () => {
    service = await startService({ database: "sqlite", config: project.config });
    called = await callPython("agent_server_methods.py", await service.listen());
    document = (await service.request("GET", "/openapi.json")).body;
  }, 150_000);
  afterAll(async () => {
    await service.stop();
    project.drop();
  });

  describe.each(Object.entries(CLIENTS))("%s", (client, name) => {
    const table = tables[client] ?? { client: "", methods: {} };

    it("are those of the version in the table", () => {
      const requirements = readFileSync(join(import.meta.dirname, "python/requirements.txt"), "utf8");
      const version = new RegExp(`^${name}==(.+)$`, "m").exec(requirements)?.[1];
      expect(table.client.split(/[ ,]/)).toContain(version);
    });

    it("are all called", () => {
      const methods = new Set(Object.keys(called.results[client] ?? {}).map(methodOf));
      expect([...methods].sort()).toEqual(called.names[client]?.sort());
    });

    it("do what the table says; node test/docs/agent-server-methods.ts updates it", () => {
      expect(outcomesOf(called.results[client] ?? {}, table)).toEqual(table.methods);
    });

    it("send no field that is ignored, except those that the table names", () => {
      expect(fieldsNotInTable(called.sent[client] ?? {}, document, table)).toEqual([]);
    });
  });
});

describe.skipIf(!python)("the fields of langgraph.json that the official command line knows", () => {
  it("have a row in docs/compatibility.md", async () => {
    const { printed, complaints } = await runScript(python as string, "langgraph_json_fields.py", []);
    expect(complaints).toBe("");
    const fields = JSON.parse(printed) as string[];
    expect(fields.length).toBeGreaterThan(50);
    expect(fields.filter((field) => !rowOf(field))).toEqual([]);
  });
});
