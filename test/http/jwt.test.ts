import { createHmac } from "node:crypto";
import { exportJWK, exportSPKI, generateKeyPair, SignJWT } from "jose";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readConfig } from "../../src/config/config.ts";
import { databases } from "../support/databases.ts";
import { AUDIENCE, Issuer } from "../support/issuer.ts";
import { ADMIN, closedService, newCaller, newWorkspace } from "./callers.ts";
import type { Scenario } from "./scenario.ts";

describe.each(databases)("a JWT of the configured issuer on %s", (database) => {
  let issuer: Issuer;
  let api: Scenario;
  let tenant: string;
  beforeAll(async () => {
    issuer = await Issuer.start();
    api = await closedService(database, {
      THREADMILL_OIDC_ISSUER: issuer.url,
      THREADMILL_OIDC_AUDIENCE: AUDIENCE,
      THREADMILL_ALLOW_LOOPBACK_OAUTH: "1",
      THREADMILL_OIDC_SCOPES: '{"groups": {"platform": ["deployments"]}, "roles": {"deployer": ["deployments"]}}',
    });
    tenant = await newWorkspace(api);
    await join("alice", tenant);
  });
  afterAll(async () => {
    await api.stop();
    await issuer.stop();
  });

  const join = (user: string, tenant_id: string) =>
    api.call("PUT", `/admin/workspaces/${tenant_id}/members/${encodeURIComponent(user)}`, undefined, ADMIN);
  const use = (token: string, more: Record<string, string> = {}, path = "/app/api/session") =>
    api.send("GET", path, undefined, { Authorization: `Bearer ${token}`, ...more });

  it("grants its user access to their only workspace, under their own name", async () => {
    const headers = { Authorization: `Bearer ${await issuer.token()}` };
    const { seen } = await api.call("POST", "/runs/wait", { assistant_id: "inspect", input: {} }, headers);
    expect(seen.configurable.user_id).toBe("alice");
    expect(JSON.stringify(seen)).not.toContain(headers.Authorization.slice(7));
    const { thread_id } = await api.call("POST", "/threads", {}, headers);
    const colleague = await newCaller(api, { tenant_id: tenant });
    expect((await api.send("GET", `/threads/${thread_id}`, undefined, colleague)).status).toBe(200);
  });

  it("requests the document and the keys of the issuer once, for any number of requests", async () => {
    issuer.asked = [];
    await Promise.all(
      Array.from({ length: 20 }, async () => expect((await use(await issuer.token())).status).toBe(200)),
    );
    expect(issuer.asked).toEqual([]);
  });

  it("may name itself in several audiences", async () => {
    expect((await use(await issuer.token({ aud: ["other", AUDIENCE] }))).status).toBe(200);
  });

  const seconds = (from_now: number) => Math.floor(Date.now() / 1000) + from_now;
  const hs256 = (secret: string, claims: object) => {
    const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
    const signed = `${encode({ alg: "HS256", kid: issuer.kid })}.${encode(claims)}`;
    return `${signed}.${createHmac("sha256", secret).update(signed).digest("base64url")}`;
  };
  const good = () => ({ iss: issuer.url, aud: AUDIENCE, sub: "alice", exp: seconds(60) });

  it.each<[string, () => Promise<string> | string]>([
    ["that has expired", () => issuer.token({ exp: seconds(-10) })],
    ["that never expires", () => issuer.token({ exp: undefined })],
    ["that is not valid yet", () => issuer.token({ nbf: seconds(60) })],
    ["for another audience", () => issuer.token({ aud: "another" })],
    ["for no audience", () => issuer.token({ aud: undefined })],
    ["of another issuer", () => issuer.token({ iss: "https://id.example" })],
    ["of the issuer with a slash more", () => issuer.token({ iss: `${issuer.url}/` })],
    ["of nobody", () => issuer.token({ sub: undefined })],
    ["of the empty user", () => issuer.token({ sub: "" })],
    ["of a user who is no text", () => issuer.token({ sub: 1 as never })],
    ["with a key that the issuer does not have", () => issuer.token({}, { kid: "two" })],
    [
      "that somebody else has signed",
      async () => {
        const { privateKey } = await generateKeyPair("RS256");
        return new SignJWT(good()).setProtectedHeader({ alg: "RS256", kid: issuer.kid }).sign(privateKey);
      },
    ],
    [
      "with no algorithm and no signature",
      () =>
        [{ alg: "none" }, good()].map((part) => Buffer.from(JSON.stringify(part)).toString("base64url")).join(".") +
        ".",
    ],
    [
      "signed with the public key as a shared secret",
      async () => hs256(await exportSPKI(issuer.keys.publicKey), good()),
    ],
    [
      "signed with the public key's JWK",
      async () => hs256(JSON.stringify(await exportJWK(issuer.keys.publicKey)), good()),
    ],
    [
      "whose claims were changed",
      async () => {
        const [header, , signature] = (await issuer.token()).split(".");
        return [header, Buffer.from(JSON.stringify({ ...good(), sub: "eve" })).toString("base64url"), signature].join(
          ".",
        );
      },
    ],
    ["with a header that must be understood", () => issuer.token({}, { crit: ["x"], x: 1 })],
    ["without its signature", async () => (await issuer.token()).split(".").slice(0, 2).join(".")],
    ["that is cut short", async () => (await issuer.token()).slice(0, -5)],
    ["that is none", () => "a.b.c"],
  ])("%s is answered 401", async (_, make) => {
    const answer = await use(await make());
    expect(answer).toMatchObject({ status: 401, body: { detail: expect.any(String) } });
    expect(answer.headers.get("www-authenticate")).toBe("Bearer");
  });

  it("is accepted only as a bearer token", async () => {
    expect((await api.send("GET", "/app/api/session", undefined, { "X-Api-Key": await issuer.token() })).status).toBe(
      401,
    );
    expect((await use(await issuer.token(), { "X-Api-Key": "another" })).status).toBe(401);
    expect((await use(await issuer.token(), { "X-Api-Key": "" })).status).toBe(200);
  });

  it("has the scopes of keys that were created without scopes, and no administration", async () => {
    const token = await issuer.token();
    for (const path of ["/api/v1/sessions", "/v2/auth/tokens"]) expect((await use(token, {}, path)).status).toBe(200);
    for (const [path, scope] of [
      ["/v2/deployments", "deployments"],
      ["/admin/keys", "admin"],
    ] as const)
      expect(await use(token, {}, path)).toMatchObject({
        status: 403,
        body: { detail: expect.stringContaining(scope) },
      });
  });

  it("grants the scopes that its claims are mapped to, and none for unmapped values", async () => {
    const statusOf = async (claims: Record<string, unknown>, path = "/v2/deployments") =>
      (await use(await issuer.token(claims), {}, path)).status;
    expect(await statusOf({ groups: ["people", "platform"] })).toBe(200);
    expect(await statusOf({ roles: "reader deployer" })).toBe(200);
    expect(await statusOf({ groups: ["platform"] }, "/admin/keys")).toBe(403);
    for (const groups of [
      ["people"],
      [],
      "people",
      null,
      7,
      [["platform"]],
      { platform: true },
      ["__proto__", "toString"],
    ])
      expect([groups, await statusOf({ groups })]).toEqual([groups, 403]);
  });

  it("opens everything in a workspace to its admins", async () => {
    const as = async (path: string) => (await use(await issuer.token({ sub: "root" }), {}, path)).status;
    const put = (body?: object) => api.call("PUT", `/admin/workspaces/${tenant}/members/root`, body, ADMIN);
    expect(await put()).toMatchObject({ user_id: "root", role: "member" });
    expect(await as("/v2/deployments")).toBe(403);
    expect(await put({ role: "admin" })).toMatchObject({ role: "admin" });
    for (const path of ["/v2/deployments", "/admin/keys"]) expect([path, await as(path)]).toEqual([path, 200]);
    // Said without a role it stays.
    expect(await put({})).toMatchObject({ role: "admin" });
    expect(await put({ role: "member" })).toMatchObject({ role: "member" });
    expect(await as("/v2/deployments")).toBe(403);
  });

  describe("and its user's workspaces", () => {
    const as = async (user: string, tenant_id?: string) =>
      use(await issuer.token({ sub: user }), tenant_id === undefined ? {} : { "X-Tenant-Id": tenant_id });

    it("none: 403", async () => {
      expect(await as("nobody")).toMatchObject({
        status: 403,
        body: { detail: expect.stringContaining("not a member of any workspace") },
      });
      expect((await as("nobody", tenant)).status).toBe(403);
    });

    it("several: one has to be named", async () => {
      const [one, two, three] = [await newWorkspace(api), await newWorkspace(api), await newWorkspace(api)];
      for (const tenant_id of [one, two]) await join("bob", tenant_id);
      expect(await as("bob")).toMatchObject({
        status: 403,
        body: { detail: expect.stringContaining("requires workspace specification") },
      });
      for (const tenant_id of [one, two, one.toUpperCase()]) expect((await as("bob", tenant_id)).status).toBe(200);
      for (const tenant_id of [three, tenant, "default", "x"])
        expect(await as("bob", tenant_id)).toMatchObject({
          status: 403,
          body: { detail: expect.stringContaining("X-Tenant-Id") },
        });
    });

    it("count from the moment in which they change", async () => {
      const tenant_id = await newWorkspace(api);
      expect((await as("carol")).status).toBe(403);
      await join("carol", tenant_id);
      expect((await as("carol")).status).toBe(200);
      await api.call("DELETE", `/admin/workspaces/${tenant_id}/members/carol`, undefined, ADMIN);
      expect((await as("carol")).status).toBe(403);
    });
  });
});

