import { Client } from "langsmith";
import { afterAll, beforeAll, describe } from "vitest";
import { databases } from "../support/databases.ts";
import { startService, type TestService } from "../support/service.ts";
import { comparativeScenarios } from "./langsmith/comparative.ts";
import { datasetScenarios } from "./langsmith/datasets.ts";
import { exampleScenarios } from "./langsmith/examples.ts";
import { feedbackScenarios } from "./langsmith/feedback.ts";
import { projectScenarios } from "./langsmith/projects.ts";
import { runScenarios } from "./langsmith/runs.ts";
import type { Target } from "./langsmith/support.ts";
import { version2Scenarios } from "./langsmith/v2.ts";

/** Addresses that users give the client: it takes them as they are. */
const PREFIXES = ["", "/api/v1"];

const WEB_URL = "https://web.example";

describe.each(databases)("the official client of experiments against %s", (database) => {
  let service: TestService;
  let url: string;
  beforeAll(async () => {
    service = await startService({ database, config: "examples/langgraph.json" });
    url = await service.listen();
  });
  afterAll(() => service.stop());

  describe.each(PREFIXES)('with the address and "%s"', (prefix) => {
    let client: Client;
    beforeAll(() => {
      client = new Client({ apiUrl: `${url}${prefix}`, apiKey: "any", webUrl: WEB_URL });
    });
    const target = (): Target => ({ client, apiUrl: `${url}${prefix}`, webUrl: WEB_URL });
    projectScenarios(target);
    datasetScenarios(target);
    exampleScenarios(target);
    runScenarios(target);
    feedbackScenarios(target);
    comparativeScenarios(target);
    version2Scenarios(target);
  });
});
