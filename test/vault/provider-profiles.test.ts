import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { grantedScopes, profileOf } from "../../src/access/oauth/provider-profiles.ts";
import type { ProviderRow } from "../../src/access/storage/schema.ts";
import { openToken } from "../../src/access/tokens/token-secret.ts";
import { createDatabase, type TestDatabase } from "../support/databases.ts";
import { FakeProvider, type Reply } from "../support/fake-provider.ts";
import { until } from "../support/until.ts";
import { callerOf, TestVault, testSeal } from "../support/vault.ts";

/** Answers as the providers' own pages show them; nothing of it depends on the database. */
describe("providers that differ", () => {
  let at: TestDatabase;
  let vault: TestVault;
  let fake: FakeProvider;
  let count = 0;
  beforeAll(async () => {
    at = await createDatabase("sqlite");
    vault = await TestVault.on(at);
    fake = await FakeProvider.start();
  });
  afterAll(async () => {
    await vault.close();
    await fake.stop();
    await at.drop();
  });
  afterEach(() => {
    fake.received.length = 0;
  });

  const provider = (changes: Partial<ProviderRow> = {}) =>
    vault.provider(
      fake as never,
      { client_id: `quirk-${++count}`, client_secret: "s", token_endpoint_auth_method: "client_secret_post" },
      {
        issuer: null,
        auth_url: `${fake.url}/authorize`,
        token_url: `${fake.url}/api/token`,
        revocation_url: null,
        ...changes,
      },
    );

  /** Sends a user there and back, and answers what was asked and what was kept. */
  async function come(row: ProviderRow, reply: Reply, scopes = ["a", "b"]) {
    fake.reply = () => reply;
    const user = callerOf(`user ${count}`);
    const { url } = await vault.authenticate(user, row.provider_id, { scopes });
    const sent = new URL(url ?? "").searchParams;
    const { provider_id } = row;
    const end = await vault.flows.handleCallback({ provider_id, state: sent.get("state") ?? "", code: "c" });
    const [token] = await vault.tokens(user, provider_id);
    return { user, sent, end, form: fake.received[0]?.form ?? {}, token, secret: token && openToken(testSeal, token) };
  }

  it("Slack: scopes of the user with commas, and the user's token inside of the app's", async () => {
    const row = await provider({ provider_type: "slack" });
    const { sent, end, token, secret } = await come(row, {
      body: {
        ok: true,
        access_token: "xoxb-of-the-app",
        token_type: "bot",
        scope: "commands",
        authed_user: { id: "U1", scope: "a,b", access_token: "xoxp-of-the-user", token_type: "user" },
      },
    });
    expect(sent.get("user_scope")).toBe("a,b");
    expect(sent.has("scope")).toBe(false);
    expect(end.status).toBe("connected");
    expect(secret).toEqual({ access_token: "xoxp-of-the-user", token_type: "user" });
    expect(JSON.parse(token?.scopes ?? "")).toEqual(["a", "b"]);
  });

  it("Slack: a refused code is reported with status 200", async () => {
    const { end } = await come(await provider({ provider_type: "slack" }), {
      body: { ok: false, error: "invalid_code" },
    });
    expect(end).toEqual({ status: "failed", reason: "invalid_code" });
  });

  it("Slack: a token is revoked with a separate method next to the token endpoint", async () => {
    const row = await provider({ provider_type: "slack" });
    const { user } = await come(row, { body: { ok: true, authed_user: { access_token: "xoxp-1", scope: "a,b" } } });
    await vault.rules.tokens.deleteAll(user, row.provider_id);
    await until("it was revoked", async () => fake.received.some(({ path }) => path === "/api/auth.revoke"));
    expect(fake.received.at(-1)).toMatchObject({ method: "POST", headers: { authorization: "Bearer xoxp-1" } });
  });

  it("GitHub: errors with status 200, and scopes with commas", async () => {
    const refused = await come(await provider(), { body: { error: "bad_verification_code", error_uri: "/x" } });
    expect(refused.end).toEqual({ status: "failed", reason: "bad_verification_code" });
    const { comma_separated_scopes, permanent_errors, revocation } = profileOf({
      provider_type: null,
      token_url: "https://github.com/login/oauth/access_token",
    });
    expect({ comma_separated_scopes, permanent_errors, revocation }).toEqual({
      comma_separated_scopes: true,
      permanent_errors: ["bad_refresh_token"],
      revocation: "github",
    });
  });

  it("Microsoft: offline_access is requested, and scopes are sent with the code", async () => {
    const row = await provider({ provider_type: "microsoft" });
    const { sent, form, token } = await come(
      row,
      { body: { access_token: "t", token_type: "Bearer", expires_in: "3599", scope: "User.Read", refresh_token: "r" } },
      ["User.Read", "offline_access"],
    );
    expect(sent.get("scope")).toBe("User.Read offline_access");
    expect(form.scope).toBe("User.Read offline_access");
    // It never lists what it was asked for in order to sign in.
    expect(JSON.parse(token?.scopes ?? "")).toEqual(["User.Read", "offline_access"]);
    expect(Number(token?.expires_at) - Date.now()).toBeGreaterThan(3_500_000);
  });

  it("Salesforce: no time of expiry, and an address that its user needs", async () => {
    const row = await provider({ provider_type: "salesforce" });
    const body = {
      access_token: "t",
      token_type: "Bearer",
      refresh_token: "r",
      instance_url: "https://eu1.example.com",
    };
    const { user, token } = await come(row, { body });
    expect(Number(token?.expires_at) - Date.now()).toBeLessThanOrEqual(900_000);
    expect(await vault.authenticate(user, row.provider_id, { scopes: ["a"] })).toMatchObject({
      status: "completed",
      metadata: { instance_url: "https://eu1.example.com" },
    });
  });

  it.each<[string, object | string, object]>([
    ["no token type", { access_token: "t" }, { expires_at: null, scopes: ["a", "b"] }],
    ["an odd token type", { access_token: "t", token_type: "Whatever" }, { scopes: ["a", "b"] }],
    ["an empty scope", { access_token: "t", scope: "" }, { scopes: ["a", "b"] }],
    ["a list of scopes", { access_token: "t", scope: ["a", "b", "c"] }, { scopes: ["a", "b", "c"] }],
    ["fewer scopes", { access_token: "t", scope: "a" }, { scopes: ["a"] }],
    [
      "null for what it does not know",
      { access_token: "t", expires_in: null, refresh_token: null },
      { expires_at: null },
    ],
    ["0 for a token without end", { access_token: "t", expires_in: 0 }, { expires_at: null }],
    ["a time beyond all times", { access_token: "t", expires_in: 1e300 }, { scopes: ["a", "b"] }],
    ["an id token that it could not be checked with", { access_token: "t", id_token: "x.y.z" }, { scopes: ["a", "b"] }],
  ])("an answer with %s is understood", async (_, body, kept) => {
    const { end, token, secret } = await come(await provider(), { body });
    expect(end).toEqual({ status: "connected" });
    expect(secret?.access_token).toBe("t");
    expect({ ...token, scopes: JSON.parse(token?.scopes ?? "") }).toMatchObject(kept);
  });

  it("an answer that is a form is understood", async () => {
    const headers = { "content-type": "application/x-www-form-urlencoded; charset=utf-8" };
    const { secret } = await come(await provider(), { headers, body: "access_token=t&scope=a+b&token_type=bearer" });
    expect(secret?.access_token).toBe("t");
  });

  it.each<[string, Reply, string]>([
    ["HTML", { headers: { "content-type": "text/html" }, body: "<h1>Sorry</h1>" }, "status 502"],
    ["a redirect", { status: 302, headers: { location: "https://evil.example.com" } }, "status 302"],
    ["no token", { body: { token_type: "bearer" } }, "the response is not a valid OAuth response"],
    ["a token that is none", { body: { access_token: 7 } }, "the response is not a valid OAuth response"],
    ["an error of its own", { status: 503, body: "busy" }, "status 503"],
    ["an error in a sentence", { status: 400, body: { error: "some words\nin lines" } }, "unreadable_error"],
    [
      "a wrong secret",
      { status: 401, headers: { "www-authenticate": "Basic" }, body: { error: "invalid_client" } },
      "invalid_client",
    ],
    ["more than can be a token", { body: "x".repeat(2_000_000) }, "the response is too large"],
  ])("a code that is answered with %s gives no token", async (_, reply, reason) => {
    const { end, token } = await come(await provider(), reply);
    expect(end).toEqual({ status: "failed", reason });
    expect(token).toBeUndefined();
  });

  it("PKCE is sent as S256, or as plain where the provider supports nothing else", async () => {
    const answer = { body: { access_token: "t" } };
    const odd = await come(await provider({ code_challenge_method: "other" }), answer);
    expect(odd.sent.get("code_challenge_method")).toBe("S256");
    fake.received.length = 0;
    const plain = await come(await provider({ code_challenge_method: "plain" }), answer);
    expect(plain.sent.get("code_challenge_method")).toBe("plain");
    expect(plain.form.code_verifier).toBe(plain.sent.get("code_challenge"));
    expect(plain.form.code_verifier).toMatch(/^[\w-]{43}$/);
  });

  it("count scopes that GitHub leaves out, because a granted one contains them", () => {
    const github = profileOf({ provider_type: null, token_url: "https://github.com/login/oauth/access_token" });
    const granted = grantedScopes("user,gist", ["user", "user:email", "gist", "repo"], github);
    expect(granted).toEqual(["user", "gist", "user:email"]);
  });
});
