import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { openClientSecret } from "../../src/access/oauth/provider-secret.ts";
import { findProvider } from "../../src/access/storage/providers.ts";
import { createDatabase, databases, type TestDatabase } from "../support/databases.ts";
import { FakeProvider, type Received, type Reply } from "../support/fake-provider.ts";
import { authorizeInBrowser, OAuthServer } from "../support/oauth-server.ts";
import { BASE_URL, callbackParametersOf, callbackUrlOf, callerOf, TestVault, testSeal } from "../support/vault.ts";

const admin = callerOf("admin", ["admin"]);
const METADATA = "/.well-known/oauth-protected-resource";

describe.each(databases)("discovery of MCP servers on %s", (name) => {
  let at: TestDatabase;
  let vault: TestVault;
  let server: OAuthServer;
  let mcp: FakeProvider;
  beforeAll(async () => {
    at = await createDatabase(name);
    vault = await TestVault.on(at, { provider_timeout_ms: 2_000 });
    server = await OAuthServer.start([], []);
    mcp = await FakeProvider.start();
  });
  afterAll(async () => {
    await vault.close();
    await server.stop();
    await mcp.stop();
    await at.drop();
  });
  beforeEach(() => {
    mcp.received.length = 0;
  });

  /** An MCP server that has metadata at a path, and turns away everybody without a token. */
  const serving =
    (path: string, metadata: () => object, challenge?: string) =>
    (request: Received): Reply => {
      if (request.path === path) return { body: metadata() };
      if (request.path.startsWith("/.well-known/")) return { status: 404 };
      return { status: 401, headers: challenge ? { "www-authenticate": challenge } : {} };
    };

  const discover = (provider_id: string, path = "/mcp") =>
    vault.flows.discover(admin, { provider_id, name: provider_id, mcp_server_url: `${mcp.url}${path}` }, BASE_URL);

  it.each<[string, string, boolean]>([
    ["named by the server", "/odd/place", true],
    ["at the well-known path of the server", `${METADATA}/mcp`, false],
    ["at the well-known path of the host", METADATA, false],
  ])("metadata %s leads to a provider with which users get tokens for this server", async (how, path, isNamed) => {
    const resource = `${mcp.url}/mcp`;
    const challenge = isNamed ? `Bearer resource_metadata="${mcp.url}${path}"` : undefined;
    mcp.reply = serving(path, () => ({ resource, authorization_servers: [server.url] }), challenge);
    const made = await discover(how);
    expect(made).toMatchObject({
      provider_id: how,
      auth_url: `${server.url}/auth`,
      token_url: `${server.url}/token`,
      uses_pkce: true,
      code_challenge_method: "S256",
      mcp_server_url: resource,
      is_dynamic_client: true,
    });
    const row = await findProvider(vault.database.read, admin.tenant_id, how);
    expect(row).toMatchObject({ resource, issuer: server.url, revocation_url: `${server.url}/token/revocation` });
    const secret = row && openClientSecret(testSeal, row);
    expect(secret).toMatch(/.{20}/);
    expect(JSON.stringify([made, row])).not.toContain(secret);

    const user = callerOf("user");
    const { url } = await vault.authenticate(user, how);
    expect(new URL(url ?? "").searchParams.get("resource")).toBe(resource);
    const back = await authorizeInBrowser(url ?? "");
    expect(back.href.startsWith(callbackUrlOf(encodeURIComponent(how)))).toBe(true);
    expect(await vault.flows.handleCallback(callbackParametersOf(back))).toEqual({ status: "connected" });
    await vault.expireTokens(user, how);
    const { status, token } = await vault.authenticate(user, how);
    expect(status).toBe("completed");
    expect(await server.provider.AccessToken.find(token ?? "")).toMatchObject({ aud: resource });
  });

  it("a server without metadata of its own may be the authorization server itself", async () => {
    const made = await vault.flows.discover(
      admin,
      { provider_id: "both in one", name: "Both", mcp_server_url: `${server.url}/mcp` },
      BASE_URL,
    );
    expect(made).toMatchObject({ token_url: `${server.url}/token`, is_dynamic_client: true });
  });

  const failing = (reason: RegExp) => ({
    code: "discovery_failed",
    status: 400,
    message: expect.stringMatching(reason),
  });

  it.each<[string, () => object, RegExp]>([
    ["of another server", () => ({ resource: "https://bank.example.com/mcp" }), /a resource other than/],
    ["of another path", () => ({ resource: `${mcp.url}/other` }), /a resource other than/],
    ["of a path that begins alike", () => ({ resource: `${mcp.url}/mc` }), /a resource other than/],
    ["without a resource", () => ({ authorization_servers: [server.url] }), /a resource other than/],
    [
      "that leads to no server",
      () => ({ resource: `${mcp.url}/mcp`, authorization_servers: [mcp.url] }),
      /did not return metadata/,
    ],
    [
      "that leads into this network",
      () => ({ resource: `${mcp.url}/mcp`, authorization_servers: ["https://10.0.0.1"] }),
      /not allowed/,
    ],
  ])("metadata %s is refused", async (_, metadata, reason) => {
    mcp.reply = serving(`${METADATA}/mcp`, metadata);
    await expect(discover("refused")).rejects.toMatchObject(failing(reason));
    expect(await findProvider(vault.database.read, admin.tenant_id, "refused")).toBeUndefined();
  });

  const as = (more: object) => ({
    issuer: mcp.url,
    authorization_endpoint: `${mcp.url}/authorize`,
    token_endpoint: `${mcp.url}/token`,
    registration_endpoint: `${mcp.url}/register`,
    ...more,
  });

  it.each<[string, () => object, RegExp]>([
    [
      "with the name of another",
      () => as({ issuer: "https://evil.example.com" }),
      /metadata of the authorization server failed/,
    ],
    ["without endpoints", () => ({ issuer: mcp.url }), /lacks an authorization_endpoint or a token_endpoint/],
    ["without PKCE", () => as({ code_challenge_methods_supported: ["plain"] }), /PKCE/],
    [
      "without registration",
      () => as({ registration_endpoint: undefined }),
      /does not support dynamic client registration/,
    ],
    ["with a token endpoint in this network", () => as({ token_endpoint: "https://192.168.0.1/token" }), /not allowed/],
    ["that refuses to register", () => as({}), /the registration endpoint failed \(status 401\)/],
  ])("an authorization server %s is refused", async (_, metadata, reason) => {
    mcp.reply = serving("/.well-known/oauth-authorization-server", metadata);
    await expect(discover("refused")).rejects.toMatchObject(failing(reason));
  });

  it.each([
    "http://example.com/mcp",
    "https://127.1.2.3:x/",
    "https://169.254.169.254/",
    "ftp://example.com",
    "no address",
  ])("nothing is fetched from %s", async (mcp_server_url) => {
    const asked = vault.flows.discover(admin, { provider_id: "refused", name: "x", mcp_server_url }, BASE_URL);
    await expect(asked).rejects.toMatchObject({ code: "discovery_failed" });
  });

  it("a server that does not respond fails within the time limit", async () => {
    server.behavior = "normal";
    mcp.reply = () => ({ status: 200, body: "" });
    const unreachable = `http://127.0.0.1:1/mcp`;
    const asked = vault.flows.discover(
      admin,
      { provider_id: "refused", name: "x", mcp_server_url: unreachable },
      BASE_URL,
    );
    await expect(asked).rejects.toMatchObject(failing(/the MCP server failed \(the connection failed\)/));
  });

  it("a name that is taken is refused before anything is registered", async () => {
    mcp.reply = serving(METADATA, () => ({ resource: mcp.url, authorization_servers: [server.url] }));
    await discover("taken");
    mcp.received.length = 0;
    await expect(discover("taken")).rejects.toMatchObject({ code: "oauth_provider_exists" });
    expect(mcp.received).toEqual([]);
  });
});
