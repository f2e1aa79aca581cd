import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import { authorizeInBrowser, OAuthServer, type TestClient } from "../support/oauth-server.ts";
import { startService, type TestService } from "../support/service.ts";
import { parseSse } from "../support/sse.ts";

const CLIENT = {
  client_id: "threadmill",
  client_secret: "a secret of the examples",
  token_endpoint_auth_method: "client_secret_post",
} as const satisfies TestClient;

describe.each(databases)("the example agents on %s", (database) => {
  let service: TestService;
  let oauth: OAuthServer;
  beforeAll(async () => {
    oauth = await OAuthServer.start([CLIENT], ["http://localhost/v2/auth/callback/acme"]);
    const env = {
      THREADMILL_PUBLIC_URL: "http://localhost",
      THREADMILL_ALLOW_LOOPBACK_OAUTH: "1",
      OAUTH_USERINFO_URL: `${oauth.url}/me`,
    };
    service = await startService({ inline: false, database, config: "examples/langgraph.json", env });
  });
  afterAll(async () => {
    await service.stop();
    await oauth.stop();
  });

  const newThread = async (): Promise<string> => (await service.request("POST", "/threads", {})).body.thread_id;

  it("echo answers a stateless run", async () => {
    const { status, body } = await service.request("POST", "/runs/wait", {
      assistant_id: "echo",
      input: { text: "hi" },
    });
    expect({ status, body }).toEqual({ status: 200, body: { text: "hi", echo: "hi", messages: [] } });
  });

  it("the support desk pauses for an approval and continues with the answer", async () => {
    const thread_id = await newThread();
    const wait = (body: object) =>
      service.request("POST", `/threads/${thread_id}/runs/wait`, { assistant_id: "support_desk", ...body });
    const paused = await wait({ input: { messages: [{ role: "user", content: "refund order 1042" }] } });
    expect(paused.body.__interrupt__[0].value.question).toBe("Refund $129.00 for order 1042 (walking boots)?");
    const thread = (await service.request("GET", `/threads/${thread_id}`)).body;
    expect(thread.status).toBe("interrupted");
    expect(Object.values(thread.interrupts).flat()).toHaveLength(1);
    const done = await wait({ command: { resume: { decision: "approve" } } });
    expect(done.body.messages.at(-1).content).toBe(
      "Done: $129.00 for order 1042 is on its way back to you. Your receipt is R-1042.",
    );
    expect((await service.request("GET", `/threads/${thread_id}`)).body).toMatchObject({
      status: "idle",
      interrupts: {},
    });
  });

  it("research streams its progress from subgraphs and writes a report", async () => {
    const { text } = await service.request("POST", "/runs/stream", {
      assistant_id: "research",
      input: { question: "How do bees find food?" },
      stream_mode: ["custom", "values"],
      stream_subgraphs: true,
    });
    const events = parseSse(text);
    expect(events[0]).toMatchObject({ event: "metadata", data: { attempt: 1 }, id: "1" });
    expect(events.filter(({ event }) => event.startsWith("custom|study:"))).toHaveLength(6);
    expect(events.at(-1)?.data.report).toContain("A waggle dance shows other bees");
    expect(events.map(({ id }) => Number(id))).toEqual(events.map((_, i) => i + 1));
  });

  it("profile asks its user for permission at an OAuth provider, and then says who they are there", async () => {
    await service.request("POST", "/v2/auth/providers", {
      ...{ provider_id: "acme", name: "Acme", ...CLIENT, uses_pkce: true },
      ...{ auth_url: `${oauth.url}/auth`, token_url: `${oauth.url}/token` },
    });
    const thread_id = await newThread();
    const wait = (body: object) =>
      service.request("POST", `/threads/${thread_id}/runs/wait`, { assistant_id: "profile", ...body });
    const paused = await wait({ input: {} });
    const { auth_url, ...question } = paused.body.__interrupt__[0].value;
    expect(question).toEqual({
      message: "Authorize access to your profile at acme.",
      provider: "acme",
      scopes: ["openid"],
    });
    const back = await authorizeInBrowser(auth_url, { account: "ada" });
    expect((await service.request("GET", `${back.pathname}${back.search}`)).status).toBe(302);
    const done = await wait({ command: { resume: true } });
    expect(done.body).toEqual({ profile: { sub: "ada" } });
  });

  it("the provider agent reports the missing key", async () => {
    const { body } = await service.request("POST", "/runs/wait", {
      assistant_id: "provider",
      input: { messages: [{ role: "user", content: "hi" }] },
    });
    expect(body.messages.at(-1).content).toContain("set OPENAI_API_KEY and install @langchain/openai");
  });
});
