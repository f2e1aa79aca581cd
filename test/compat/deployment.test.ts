import { Client } from "@langchain/langgraph-sdk";
import { Client as Client2 } from "langgraph-sdk-2";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startService, type TestService } from "../support/service.ts";
import { assistantScenarios } from "./js/assistants.ts";
import { openBreakingProxy } from "./js/breaking-proxy.ts";
import { cancelScenarios } from "./js/cancel.ts";
import { interruptScenarios } from "./js/interrupts.ts";
import { runScenarios } from "./js/runs.ts";
import { stateScenarios } from "./js/state.ts";
import { statelessScenarios } from "./js/stateless.ts";
import { streamScenarios } from "./js/streams.ts";
import { gather } from "./js/support.ts";
import { threadScenarios } from "./js/threads.ts";

const clients = [
  ["1.15.0", Client],
  ["2.0.0", Client2 as unknown as typeof Client],
] as const;

const KEY = "key-of-the-caller-0123456789abcdef";
const INSTANCE_KEY = "key-of-the-instance-0123456789abcdef";
const CONFIG = "test/graphs/compat/langgraph.json";

describe("an agent server behind the router", () => {
  let service: TestService;
  let instance: TestService;
  let url: string;
  let deployment: string;
  beforeAll(async () => {
    service = await startService({ database: "sqlite", config: CONFIG, env: { API_KEYS: KEY } });
    instance = await startService({ database: "sqlite", config: CONFIG, env: { API_KEYS: INSTANCE_KEY } });
    url = await service.listen();
    const body = { name: "My agent", source: "internal_source", source_config: {}, source_revision_config: {} };
    const made = await service.request("POST", "/v2/deployments", body, { "X-Api-Key": KEY, Host: new URL(url).host });
    const address = await instance.listen();
    service.threadmill.router.activate(made.body.id, [{ instance_id: "one", address, api_key: INSTANCE_KEY }]);
    deployment = `/deployments/${made.body.source_config.custom_url.split("/deployments/")[1]}`;
  });
  afterAll(() => Promise.all([service.stop(), instance.stop()]));

  describe.each(clients)("for version %s of the official JavaScript client", (_version, ClientOfVersion) => {
    const client = () => new ClientOfVersion({ apiUrl: url + deployment, apiKey: KEY });
    assistantScenarios(client);
    threadScenarios(client);
    runScenarios(client);
    streamScenarios(client);
    interruptScenarios(client);
    cancelScenarios(client);
    stateScenarios(client);
    statelessScenarios(client);

    it("loses no event when a connection breaks: the client reconnects by the Location header", async () => {
      const proxy = await openBreakingProxy(url + deployment, "id: 3\n\n");
      const throughBreak = new ClientOfVersion({ apiUrl: proxy.url, apiKey: KEY });
      const { thread_id } = await client().threads.create();
      const research = { input: { question: "How do bees find food?" }, streamMode: ["custom", "updates"] as const };
      const events = await gather(throughBreak.runs.stream(thread_id, "research", research as never));
      expect(proxy.broken()).toBe(1);
      const run_id = events[0]?.data.run_id as string;
      expect(events).toEqual(await gather(client().runs.joinStream(thread_id, run_id, { lastEventId: "-1" })));
      expect(events.length).toBeGreaterThan(10);
      await proxy.close();
    });

    it("refuses requests without a key, and requests with the key of the instance", async () => {
      for (const apiKey of ["", INSTANCE_KEY]) {
        const stranger = new ClientOfVersion({ apiUrl: url + deployment, apiKey, callerOptions: { maxRetries: 0 } });
        await expect(stranger.threads.create()).rejects.toThrow("401");
      }
    });
  });
});
