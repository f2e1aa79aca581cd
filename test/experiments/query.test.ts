import { afterAll, beforeAll, describe } from "vitest";
import { databases } from "../support/databases.ts";
import { startService, type TestService } from "../support/service.ts";
import { comparisonScenarios } from "./query/comparison.ts";
import { datasetScenarios } from "./query/datasets.ts";
import { deletionScenarios } from "./query/deletion.ts";
import { exampleScenarios } from "./query/examples.ts";
import { feedbackScenarios } from "./query/feedback.ts";
import { runScenarios } from "./query/runs.ts";
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
  exampleScenarios(current);
  runScenarios(current);
  feedbackScenarios(current);
  comparisonScenarios(current);
  deletionScenarios(current);
});
