import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startService, type TestService } from "../support/service.ts";
import { type Called, CLIENTS, callJavaScript, callsOf, publicMethods } from "./agent-server-methods/javascript.ts";
import { methodsProject } from "./agent-server-methods/project.ts";
import { methodOf, outcomesOf, readTables } from "./methods/outcomes.ts";
import { fieldsNotInTable } from "./methods/sent-fields.ts";

const tables = readTables("agent_server");

describe("the methods of the official JavaScript clients of the agent server", () => {
  const project = methodsProject();
  let service: TestService;
  let called: Called;
  let document: unknown;
  beforeAll(async () => {
    service = await startService({ database: "sqlite", config: project.config });
    called = await callJavaScript(await service.listen());
    document = (await service.request("GET", "/openapi.json")).body;
  });
  afterAll(async () => {
    await service.stop();
    project.drop();
  });

  it("exist for each call of the tests", () => {
    const names = Object.keys(CLIENTS);
    const methods = new Set(names.flatMap(publicMethods));
    const called = names.flatMap((name) => Object.keys(CLIENTS[name]?.calls() ?? {}).map(methodOf));
    expect(called.filter((method) => !methods.has(method))).toEqual([]);
  });

  describe.each(Object.keys(CLIENTS))("%s", (name) => {
    const table = tables[name] ?? { client: "", methods: {} };

    it("are those of the version in the table", () => {
      expect(table.client.split(/[ ,]/)).toContain(CLIENTS[name]?.version);
    });

    it("are all called", () => {
      expect([...new Set(Object.keys(callsOf(name)).map(methodOf))].sort()).toEqual(publicMethods(name).sort());
    });

    it("do what the table says; node test/docs/agent-server-methods.ts updates it", () => {
      expect(outcomesOf(called.results[name] ?? {}, table)).toEqual(table.methods);
    });

    it("send no field that is ignored, except those that the table names", () => {
      expect(fieldsNotInTable(called.sent[name] ?? {}, document, table)).toEqual([]);
    });
  });
});
