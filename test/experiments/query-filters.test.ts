import { afterAll, beforeAll, describe } from "vitest";
import { databases } from "../support/databases.ts";
import { startService, type TestService } from "../support/service.ts";
import { errorScenarios } from "./query/errors.ts";
import { filterScenarios } from "./query/filters.ts";

describe.each(databases)("filters of experiments on %s", (database) => {
  let service: TestService;
  beforeAll(async () => {
    service = await startService({ database, config: "examples/langgraph.json" });
  });
  afterAll(() => service.stop());

  const current = () => service;
  filterScenarios(current);
  errorScenarios(current);
});