describe("the settings of the issuer", () => {
  const ISSUER = "THREADMILL_OIDC_ISSUER";
  const LOOPBACK = { THREADMILL_ALLOW_LOOPBACK_OAUTH: "1" };
  const WHOLE = { [ISSUER]: "https://id.example", THREADMILL_OIDC_AUDIENCE: AUDIENCE };
  const read = (env: Record<string, string>) =>
    readConfig("serve", { config: "test/graphs/scenarios/langgraph.json" }, env).oidc;

  it.each<[string, Record<string, string>]>([
    ["an issuer without an audience", { [ISSUER]: "https://id.example" }],
    ["an audience without an issuer", { THREADMILL_OIDC_AUDIENCE: AUDIENCE }],
    ["http", { [ISSUER]: "http://id.example", THREADMILL_OIDC_AUDIENCE: AUDIENCE, ...LOOPBACK }],
    ["http on loopback that is not permitted", { [ISSUER]: "http://localhost", THREADMILL_OIDC_AUDIENCE: AUDIENCE }],
    ["a query", { [ISSUER]: "https://id.example/?a=b", THREADMILL_OIDC_AUDIENCE: AUDIENCE }],
    ["no address", { [ISSUER]: "id.example", THREADMILL_OIDC_AUDIENCE: AUDIENCE }],
    ["scopes that are no JSON", { ...WHOLE, THREADMILL_OIDC_SCOPES: "deployments" }],
    ["scopes without values", { ...WHOLE, THREADMILL_OIDC_SCOPES: '{"groups": ["deployments"]}' }],
  ])("are refused with %s", (_, env) => {
    expect(() => read(env)).toThrow(/THREADMILL_OIDC_(ISSUER|SCOPES)/);
  });

  it.each(["https://id.example", "https://id.example/", "https://id.example/realms/one"])("may be %s", (issuer) => {
    expect(read({ [ISSUER]: issuer, THREADMILL_OIDC_AUDIENCE: AUDIENCE })?.issuer).toBe(issuer);
  });
});

