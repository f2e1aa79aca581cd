import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { placesOfSecrets } from "../support/canary.ts";
import { createDatabase, databases } from "../support/databases.ts";
import { encryptionEnv } from "../support/encryption.ts";
import { authorizeInBrowser, OAuthServer, type TestClient } from "../support/oauth-server.ts";
import { freePort, startCli } from "../support/process.ts";
import { until } from "../support/until.ts";

const CLIENT = {
  client_id: "canary-client",
  client_secret: "canary-secret-7f3a9c1e5b",
  token_endpoint_auth_method: "client_secret_post",
} as const satisfies TestClient;

describe.each(databases)("the data that flows leave on %s", (name) => {
  it("no token, verifier, code, state or client secret is in the clear in the database or in debug logs", async () => {
    const at = await createDatabase(name);
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    const server = await OAuthServer.start([CLIENT], [`${url}/v2/auth/callback/acme`]);
    const args = ["dev", "--config", "test/graphs/scenarios/langgraph.json", "--data", at.data_dir];
    args.push("--port", String(port), "--log-level", "debug", ...(at.url ? ["--database-url", at.url] : []));
    const env = { THREADMILL_ALLOW_LOOPBACK_OAUTH: "1", THREADMILL_OAUTH_TIMEOUT: "2000ms", ...encryptionEnv(at.url) };
    const child = startCli(args, { env });
    let printed = "";
    await new Promise<void>((up) => {
      const take = (chunk: Buffer) => {
        printed += chunk;
        if (printed.includes(" is up ")) up();
      };
      for (const stream of [child.stdout, child.stderr]) stream?.on("data", take);
    });

    const send = async (method: string, path: string, body?: object) => {
      const headers = { "content-type": "application/json" };
      const init = { method, headers, body: body && JSON.stringify(body), redirect: "manual" } as const;
      const response = await fetch(new URL(path, url), init);
      const text = await response.text();
      return { status: response.status, text, body: text.startsWith("{") ? JSON.parse(text) : undefined };
    };
    const ask = async (body: object = {}) =>
      (await send("POST", "/v2/auth/authenticate", { provider: "acme", scopes: ["read"], ...body })).body;
    const states: string[] = [];
    const goAndReturn = async (address: string) => {
      states.push(new URL(address).searchParams.get("state")?.split(".")[1] ?? "");
      return send("GET", (await authorizeInBrowser(address)).href);
    };

    await send("POST", "/v2/auth/providers", {
      ...{ provider_id: "acme", name: "Acme", ...CLIENT, uses_pkce: true, issuer: server.url },
      ...{ auth_url: `${server.url}/auth`, token_url: `${server.url}/token` },
      revocation_url: `${server.url}/token/revocation`,
    });
    // There and back, refreshed at once, refused, not answered, and deleted in the end.
    server.access_ttl_s = 50;
    const { url: first, auth_id } = await ask();
    expect((await goAndReturn(first)).status).toBe(302);
    expect((await send("GET", `/v2/auth/wait/${auth_id}`)).body.status).toBe("completed");
    expect((await ask()).status).toBe("completed");
    for (const behavior of ["error", "silent"] as const) {
      server.behavior = behavior;
      expect((await ask()).status).toBe("completed");
      await goAndReturn((await ask({ force_new: true })).url);
    }
    server.behavior = "normal";
    const { url: last } = await ask({ force_new: true });
    const state = new URL(last).searchParams.get("state") ?? "";
    await send("GET", `/v2/auth/callback/acme?code=canary-code-that-is-wrong&state=${state}`);
    await send("GET", `/v2/auth/callback/acme?code=canary-code-that-is-wrong&state=canary-state-that-is-wrong`);
    await goAndReturn((await ask({ force_new: true })).url);
    expect(await placesOfSecrets(at, secrets())).toEqual([]);
    expect((await send("DELETE", "/v2/auth/tokens?provider_id=acme")).status).toBe(200);
    await until("tokens were revoked", async () => server.requests.includes("/token/revocation"));
    child.kill("SIGTERM");
    await once(child, "exit");

    expect(server.refreshes).toBeGreaterThan(0);
    expect(await placesOfSecrets(at, secrets())).toEqual([]);
    // It would find something, and there was something to be logged.
    expect(await placesOfSecrets(at, [CLIENT.client_id])).not.toEqual([]);
    expect(printed).toContain("OAuth token refresh failed");
    expect(printed).toContain("OAuth code exchange failed");
    for (const secret of secrets()) expect(printed).not.toContain(secret);
    await server.stop();
    await at.drop();

    function secrets(): string[] {
      expect(server.issued.length).toBeGreaterThan(4);
      expect(server.used.length).toBeGreaterThan(2);
      return [...server.issued, ...server.used, ...states, CLIENT.client_secret, "canary-code", "canary-state"];
    }
  });
});
