import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import type { InstanceSpec } from "../../src/control-plane/drivers/driver.ts";
import { Reconciler } from "../../src/control-plane/reconcile/reconciler.ts";
import { checkReadyOverHttp } from "../../src/control-plane/rollout/instance-client.ts";
import { rolloutDeadline } from "../../src/control-plane/rollout/rollout-step.ts";
import { realWait, systemClock } from "../../src/platform/lib/clock.ts";
import { MemoryDriver } from "./memory-driver.ts";
import { World } from "./world.ts";

const servers: Server[] = [];

async function serve(answer: RequestListener): Promise<string> {
  const server = createServer(answer);
  servers.push(server);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

describe("/ok of an instance", () => {
  const ask = async (address: string) => (await checkReadyOverHttp(10_000)(address)).failure;

  it("succeeds with status 200", async () => {
    const address = await serve((request, response) => response.writeHead(request.url === "/ok" ? 200 : 404).end("{}"));
    expect(await ask(address)).toBeUndefined();
  });

  it.each([503, 404, 302, 204])("fails with status %i", async (status) => {
    const address = await serve((_, response) => response.writeHead(status, { location: "/elsewhere" }).end());
    expect(await ask(address)).toBe(`returned status ${status}`);
  });

  it("fails when the response takes too long", async () => {
    const address = await serve(() => undefined);
    expect((await checkReadyOverHttp(200)(address)).failure).toBe("did not respond within 0.2 s");
  });

  it("fails when no process listens", async () => {
    const address = await serve(() => undefined);
    servers[0]?.close();
    expect(await ask(address)).toBe("could not be reached");
  });
});

describe("a rollout that does not become ready", () => {
  const deadline = { deadline_ms: 300_000, progress_ms: 60_000 };

  it.each([
    ["at the deadline, without progress", 0, 300_000],
    ["at the deadline, when the last progress is long ago", 100_000, 300_000],
    ["a minute after the last progress", 290_000, 350_000],
    ["after four deadlines, whatever there is of progress", 1_190_000, 1_200_000],
  ])("is given up %s", (_, progress, end) => {
    const began_at = 1_800_000_000_000;
    expect(rolloutDeadline({ began_at, progress_at: began_at + progress }, deadline) - began_at).toBe(end);
  });

  it("is not kept for longer than its deadline by a single sign of life, when the deadline is short", () => {
    const short = { deadline_ms: 2_000, progress_ms: 60_000 };
    expect(rolloutDeadline({ began_at: 0, progress_at: 1_000 }, short)).toBe(3_000);
  });
});

describe("a reconciler in real time", () => {
  it("deploys a revision whose instance becomes ready after a while, and reports the failed checks", async () => {
    const world = await World.open("sqlite");
    let asked = 0;
    const address = await serve((_, response) => response.writeHead(++asked > 2 ? 200 : 503).end());
    const driver = new (class extends MemoryDriver {
      override ensure = async (order: InstanceSpec) => ({ ...(await super.ensure(order)), address });
    })();
    const hints = new Set<string | undefined>();
    const deployed = Promise.withResolvers<void>();
    const parts = world.parts(driver);
    world.database.hints.listen("deployment", async ({ deployment_id }) => {
      const revision = (await world.view(deployment_id))?.revisions[0];
      hints.add(revision?.status_message ?? undefined);
      if (revision?.status === "DEPLOYED") deployed.resolve();
    });
    const settings = { ...parts.settings, probe_ms: 5, poll_ms: 1_000 };
    const reconciler = new Reconciler({
      ...parts,
      checkReady: checkReadyOverHttp(2_000),
      activate: async () => undefined,
      clock: systemClock,
      wait: realWait,
      settings,
    });
    reconciler.start();
    await world.deploy("real", "main");
    await deployed.promise;
    expect(asked).toBeGreaterThanOrEqual(5);
    expect([...hints]).toContain("Last readiness check: /ok returned status 503.");
    await reconciler.stop();
    await world.close();
  });
});
