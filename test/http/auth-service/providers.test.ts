import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../../support/databases.ts";
import { openOn } from "../../support/storage.ts";
import { AuthServiceApi, ISO, provider, type User } from "./api.ts";

const FIELDS = [
  "id",
  "organization_id",
  "provider_id",
  "name",
  "client_id",
  "auth_url",
  "token_url",
  "uses_pkce",
  "code_challenge_method",
  "provider_type",
  "mcp_server_url",
  "token_endpoint_auth_method",
  "is_dynamic_client",
  "authorization_params",
  "allowed_redirect_uris",
  "default_redirect_uri",
  "created_at",
  "updated_at",
];

describe.each(databases)("OAuth providers on %s", (database) => {
  let api: AuthServiceApi;
  let ada: User;
  let elsewhere: User;
  beforeAll(async () => {
    api = await AuthServiceApi.start(database);
    ada = await api.user("ada");
    elsewhere = await api.user("ada", await api.newWorkspace("elsewhere"));
  });
  afterAll(() => api.stop());

  it("are created with the given values, and defaults for the rest; the secret is never returned", async () => {
    const answer = await ada.send("POST", "/providers", provider("plain"));
    expect(answer.status).toBe(200);
    expect(Object.keys(answer.body)).toEqual(FIELDS);
    expect(answer.body).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      organization_id: ada.tenant_id,
      provider_id: "plain",
      name: "The plain",
      client_id: "client-of-plain",
      auth_url: "https://plain.example.com/authorize",
      token_url: "https://plain.example.com/token",
      uses_pkce: true,
      code_challenge_method: "S256",
      provider_type: null,
      mcp_server_url: null,
      token_endpoint_auth_method: "client_secret_post",
      is_dynamic_client: false,
      authorization_params: {},
      allowed_redirect_uris: [],
      default_redirect_uri: null,
      created_at: expect.stringMatching(ISO),
      updated_at: expect.stringMatching(ISO),
    });
    expect(await ada.call("GET", "/providers/plain")).toEqual(answer.body);
    expect(await ada.call("GET", "/providers")).toContainEqual(answer.body);
  });

  it("keep all fields that a client may set", async () => {
    const more = {
      uses_pkce: "yes",
      code_challenge_method: "plain",
      provider_type: "slack",
      token_endpoint_auth_method: "none",
      authorization_params: { access_type: "offline" },
      allowed_redirect_uris: ["https://app.example.com/callback", "http://localhost:3000/callback"],
      default_redirect_uri: "https://app.example.com/callback",
      something_else: { ignored: true },
    };
    const made = await ada.call("POST", "/providers", provider("full", more));
    const { something_else: _, ...kept } = { ...more, uses_pkce: true };
    expect(made).toMatchObject(kept);
    expect(Object.keys(made)).toEqual(FIELDS);
  });

  it("have a name that is unique in a workspace", async () => {
    await ada.call("POST", "/providers", provider("twice"));
    const again = await ada.send("POST", "/providers", provider("twice", { name: "other" }));
    expect([again.status, again.body]).toEqual([409, { detail: "OAuth provider 'twice' already exists" }]);
    expect((await ada.call("GET", "/providers/twice")).name).toBe("The twice");
    const theirs = await elsewhere.call("POST", "/providers", provider("twice"));
    expect(theirs.organization_id).toBe(elsewhere.tenant_id);
    expect((await elsewhere.call("GET", "/providers")).map((one: { id: string }) => one.id)).toEqual([theirs.id]);
  });

  it.each([
    ["GET", undefined],
    ["PATCH", { name: "n" }],
    ["DELETE", undefined],
  ])("that do not exist, or of another workspace, are not found by %s", async (method, body) => {
    await elsewhere.send("POST", "/providers", provider("theirs"));
    for (const provider_id of ["nobody", "theirs"]) {
      const answer = await ada.send(method, `/providers/${provider_id}`, body);
      expect([answer.status, answer.body]).toEqual([404, { detail: `OAuth provider '${provider_id}' not found` }]);
    }
    expect((await elsewhere.call("GET", "/providers/theirs")).name).toBe("The theirs");
  });

  it("change only in the fields of a PATCH; null leaves a field unchanged", async () => {
    const before = await ada.call("POST", "/providers", provider("patched", { provider_type: "slack" }));
    const changes = {
      name: "New",
      auth_url: "https://new.example.com/authorize",
      uses_pkce: true,
      code_challenge_method: "plain",
      authorization_params: { prompt: "consent" },
      allowed_redirect_uris: ["https://app.example.com/cb"],
      default_redirect_uri: "https://app.example.com/cb",
    };
    const ignored = { provider_id: "x", provider_type: "microsoft", is_dynamic_client: true, id: "x", client_id: null };
    const after = await ada.call("PATCH", "/providers/patched", { ...changes, ...ignored });
    expect(after).toEqual({ ...before, ...changes, updated_at: expect.stringMatching(ISO) });
    expect(await ada.call("GET", "/providers/patched")).toEqual(after);
    const { updated_at: _, ...same } = after;
    expect(await ada.call("PATCH", "/providers/patched", {})).toMatchObject(same);
  });

  it("keep their secret sealed, and no secret after it was removed", async () => {
    const secretOf = async (provider_id: string) => {
      const storage = openOn(api.service.database);
      const query = storage.read.k.selectFrom("oauth_providers").select("client_secret");
      const row = await storage.read.first(query.where("provider_id", "=", provider_id));
      await storage.close();
      return row?.client_secret;
    };
    await ada.call("POST", "/providers", provider("sealed", { client_secret: "canary-1" }));
    const first = await secretOf("sealed");
    expect(first).not.toBeNull();
    expect(first).not.toContain("canary");
    await ada.call("PATCH", "/providers/sealed", { client_secret: null, name: "n" });
    expect(await secretOf("sealed")).toBe(first);
    await ada.call("PATCH", "/providers/sealed", { client_secret: "canary-2" });
    expect(await secretOf("sealed")).not.toBe(first);
    await ada.call("PATCH", "/providers/sealed", { client_secret: "" });
    expect(await secretOf("sealed")).toBeNull();
  });

  it("are deleted with a message", async () => {
    await ada.call("POST", "/providers", provider("short"));
    expect(await ada.call("DELETE", "/providers/short")).toEqual({ message: "OAuth provider 'short' deleted" });
    expect((await ada.send("GET", "/providers/short")).status).toBe(404);
    expect((await ada.send("DELETE", "/providers/short")).status).toBe(404);
  });

  it("that all workspaces share do not exist", async () => {
    expect(await ada.call("GET", "/platform-providers")).toEqual([]);
  });

  describe("with addresses that may not be fetched are refused, each address separately:", () => {
    it.each([
      ["http://example.com/token", "The URL must begin with https://."],
      ["ftp://example.com/", "The URL must begin with https://."],
      ["javascript:alert(1)", "The URL must begin with https://."],
      ["file:///etc/passwd", "The URL must begin with https://."],
      ["https://127.0.0.1/token", "The URL must refer to a host on the public internet."],
      ["http://localhost:8080/token", "The URL must begin with https://."],
      ["https://localhost/token", "The URL must refer to a host on the public internet."],
      ["https://10.0.0.8/token", "The URL must refer to a host on the public internet."],
      ["https://169.254.169.254/latest/meta-data", "The URL must refer to a host on the public internet."],
      ["https://[::1]/token", "The URL must refer to a host on the public internet."],
      ["https://2130706433/token", "The URL must refer to a host on the public internet."],
      ["https://metadata.google.internal/", "The URL must refer to a host on the public internet."],
      ["https://user:password@example.com/", "The URL must not contain a user name or a password."],
      ["not a url", "The URL must be absolute, such as https://example.com/path."],
      ["", "The URL must be absolute, such as https://example.com/path."],
    ])("%s", async (url, reason) => {
      const refusal = (field: string) => ({
        type: "value_error",
        loc: ["body", field],
        msg: `Value error, ${reason}`,
        input: url,
      });
      const both = await ada.send("POST", "/providers", provider("bad", { auth_url: url, token_url: url }));
      expect([both.status, both.body]).toEqual([422, { detail: [refusal("auth_url"), refusal("token_url")] }]);
      expect((await ada.send("GET", "/providers/bad")).status).toBe(404);
      const patch = await ada.send("PATCH", "/providers/plain", { token_url: url });
      expect([patch.status, patch.body]).toEqual([422, { detail: [refusal("token_url")] }]);
    });

    it("invalid return pages", async () => {
      const uris = ["https://ok.example.com/cb", "custom:app", "https://a.example.com/#x"];
      const answer = await ada.send("POST", "/providers", provider("bad", { allowed_redirect_uris: uris }));
      expect(answer.body.detail.map(({ loc }: { loc: unknown[] }) => loc)).toEqual([
        ["body", "allowed_redirect_uris", 1],
        ["body", "allowed_redirect_uris", 2],
      ]);
    });
  });
});

describe.each(databases)("OAuth providers for development on %s", (database) => {
  it("may be at loopback, with http", async () => {
    const api = await AuthServiceApi.start(database, { THREADMILL_ALLOW_LOOPBACK_OAUTH: "1" });
    const ada = await api.user("ada");
    const urls = { auth_url: "http://127.0.0.1:9000/auth", token_url: "http://localhost:9000/token" };
    expect(await ada.call("POST", "/providers", provider("local", urls))).toMatchObject(urls);
    const far = await ada.send("POST", "/providers", provider("far", { token_url: "http://example.com/" }));
    expect(far.status).toBe(422);
    await api.stop();
  });
});