describe("the issuer", () => {
  it.each<[string, (issuer: Issuer) => void]>([
    ["does not answer", (issuer) => Object.assign(issuer, { isDown: true })],
    ["has the document of another", (issuer) => Object.assign(issuer, { document: { issuer: "https://id.example" } })],
    [
      "keeps its keys where they could be changed",
      (issuer) => Object.assign(issuer, { document: { jwks_uri: "http://id.example/jwks" } }),
    ],
    ["does not say where its keys are", (issuer) => Object.assign(issuer, { document: { jwks_uri: null } })],
  ])("%s: 503, and its tokens work after it has recovered", async (_, break_) => {
    const issuer = await Issuer.start();
    const api = await closedService("sqlite", {
      THREADMILL_OIDC_ISSUER: issuer.url,
      THREADMILL_OIDC_AUDIENCE: AUDIENCE,
      THREADMILL_ALLOW_LOOPBACK_OAUTH: "1",
    });
    await api.call("PUT", `/admin/workspaces/${await newWorkspace(api)}/members/alice`, undefined, ADMIN);
    const use = async () =>
      api.send("GET", "/app/api/session", undefined, { Authorization: `Bearer ${await issuer.token()}` });
    break_(issuer);
    expect(await use()).toMatchObject({ status: 503, body: { detail: expect.stringContaining("OIDC issuer") } });
    // Whatever is no token of this issuer is refused without asking it, and keys work all the same.
    issuer.asked = [];
    for (const token of ["a.b.c", await issuer.token({ iss: "https://id.example" })])
      expect((await api.send("GET", "/app/api/session", undefined, { Authorization: `Bearer ${token}` })).status).toBe(
        401,
      );
    expect((await api.send("GET", "/app/api/session", undefined, ADMIN)).status).toBe(200);
    expect(issuer.asked).toEqual([]);
    Object.assign(issuer, { isDown: false, document: {} });
    expect((await use()).status).toBe(200);
    await api.stop();
    await issuer.stop();
  });
});
