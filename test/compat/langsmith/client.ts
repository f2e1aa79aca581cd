import { Client } from "langsmith";
import { afterAll, beforeAll, describe } from "vitest";
import { databases } from "../../support/databases.ts";
import { startService, type TestService } from "../../support/service.ts";
import { comparativeScenarios } from "./comparative.ts";
import { datasetContentScenarios } from "./dataset-content.ts";
import { datasetScenarios } from "./datasets.ts";
import { exampleScenarios } from "./examples.ts";
import { feedbackScenarios } from "./feedback.ts";
import { projectScenarios } from "./projects.ts";
import { runScenarios } from "./runs.ts";
import type { Target } from "./support.ts";
import { version2Scenarios } from "./v2.ts";

const WEB_URL = "https://web.example";

/**
 * What the official client may ask of experiments.
 *
 * @param prefix of the address that users give the client, which takes it as it is
 */
export function clientScenarios(prefix: "" | "/api/v1"): void {
  describe.each(databases)(
    `the official client of experiments with the address and "${prefix}" against %s`,
    (database) => {
      let service: TestService;
      let url: string;
      let client: Client;
      beforeAll(async () => {
        service = await startService({ database, config: "examples/langgraph.json" });
        url = await service.listen();
        client = new Client({ apiUrl: `${url}${prefix}`, apiKey: "any", webUrl: WEB_URL });
      });
      afterAll(() => service.stop());

      const target = (): Target => ({ client, apiUrl: `${url}${prefix}`, webUrl: WEB_URL });
      projectScenarios(target);
      datasetScenarios(target);
      datasetContentScenarios(target);
      exampleScenarios(target);
      runScenarios(target);
      feedbackScenarios(target);
      comparativeScenarios(target);
      version2Scenarios(target);
    },
  );
}
