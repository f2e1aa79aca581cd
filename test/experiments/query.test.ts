import { afterAll, beforeAll, describe } from "vitest";
import { databases } from "../support/databases.ts";
import { startService, type TestService } from "../support/service.ts";
import { datasetScenarios } from "./query/datasets.ts";
import { filterScenarios } from "./query/filters.ts";
import { sessionScenarios } from "./query/sessions.ts";

describe.each(databases)("querying experiments on %s", (database) => {
  let service: TestService;
  beforeAll(async () => {
    service = await startService({ database, config: "examples/langgraph.json" });
  });
  afterAll(() => service.stop());

  const current = () => service;
  sessionScenarios(current);
  datasetScenarios(current);
  filterScenarios(current);
});
