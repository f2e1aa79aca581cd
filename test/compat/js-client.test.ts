import { Client } from "@langchain/langgraph-sdk";
import { Client as Client2 } from "langgraph-sdk-2";
import { afterAll, beforeAll, describe } from "vitest";
import { databases } from "../support/databases.ts";
import { startService, type TestService } from "../support/service.ts";
import { assistantScenarios } from "./js/assistants.ts";
import { cancelScenarios } from "./js/cancel.ts";
import { cronScenarios } from "./js/crons.ts";
import { interruptScenarios } from "./js/interrupts.ts";
import { runScenarios } from "./js/runs.ts";
import { stateScenarios } from "./js/state.ts";
import { statelessScenarios } from "./js/stateless.ts";
import { storeScenarios } from "./js/store.ts";
import { streamScenarios } from "./js/streams.ts";
import { threadProtocolScenarios } from "./js/thread-protocol.ts";
import { threadScenarios } from "./js/threads.ts";
import { webhookScenarios } from "./js/webhooks.ts";

// The newest version that installs, and the one that a plain `npm install` brings. The types of the older one are
// those of the newer, as far as the scenarios go.
const clients = [
  ["1.15.0", Client],
  ["2.0.0", Client2 as unknown as typeof Client],
] as const;

describe.each(databases)("the official JavaScript client against %s", (database) => {
  let service: TestService;
  let url: string;
  beforeAll(async () => {
    service = await startService({ inline: false, database, config: "test/graphs/compat/langgraph.json" });
    url = await service.listen();
  });
  afterAll(() => service.stop());

  describe.each(clients)("in version %s", (_version, ClientOfVersion) => {
    const client = () => new ClientOfVersion({ apiUrl: url });
    assistantScenarios(client);
    threadScenarios(client);
    runScenarios(client);
    streamScenarios(client);
    interruptScenarios(client);
    cancelScenarios(client);
    stateScenarios(client);
    statelessScenarios(client);
    webhookScenarios(client);
    storeScenarios(client);
    // Version 2.0.0 has no streams of threads, and no methods that change crons.
    if (_version !== "1.15.0") return;
    threadProtocolScenarios(client);
    cronScenarios(client);
  });
});
