import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../../support/databases.ts";
import { FlowService, ORIGIN } from "./flow-service.ts";

const BRIDGE = "https://app.example.com/host-oauth-callback/bridged";

describe.each(databases)("OAuth flows over HTTP on %s", (database) => {
  let flows: FlowService;
  beforeAll(async () => {
    const redirect_uris = [`${ORIGIN}/host-oauth-callback/old-style`, BRIDGE];
    flows = await FlowService.start(database, { redirect_uris });
    await flows.provider("old-style", { default_redirect_uri: redirect_uris[0] });
    await flows.provider("bridged", { default_redirect_uri: BRIDGE, allowed_redirect_uris: [BRIDGE] });
  });
  afterAll(() => flows.stop());

  it("authenticate, the browser's way, the page at its end, and the token", async () => {
    const user = await flows.user("ada");
    const asked = await user.authenticate();
    expect(asked).toEqual({
      status: "pending",
      url: expect.stringContaining(`${flows.server.url}/auth?`),
      auth_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      token: null,
      user_id: "ada",
      metadata: null,
    });
    const sent = await flows.browse(await flows.goAndReturn(asked.url));
    expect(sent.status).toBe(302);
    const location = sent.headers.get("location") ?? "";
    expect(location).toBe("../done?status=connected&provider=acme");
    expect(Object.fromEntries(sent.headers)).toMatchObject({
      "referrer-policy": "no-referrer",
      "cache-control": "no-store",
    });
    const page = await flows.browse("/v2/auth/done?status=connected&provider=acme");
    expect(page).toMatchObject({ status: 200, text: expect.stringContaining("Connected: acme") });
    expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(page.text).not.toContain("<script");
    const given = await user.authenticate();
    expect(given).toEqual({
      status: "completed",
      url: null,
      auth_id: null,
      token: expect.any(String),
      user_id: "ada",
      metadata: {},
    });
    expect(await user.send("GET", `/v2/auth/wait/${asked.auth_id}`)).toMatchObject({
      status: 200,
      body: { status: "completed", token: given.token },
    });
  });

  it("the same below /api-host", async () => {
    const user = await flows.user("below");
    const body = { provider: "acme", scopes: ["read"] };
    const { url, auth_id } = (await user.send("POST", "/api-host/v2/auth/authenticate", body)).body;
    const waiting = user.send("GET", `/api-host/v2/auth/wait/${auth_id}?timeout=30`);
    const back = await flows.goAndReturn(url);
    expect((await flows.browse(`/api-host${back}`)).status).toBe(302);
    expect((await waiting).body).toMatchObject({ status: "completed" });
    expect((await flows.browse("/api-host/v2/auth/done?status=connected&provider=acme")).status).toBe(200);
  });

  it("the callback of LangGraph's web app leads to the same page", async () => {
    const user = await flows.user("old");
    const { url } = await user.authenticate({ provider: "old-style" });
    const path = await flows.goAndReturn(url);
    expect(path).toMatch(/^\/host-oauth-callback\/old-style\?/);
    const { headers } = await flows.browse(path);
    expect(new URL(headers.get("location") ?? "", `${ORIGIN}${path}`).pathname).toBe("/v2/auth/done");
    expect((await user.authenticate({ provider: "old-style" })).status).toBe("completed");
  });

  it("a web app that is the redirect URI passes on the parameters on behalf of its user", async () => {
    const [user, other] = [await flows.user("of the app"), await flows.user("not of the app")];
    const { url } = await user.authenticate({ provider: "bridged" });
    const path = await flows.goAndReturn(url);
    const { code, state } = Object.fromEntries(new URLSearchParams(path.split("?")[1]));
    const post = (who: typeof user, body: object) => who.send("POST", "/v2/auth/callback/bridged", body);
    expect(await post(other, { code, state })).toMatchObject({
      status: 400,
      body: { detail: expect.stringContaining("This authorization cannot be completed") },
    });
    expect(await post(user, { code, state })).toMatchObject({
      status: 200,
      body: { status: "connected", provider_id: "bridged" },
    });
    expect((await post(user, { code, state })).status).toBe(400);
    expect(await post(user, { code })).toMatchObject({ status: 422, body: { detail: [{ loc: ["body", "state"] }] } });
    const { status } = await flows.service.request("POST", "/v2/auth/callback/bridged", { code, state });
    expect(status).toBe(401);
    expect((await user.authenticate({ provider: "bridged" })).status).toBe("completed");
  });

  it("a code that yields no token is reported to the web app with an error message", async () => {
    const user = await flows.user("unlucky");
    const { url } = await user.authenticate({ provider: "bridged" });
    const state = new URL(url).searchParams.get("state");
    expect(await user.send("POST", "/v2/auth/callback/bridged", { code: "made up", state })).toMatchObject({
      status: 400,
      body: { detail: 'The authorization at "bridged" failed: invalid_grant. Start a new authorization.' },
    });
  });

  it("a refusal by the user, and the issuer of the response, are passed on by the web app, too", async () => {
    const user = await flows.user("refusing");
    const { url, auth_id } = await user.authenticate({ provider: "bridged" });
    const state = new URL(url).searchParams.get("state");
    const answer = await user.send("POST", "/v2/auth/callback/bridged", { error: "access_denied", state });
    expect(answer).toMatchObject({ status: 400, body: { detail: expect.stringContaining("access_denied") } });
    expect((await user.send("GET", `/v2/auth/wait/${auth_id}?timeout=1`)).body.status).toBe("not_found");
    expect((await user.send("POST", "/v2/auth/callback/bridged", { state })).status).toBe(422);
  });

  it("a browser with any other request gets a page with an error, which never contains an invented provider", async () => {
    const user = await flows.user("strayed");
    const { url } = await user.authenticate();
    const state = new URL(url).searchParams.get("state");
    for (const path of [
      "/v2/auth/callback/acme",
      "/v2/auth/callback/acme?code=1&state=2",
      "/v2/auth/callback/acme?state=%00&error=%ff",
      `/v2/auth/callback/%2e%2e%2f?code=1&state=${state}`,
      `/v2/auth/callback/<script>?code=1&state=${state}`,
      `/v2/auth/setup/acme?installation_id=7&setup_action=install`,
      `/host-oauth-callback/acme?code=1`,
    ]) {
      const answer = await flows.browse(path);
      expect([path, answer.status]).toEqual([path, 400]);
      expect(answer.text).toContain("This authorization cannot be completed");
      expect(answer.text).not.toContain("<script>");
    }
    const page = await flows.browse("/v2/auth/done?status=connected&provider=%3Cimg%20src=x%3E%20Pay%20here");
    expect(page.text).toContain("<h1>Connected</h1>");
    expect((await flows.browse("/v2/auth/done")).text).toContain("Not connected");
  });

  it("a user who denies access returns to the page, and the wait ends", async () => {
    const user = await flows.user("no");
    const { url, auth_id } = await user.authenticate();
    const waiting = user.send("GET", `/v2/auth/wait/${auth_id}?timeout=30`);
    const { headers } = await flows.browse(await flows.goAndReturn(url, { decision: "deny" }));
    expect(headers.get("location")).toBe("../done?status=failed&provider=acme");
    expect((await waiting).body).toEqual({ status: "not_found", token: null });
    expect((await user.send("GET", "/v2/auth/token-events")).body).toMatchObject([
      { event_type: "authorization_failed", reason: "access_denied", detail: { message: "The user said no." } },
    ]);
  });

  it("a wait responds with timeout when its time is up", async () => {
    const user = await flows.user("waiting");
    const { auth_id } = await user.authenticate();
    const started = performance.now();
    const answer = await user.send("GET", `/v2/auth/wait/${auth_id}?timeout=2`);
    expect(performance.now() - started).toBeGreaterThan(1_900);
    expect([answer.status, JSON.parse(answer.text)]).toEqual([200, { status: "timeout", token: null }]);
    for (const timeout of ["0", "-5"])
      expect((await user.send("GET", `/v2/auth/wait/${auth_id}?timeout=${timeout}`)).body.status).toBe("timeout");
    expect(await user.send("GET", `/v2/auth/wait/${auth_id}?timeout=soon`)).toMatchObject({
      status: 422,
      body: { detail: [{ type: "int_parsing", loc: ["query", "timeout"] }] },
    });
  });

  it("two users, and one user in two workspaces, never see each other's tokens", async () => {
    const elsewhere = await flows.workspace(`elsewhere on ${database}`);
    const [bob, eve, bobElsewhere] = [
      await flows.user("bob"),
      await flows.user("eve"),
      await flows.user("bob", ["tokens"], elsewhere),
    ];
    const { url, auth_id } = await bob.authenticate();
    await flows.browse(await flows.goAndReturn(url, { account: "bob" }));
    const { token } = await bob.authenticate();
    for (const other of [eve, bobElsewhere]) {
      const wait = await other.send("GET", `/v2/auth/wait/${auth_id}`);
      expect(wait.body).toEqual({ status: "not_found", token: null });
      expect((await other.send("GET", "/v2/auth/tokens")).body).toEqual([]);
    }
    const [{ id }] = (await bob.send("GET", "/v2/auth/tokens")).body;
    expect(await eve.authenticate()).toMatchObject({ status: "pending", token: null, user_id: "eve" });
    const stolen = { provider: "acme", scopes: ["read"], token_id: id };
    expect((await eve.send("POST", "/v2/auth/authenticate", stolen)).status).toBe(404);
    expect((await bobElsewhere.send("POST", "/v2/auth/authenticate", stolen)).status).toBe(404);
    expect((await bob.authenticate({ token_id: id })).token).toBe(token);
  });

  it("a service may name the user of a request, other callers only themselves", async () => {
    const [service, carl, dora] = [
      await flows.user("a service", ["tokens", "service"]),
      await flows.user("carl"),
      await flows.user("dora"),
    ];
    for (const name of [{ ls_user_id: "carl" }, { user_id: "carl" }, { ls_user_id: "carl", user_id: "dora" }]) {
      expect((await service.authenticate(name)).user_id).toBe("carl");
      expect((await dora.authenticate(name)).user_id).toBe("dora");
    }
    const { url, auth_id } = await service.authenticate({ ls_user_id: "carl" });
    const waiting = service.send("GET", `/v2/auth/wait/${auth_id}?timeout=30`);
    expect((await dora.send("GET", `/v2/auth/wait/${auth_id}`)).body.status).toBe("not_found");
    await flows.browse(await flows.goAndReturn(url));
    const { token } = await carl.authenticate();
    expect((await waiting).body).toEqual({ status: "completed", token });
    expect((await service.authenticate({ ls_user_id: "carl" })).token).toBe(token);
    expect((await service.authenticate()).status).toBe("pending");
    expect((await dora.authenticate({ ls_user_id: "carl" })).status).toBe("pending");
  });

  it("tokens must cover the requested scopes; a grant for more scopes replaces the token", async () => {
    const user = await flows.user("growing");
    await flows.connect(user);
    const [before] = (await user.send("GET", "/v2/auth/tokens")).body;
    const more = await user.authenticate({ scopes: ["write"] });
    expect(more.status).toBe("pending");
    expect(new URL(more.url).searchParams.get("scope")).toBe("read write");
    await flows.browse(await flows.goAndReturn(more.url));
    const [after, ...others] = (await user.send("GET", "/v2/auth/tokens")).body;
    expect([after.id, after.scopes, others]).toEqual([before.id, ["read", "write"], []]);
    expect((await user.authenticate({ scopes: ["write", "read"] })).status).toBe("completed");
    expect((await user.authenticate({ scopes: [] })).status).toBe("completed");
  });

  it("force_new adds an account, which is the default or not", async () => {
    const user = await flows.user("of two accounts");
    await flows.connect(user);
    await flows.connect(user, { force_new: true, is_default: false });
    const list = (await user.send("GET", "/v2/auth/tokens")).body;
    expect(list.map(({ is_default }: { is_default: boolean }) => is_default)).toEqual([true, false]);
    const given = await Promise.all(
      [{}, { token_id: list[0].id }, { token_id: list[1].id }].map((body) => user.authenticate(body)),
    );
    expect(given[0]?.token).toBe(given[1]?.token);
    expect(given[0]?.token).not.toBe(given[2]?.token);
    await flows.connect(user, { force_new: true });
    expect((await user.authenticate()).token).not.toBe(given[0]?.token);
  });

  it("an agent gets the token that it is connected to, before the default", async () => {
    const user = await flows.user("with agents");
    await flows.connect(user);
    const { token: standard } = await user.authenticate();
    expect((await user.authenticate({ agent_id: "new agent" })).token).toBe(standard);
    await flows.connect(user, { agent_id: "an agent", force_new: true, is_default: false });
    const { token: own } = await user.authenticate({ agent_id: "an agent" });
    expect(own).not.toBe(standard);
    expect((await user.authenticate({ agent_id: "another agent" })).token).toBe(standard);
    expect((await user.send("GET", "/v2/auth/agents/an%20agent/connections")).body.data).toHaveLength(1);
    // Without a default, an agent that is connected to nothing has to be.
    const list = (await user.send("GET", "/v2/auth/tokens")).body;
    await user.send("PATCH", `/v2/auth/tokens/${list[0].id}/metadata`, { is_default: false });
    expect(await user.authenticate({ agent_id: "another agent" })).toMatchObject({
      status: "connection_required",
      token: null,
      url: expect.stringContaining(flows.server.url),
      auth_id: expect.any(String),
    });
    expect((await user.authenticate()).status).toBe("pending");
    const eve = await flows.user("eve with agents");
    expect((await eve.authenticate({ agent_id: "an agent" })).status).toBe("pending");
  });

  it("a GitHub App's setup: an update is good, an installation with a code is a callback", async () => {
    const user = await flows.user("installer");
    const update = await flows.browse("/v2/auth/setup/acme?setup_action=update&installation_id=7");
    expect([update.status, update.headers.get("location")]).toEqual([302, "../done?status=connected&provider=acme"]);
    const { url } = await user.authenticate();
    const path = await flows.goAndReturn(url);
    const setup = path.replace("/callback/", "/setup/");
    const answer = await flows.browse(`${setup}&setup_action=install&installation_id=7`);
    expect(answer.headers.get("location")).toBe("../done?status=connected&provider=acme");
    expect(await user.authenticate()).toMatchObject({ status: "completed", metadata: { installation_id: 7 } });
  });

  it("an unknown provider returns 404, and an invalid body returns the fields with errors", async () => {
    const user = await flows.user("asking");
    const send = (body: unknown) => user.send("POST", "/v2/auth/authenticate", body);
    expect(await send({ provider: "nowhere", scopes: [] })).toMatchObject({
      status: 404,
      body: { detail: "OAuth provider 'nowhere' not found" },
    });
    expect((await send({})).body.detail.map(({ loc }: { loc: string[] }) => loc[1])).toEqual(["provider", "scopes"]);
    expect(await send({ provider: "acme", scopes: "read", token_id: "7", force_new: "maybe" })).toMatchObject({
      status: 422,
      body: { detail: [{ type: "list_type" }, { type: "bool_parsing" }, { type: "uuid_parsing" }] },
    });
    const nulls = { user_id: null, ls_user_id: null, agent_id: null, token_id: null, unknown: 1 };
    expect((await send({ provider: "acme", scopes: [], ...nulls })).status).toBe(200);
  });
});

describe.each(databases.filter((name) => name === "postgres"))("two processes on %s", (database) => {
  it("a wait in one ends when the user comes back to the other", async () => {
    const flows = await FlowService.start(database);
    const other = await flows.startAnother();
    const here = await flows.user("waiting");
    const there = await flows.user("waiting", ["tokens"], undefined, other.send);
    const { url, auth_id } = await here.authenticate();
    const started = performance.now();
    const waiting = there.send("GET", `/v2/auth/wait/${auth_id}?timeout=30`);
    await flows.browse(await flows.goAndReturn(url));
    expect((await waiting).body).toMatchObject({ status: "completed", token: (await here.authenticate()).token });
    expect(performance.now() - started).toBeLessThan(20_000);
    await other.threadmill.stop();
    await flows.stop();
  });
});
