import { sql } from "kysely";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AuthServiceApi, provider, type User, type Wire } from "../http/auth-service/api.ts";
import { databases } from "../support/databases.ts";
import { openOn } from "../support/storage.ts";

/** Findings 5 and 7 of the security review: a colleague takes everybody's refresh tokens, or plants an account of theirs. */
describe.each(databases)("OAuth providers on %s", (database) => {
  let api: AuthServiceApi;
  beforeAll(async () => {
    api = await AuthServiceApi.start(database);
  });
  afterAll(() => api.stop());

  /** A workspace with a provider, somebody who runs it, and a user with a grant there. */
  const newWorld = async () => {
    const tenant_id = await api.newWorkspace(`world ${crypto.randomUUID()}`);
    const root = await (await api.user("root", tenant_id)).asAdmin();
    await root.call("POST", "/providers", provider("github"));
    const ada = await api.user("ada", tenant_id, "", ["tokens"]);
    const grant = { provider_id: "github", access_token: "access", refresh_token: "refresh", scopes: ["read"] };
    const { token_id } = await ada.call("POST", "/tokens/import", { ...grant, expires_in_seconds: 3600 });
    return { tenant_id, root, ada, token_id };
  };
  const ask = (user: User, body: object = {}): Promise<Wire> =>
    user.call("POST", "/authenticate", { provider: "github", scopes: ["read"], ...body });
  const stored = async (tenant_id: string, column: "client_secret" | "revocation_url"): Promise<string | null> => {
    const storage = openOn(api.service.database);
    const query = sql`select ${sql.ref(column)} as text from oauth_providers where tenant_id = ${tenant_id}`;
    const [row] = await storage.read.all(query.compile(storage.read.k) as never);
    await storage.close();
    return (row as unknown as { text: string | null }).text;
  };
  const secretOf = (tenant_id: string) => stored(tenant_id, "client_secret");

  it("cannot be changed by callers that have only the scope tokens", async () => {
    const { ada } = await newWorld();
    for (const [method, path, body] of [
      ["PATCH", "/providers/github", { token_url: "https://evil.example.com/token" }],
      ["DELETE", "/providers/github", undefined],
      ["POST", "/providers", provider("mine")],
      ["POST", "/providers/mcp-discover", { provider_id: "mine", mcp_server_url: "https://evil.example.com" }],
    ] as const)
      expect([path, (await ada.send(method, path, body)).status]).toEqual([path, 403]);
    expect((await ada.call("GET", "/providers")).map(({ provider_id }: Wire) => provider_id)).toEqual(["github"]);
    expect(await ask(ada)).toMatchObject({ status: "completed", token: "access" });
  });

  it("lose their secret and their grants with the origin of their token endpoint", async () => {
    const { tenant_id, root, ada, token_id } = await newWorld();
    await ada.call("POST", "/agents/a/connections", { oauth_token_id: token_id }, 201);
    await root.call("PATCH", "/providers/github", { token_url: "https://evil.example.com/token" });
    expect(await secretOf(tenant_id)).toBeNull();
    const [token] = await ada.call("GET", "/tokens");
    expect(token).toMatchObject({ id: token_id, expires_at: "1970-01-01T00:00:00.000+00:00" });
    expect(await ask(ada)).toMatchObject({ status: "pending", token: null, url: expect.any(String) });
    // Nothing is left that a way back could send anywhere.
    await root.call("PATCH", "/providers/github", { token_url: provider("github").token_url });
    expect(await ask(ada, { agent_id: "a" })).toMatchObject({ status: "pending", token: null });
    expect((await ada.call("GET", "/agents/a/connections")).data).toMatchObject([{ oauth_token_id: token_id }]);
    expect((await ada.call("GET", "/token-events"))[0]).toMatchObject({
      event_type: "needs_reconnect",
      reason: "provider_changed",
    });
  });

  it("lose both with the origin of their revocation endpoint, unless it is that of the token endpoint", async () => {
    const { tenant_id, root, ada } = await newWorld();
    await root.call("PATCH", "/providers/github", { revocation_url: "https://github.example.com/revoke" });
    await root.call("PATCH", "/providers/github", { revocation_url: null, name: "New" });
    expect(await secretOf(tenant_id)).not.toBeNull();
    expect(await ask(ada)).toMatchObject({ status: "completed", token: "access" });
    await root.call("PATCH", "/providers/github", { revocation_url: "https://evil.example.com/revoke" });
    expect(await secretOf(tenant_id)).toBeNull();
    expect(await ask(ada)).toMatchObject({ status: "pending", token: null });
  });

  it("lose a revocation endpoint that stays behind when their token endpoint moves", async () => {
    const { tenant_id, root } = await newWorld();
    const change = (body: object) => root.call("PATCH", "/providers/github", body);
    await change({ revocation_url: "https://github.example.com/revoke" });
    await change({ token_url: "https://login.example.com/token", client_secret: "another" });
    expect(await stored(tenant_id, "revocation_url")).toBeNull();
    await change({ revocation_url: "https://login.example.com/revoke" });
    await change({ token_url: "https://login.example.com/v2/token" });
    expect(await stored(tenant_id, "revocation_url")).toBe("https://login.example.com/revoke");
  });

  it("keep both when another path of the same origin is named, and take a new secret with a new origin", async () => {
    const { tenant_id, root, ada } = await newWorld();
    await root.call("PATCH", "/providers/github", { token_url: "https://github.example.com/v2/token", name: "New" });
    expect(await secretOf(tenant_id)).not.toBeNull();
    expect(await ask(ada)).toMatchObject({ status: "completed", token: "access" });
    const moved = { token_url: "https://login.example.com/token", client_secret: "another" };
    await root.call("PATCH", "/providers/github", moved);
    expect(await secretOf(tenant_id)).not.toBeNull();
    expect(await ask(ada)).toMatchObject({ status: "pending" });
  });

  it("give a user's own connected account to an agent, whatever the agent has of its own", async () => {
    const { root, ada, token_id } = await newWorld();
    const own = { access_token: "planted", scopes: ["read"] };
    expect((await ada.send("POST", "/agents/a/providers/github/tokens", own)).status).toBe(403);
    await ada.call("POST", "/agents/a/connections", { oauth_token_id: token_id }, 201);
    const made = await root.call("POST", "/agents/a/providers/github/tokens", own, 201);
    expect(await ask(ada, { agent_id: "a" })).toMatchObject({ token: "access" });
    // What belongs to the agent is not a user's to take away or to connect.
    expect((await ada.send("DELETE", `/agents/a/connections/${made.id}`)).status).toBe(403);
    expect((await ada.send("POST", "/agents/a/connections", { oauth_token_id: made.oauth_token_id })).status).toBe(403);
  });
});
