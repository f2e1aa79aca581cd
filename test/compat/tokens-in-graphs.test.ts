import { Client, type StreamMode } from "@langchain/langgraph-sdk";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { placesOfSecrets } from "../support/canary.ts";
import { createDatabase, databases, type TestDatabase } from "../support/databases.ts";
import { authorizeInBrowser, OAuthServer, type TestClient } from "../support/oauth-server.ts";
import { freePort, type ServerProcess, startProcess } from "../support/process.ts";

const OAUTH_CLIENT = {
  client_id: "canary-client",
  client_secret: "canary-secret-2b8e6f4a90",
  token_endpoint_auth_method: "client_secret_post",
} as const satisfies TestClient;
const ADMIN = { "x-api-key": "root-0123456789abcdef0123456789abcdef", "content-type": "application/json" };
const ALL_MODES: StreamMode[] = [
  "values",
  "updates",
  "messages",
  "messages-tuple",
  "events",
  "debug",
  "tasks",
  "custom",
];

/** What the example `profile` says, or asks. */
type Profile = {
  profile?: { sub: string };
  __interrupt__?: { id: string; value: { message: string; auth_url: string; provider: string; scopes: string[] } }[];
};

describe.each(databases)("the example that uses a user's token, with the official client, on %s", (name) => {
  let at: TestDatabase;
  let oauth: OAuthServer;
  let server: ServerProcess;
  /** What the service has answered, besides tokens to those who may have them. */
  const answers: string[] = [];
  beforeAll(async () => {
    at = await createDatabase(name);
    const port = await freePort();
    oauth = await OAuthServer.start([OAUTH_CLIENT], [`http://localhost:${port}/v2/auth/callback/acme`]);
    server = await startProcess({
      ...{ command: "dev", config: "examples/langgraph.json", port, data: at.data_dir, databaseUrl: at.url },
      env: {
        API_KEYS: ADMIN["x-api-key"],
        THREADMILL_ALLOW_LOOPBACK_OAUTH: "1",
        OAUTH_PROVIDER: "acme",
        OAUTH_SCOPES: "openid read",
        OAUTH_USERINFO_URL: `${oauth.url}/me`,
      },
      flags: ["--log-level", "debug"],
    });
    await asAdmin("/v2/auth/providers", {
      ...{ provider_id: "acme", name: "Acme", ...OAUTH_CLIENT, uses_pkce: true, issuer: oauth.url },
      ...{ auth_url: `${oauth.url}/auth`, token_url: `${oauth.url}/token` },
      revocation_url: `${oauth.url}/token/revocation`,
    });
  });
  afterAll(async () => {
    server.child.kill("SIGKILL");
    await server.ended;
    await oauth.stop();
    await at.drop();
  });

  async function send(method: string, path: string, headers: Record<string, string>, body?: object) {
    const response = await fetch(new URL(path, server.url), { method, headers, body: body && JSON.stringify(body) });
    const text = await response.text();
    answers.push(text);
    if (!response.ok) throw new Error(`${method} ${path} was answered ${response.status}: ${text}`);
    return JSON.parse(text);
  }
  const asAdmin = (path: string, body: object) => send("POST", path, ADMIN, body);

  async function clientOf(user_id: string) {
    const { key } = await asAdmin("/admin/keys", { name: user_id, user_id, scopes: ["agents", "tokens"] });
    const client = new Client({ apiUrl: server.url, apiKey: key });
    const run = async (thread_id: string, body: object = { input: {} }): Promise<Profile> => {
      const values = (await client.runs.wait(thread_id, "profile", body)) as Profile;
      answers.push(JSON.stringify(values));
      return values;
    };
    return { client, key, run, newThread: async () => (await client.threads.create()).thread_id };
  }

  /** The user opens the address and agrees; the browser ends on the service's page. */
  async function authorize({ __interrupt__ }: Profile, account: string) {
    const back = await authorizeInBrowser(__interrupt__?.[0]?.value.auth_url ?? "", { account });
    const page = await fetch(back);
    expect(page.status).toBe(200);
    expect(await page.text()).toContain("Connected: acme");
  }

  it("requests permission once, requests it again after a deletion, and stores no secret in plain text", async () => {
    // So short-lived that every run renews it.
    oauth.access_ttl_s = 50;
    const ada = await clientOf("ada");
    const first = await ada.newThread();
    const asked = await ada.run(first);
    expect(asked.__interrupt__?.map(({ value }) => value)).toEqual([
      {
        message: "Authorize access to your profile at acme.",
        auth_url: expect.stringContaining(`${oauth.url}/auth?`),
        provider: "acme",
        scopes: ["openid", "read"],
      },
    ]);
    const paused = await ada.client.threads.get(first);
    expect(paused.status).toBe("interrupted");
    expect(Object.values(paused.interrupts).flat()).toEqual(asked.__interrupt__);
    expect((await ada.client.runs.list(first))[0]?.status).toBe("interrupted");
    await authorize(asked, "ada");
    expect(await ada.run(first, { command: { resume: "granted" } })).toEqual({
      profile: expect.objectContaining({ sub: "ada" }),
    });
    expect((await ada.client.threads.get(first)).status).toBe("idle");

    const second = await ada.newThread();
    const events: string[] = [];
    for await (const event of ada.client.runs.stream(second, "profile", { input: {}, streamMode: ALL_MODES }))
      events.push(JSON.stringify(event));
    expect(events.join()).toContain('"sub":"ada"');
    expect(events.join()).not.toContain("__interrupt__");
    expect(oauth.refreshes).toBeGreaterThan(0);

    oauth.behavior = "error";
    expect(await ada.run(await ada.newThread())).toMatchObject({ profile: { sub: "ada" } });
    oauth.behavior = "normal";

    // Somebody else in the same workspace.
    const eve = await clientOf("eve");
    const hers = await eve.newThread();
    const other = await eve.run(hers);
    expect(other.__interrupt__).toHaveLength(1);
    await authorize(other, "eve");
    expect(await eve.run(hers, { command: { resume: true } })).toMatchObject({ profile: { sub: "eve" } });

    await send("DELETE", "/v2/auth/tokens?provider_id=acme", { "x-api-key": ada.key });
    expect((await ada.run(await ada.newThread())).__interrupt__).toHaveLength(1);
    expect(await eve.run(await eve.newThread())).toMatchObject({ profile: { sub: "eve" } });

    for (const thread_id of [first, second]) {
      const [runs, history] = [await ada.client.runs.list(thread_id), await ada.client.threads.getHistory(thread_id)];
      answers.push(JSON.stringify([runs, history, await ada.client.threads.getState(thread_id)]));
    }
    const secrets = [...oauth.issued, ...oauth.used, OAUTH_CLIENT.client_secret];
    expect(secrets.length).toBeGreaterThan(8);
    for (const secret of secrets) {
      expect([...answers, ...events].filter((text) => text.includes(secret))).toEqual([]);
      expect(server.output()).not.toContain(secret);
    }
    expect(await placesOfSecrets(at, secrets)).toEqual([]);
    // It would find something, and there was something to be logged.
    expect(await placesOfSecrets(at, ["Authorize access to your profile"])).not.toEqual([]);
    expect(server.output()).toContain("OAuth token refresh failed");
  });
});
