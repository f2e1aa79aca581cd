import { Client } from "@langchain/langgraph-sdk";
import { Client as Client2 } from "langgraph-sdk-2";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import { startService, type TestService } from "../support/service.ts";
import { openBreakingProxy } from "./js/breaking-proxy.ts";
import { type ClientEvent, gather } from "./js/support.ts";

const clients = [
  ["1.15.0", Client],
  ["2.0.0", Client2 as unknown as typeof Client],
] as const;

const BEES = {
  input: { question: "How do bees find food?" },
  streamMode: ["custom", "updates"] as const,
  streamSubgraphs: true,
};

// The clients wait one to two seconds before they come back, so these tests run side by side.
describe.each(databases)("a connection that breaks, against %s", (database) => {
  describe.each(["", "/behind/a/prefix"])("under the path %o", (prefix) => {
    let service: TestService;
    let url: string;
    beforeAll(async () => {
      const config = "test/graphs/compat/langgraph.json";
      service = await startService({ inline: false, database, config, env: { MOUNT_PREFIX: prefix } });
      url = await service.listen();
    });
    afterAll(() => service.stop());

    describe.each(clients)("in version %s of the official client", (_version, ClientOfVersion) => {
      const direct = () => new ClientOfVersion({ apiUrl: url });

      /** What the client hands out when its connection breaks after the third event. */
      async function throughBreak(read: (client: Client) => AsyncIterable<unknown>): Promise<ClientEvent[]> {
        const proxy = await openBreakingProxy(url, "id: 3\n\n");
        try {
          const events = await gather(read(new ClientOfVersion({ apiUrl: proxy.url })));
          expect(proxy.broken()).toBe(1);
          return events;
        } finally {
          await proxy.close();
        }
      }

      it.concurrent("loses no event for the reader of a new run", async () => {
        const { thread_id } = await direct().threads.create();
        const events = await throughBreak(({ runs }) => runs.stream(thread_id, "research", BEES as never));
        const run_id = events[0]?.data.run_id as string;
        expect(events).toEqual(await gather(direct().runs.joinStream(thread_id, run_id, { lastEventId: "-1" })));
        expect(events.length).toBeGreaterThan(10);
      });

      it.concurrent("loses no event for the reader of a stateless run", async () => {
        const events = await throughBreak(({ runs }) => runs.stream(null, "research", BEES as never));
        const run_id = events[0]?.data.run_id as string;
        expect(events).toEqual(await gather(direct().runs.joinStream(null, run_id, { lastEventId: "-1" })));
      });

      it.concurrent("loses no event for a reader that has joined", async () => {
        const { thread_id } = await direct().threads.create();
        const { run_id } = await direct().runs.create(thread_id, "research", BEES as never);
        const joined = await throughBreak(({ runs }) => runs.joinStream(thread_id, run_id, { lastEventId: "-1" }));
        expect(joined).toEqual(await gather(direct().runs.joinStream(thread_id, run_id, { lastEventId: "-1" })));
      });
    });
  });
});
