import { once } from "node:events";
import { request, type ServerResponse } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readConfig } from "../../../src/config/config.ts";
import { startService, type TestService } from "../../support/service.ts";
import { Instance } from "./instance.ts";
import { readAll } from "./world.ts";

const config = "test/graphs/scenarios/langgraph.json";
const GRACE_S = 2;

describe("the whole service", () => {
  let service: TestService;
  let instance: Instance;
  const slow = Promise.withResolvers<ServerResponse>();
  let url: string;
  let custom_url: string;
  beforeAll(async () => {
    const env = {
      THREADMILL_DEPLOYMENTS_DOMAIN: "Agents.example.com",
      THREADMILL_PUBLIC_URL: "https://threadmill.example.com/base",
      MOUNT_PREFIX: "/base",
      BG_JOB_SHUTDOWN_GRACE_PERIOD_SECS: String(GRACE_S),
    };
    service = await startService({ database: "sqlite", config, env });
    instance = await Instance.start("mine", (incoming, response) => {
      if (incoming.url === "/stream") response.writeHead(200, { "content-type": "text/event-stream" }).write("begun");
      else if (incoming.url === "/slow") slow.resolve(response);
      else response.end("mine");
    });
    url = await service.listen();
    const body = { name: "My Agent", source: "internal_source", source_config: {}, source_revision_config: {} };
    const made = await service.request("POST", "/base/v2/deployments", body);
    service.threadmill.router.activate(made.body.id, [instance.upstream]);
    custom_url = made.body.source_config.custom_url;
  });
  afterAll(() => instance.stop());

  const open = async (path: string, host = "localhost") => {
    const sent = request(new URL(path, url), { headers: { host }, agent: false });
    sent.end();
    const [answer] = await once(sent, "response");
    return answer;
  };
  const send = async (path: string, host?: string) => readAll(await open(path, host));

  it("leads the path of custom_url, and the host names, to the deployment", async () => {
    expect(custom_url).toBe("https://threadmill.example.com/base/deployments/my-agent");
    expect((await send("/base/deployments/my-agent/x")).text).toBe("mine");
    expect(instance.last.headers).toMatchObject({
      "x-forwarded-proto": "https",
      "x-forwarded-prefix": "/base/deployments/my-agent",
    });
    for (const host of ["my-agent.localhost", "my-agent.agents.example.com"])
      expect([host, (await send("/x", host)).text]).toEqual([host, "mine"]);
  });

  it("answers everything else as before", async () => {
    expect((await send("/base/ok")).body).toEqual({ ok: true });
    expect((await send("/base/ok", "other.localhost")).body).toEqual({ ok: true });
    expect((await send("/base/ok", "agents.example.com")).status).toBe(403);
    expect((await send("/base/deployments")).status).toBe(404);
  });

  it("does not route to a deleted deployment", async () => {
    const body = { name: "gone", source: "internal_source", source_config: {}, source_revision_config: {} };
    const { id } = (await service.request("POST", "/base/v2/deployments", body)).body;
    expect((await send("/base/deployments/gone/ok")).status).toBe(503);
    await service.request("DELETE", `/base/v2/deployments/${id}`);
    // Which hints make known; this asks until it is.
    while ((await send("/base/deployments/gone/ok")).status !== 404);
  });

  it("lets requests of deployments end when it stops, and aborts a stream that does not end within the grace period", async () => {
    const stream = await open("/base/deployments/my-agent/stream");
    await once(stream, "data");
    const broken = new Promise((resolve) => stream.once("close", resolve));
    stream.on("error", () => undefined).resume();
    const answer = send("/base/deployments/my-agent/slow");
    const response = await slow.promise;
    const stopping = service.stop();
    // It takes no more connections: it is stopping.
    while (
      await fetch(`${url}/ok`, { headers: { connection: "close" } }).then(
        () => true,
        () => false,
      )
    );
    // No event shows that all other parts have stopped, which would end the request without a grace period.
    await pause(GRACE_S * 500);
    response.end("at last");

    expect((await answer).text).toBe("at last");
    await Promise.all([stopping, broken]);
    expect(stream.complete).toBe(false);
  });

  it("does not start with an invalid domain", () => {
    for (const domain of ["https://agents.example.com", "agents.example.com:443", "agents .com"])
      expect(() => readConfig("dev", { config }, { THREADMILL_DEPLOYMENTS_DOMAIN: domain })).toThrow(
        "THREADMILL_DEPLOYMENTS_DOMAIN must be a host name",
      );
  });
});
