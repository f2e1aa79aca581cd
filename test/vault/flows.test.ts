import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { deleteExpiredFlows, findFlow } from "../../src/access/storage/flows.ts";
import { newId } from "../../src/platform/lib/ids.ts";
import { createDatabase, databases, type TestDatabase } from "../support/databases.ts";
import { authorizeInBrowser, OAuthServer } from "../support/oauth-server.ts";
import { CLIENTS, callbackParametersOf, callbackUrlOf, callerOf, TestVault } from "../support/vault.ts";

const { basic, post, open, withoutPkce } = CLIENTS;

const ELSEWHERE = "https://app.example.com/host-oauth-callback";
const names = ["basic", "post", "public", "without-pkce"];

const DAY_MS = 86_400_000;

const refused = { code: "flow_not_open", status: 400 };

describe.each(databases)("OAuth flows on %s", (name) => {
  let at: TestDatabase;
  let vault: TestVault;
  let server: OAuthServer;
  beforeAll(async () => {
    at = await createDatabase(name);
    vault = await TestVault.on(at);
    server = await OAuthServer.start([basic, post, open, withoutPkce], [...names.map(callbackUrlOf), ELSEWHERE]);
    for (const client of [basic, post, open]) await vault.provider(server, client);
    await vault.provider(server, withoutPkce, { uses_pkce: 0 });
  });
  afterAll(async () => {
    await vault.close();
    await server.stop();
    await at.drop();
  });

  it.each(names)("a user goes to the provider and back, and has a token: client %s", async (provider) => {
    const user = callerOf(`user of ${provider}`);
    const asked = await vault.authenticate(user, provider);
    expect(asked).toMatchObject({ status: "pending", token: null, user_id: user.user_id });
    const url = new URL(asked.url ?? "");
    expect(Object.fromEntries(url.searchParams)).toMatchObject({
      response_type: "code",
      client_id: provider,
      redirect_uri: callbackUrlOf(provider),
      scope: "read",
      ...(provider !== "without-pkce" && { code_challenge_method: "S256" }),
    });
    expect(url.searchParams.get("state")).toMatch(new RegExp(`^${asked.auth_id}\\.[\\w-]{43}$`));
    const back = await authorizeInBrowser(url.href);
    expect(await vault.flows.handleCallback(callbackParametersOf(back))).toEqual({ status: "connected" });
    const given = await vault.authenticate(user, provider);
    expect(given).toMatchObject({ status: "completed", url: null, auth_id: null, user_id: user.user_id });
    expect(await server.knows(given.token ?? "")).toBe(true);
  });

  it("a wait ends with the token as soon as the user has returned, and without a token for other callers", async () => {
    const user = callerOf("waiting");
    const { url, auth_id } = await vault.authenticate(user, "basic");
    const signal = new AbortController().signal;
    const waiting = [1, 2, 3].map(() => vault.flows.wait(user, auth_id ?? "", 30, signal));
    const others = [callerOf("other"), callerOf("waiting", ["tokens"], newId())];
    for (const other of others)
      expect(await vault.flows.wait(other, auth_id ?? "", 30, signal)).toEqual({ status: "not_found", token: null });
    await vault.flows.handleCallback(callbackParametersOf(await authorizeInBrowser(url ?? "")));
    const { token } = await vault.authenticate(user, "basic");
    expect(await Promise.all(waiting)).toEqual(Array(3).fill({ status: "completed", token }));
    for (const other of others)
      expect(await vault.flows.wait(other, auth_id ?? "", 30, signal)).toEqual({ status: "not_found", token: null });
  });

  it("a wait ends with timeout when its time is up, and when the caller disconnects", async () => {
    const user = callerOf("impatient");
    const { auth_id } = await vault.authenticate(user, "basic");
    const client = new AbortController();
    const started = performance.now();
    const left = vault.flows.wait(user, auth_id ?? "", 30, client.signal);
    expect(await vault.flows.wait(user, auth_id ?? "", 0.2, client.signal)).toEqual({ status: "timeout", token: null });
    expect(performance.now() - started).toBeGreaterThan(150);
    client.abort();
    expect(await left).toEqual({ status: "timeout", token: null });
    expect(performance.now() - started).toBeLessThan(10_000);
  });

  it("a service that stops ends its waits", async () => {
    const stopping = await TestVault.on(at);
    const user = callerOf("of a stopping service");
    const { auth_id } = await stopping.authenticate(user, "basic");
    const waiting = stopping.flows.wait(user, auth_id ?? "", 30, new AbortController().signal);
    await stopping.close();
    expect(await waiting).toEqual({ status: "timeout", token: null });
  });

  it("flows are deleted some time after their end, a batch at a time", async () => {
    const over = await TestVault.on(at, { flow_ttl_ms: -DAY_MS });
    const old = [1, 2, 3].map(() => over.authenticate(callerOf("of yesterday"), "basic"));
    const ids = (await Promise.all(old)).map(({ auth_id }) => auth_id ?? "");
    const { auth_id: young = "" } = await vault.authenticate(callerOf("of today"), "basic");
    const sweep = (limit: number) => vault.database.write((tx) => deleteExpiredFlows(tx, DAY_MS - 1000, limit));
    expect([await sweep(2), await sweep(2), await sweep(2)]).toEqual([2, 1, 0]);
    for (const id of ids) expect(await findFlow(vault.database.read, id)).toBeUndefined();
    expect(await findFlow(vault.database.read, young ?? "")).toBeDefined();
    await over.close();
  });

  it("a wait for an unknown flow returns not_found", async () => {
    const { signal } = new AbortController();
    for (const id of [newId(), "", "no id at all", "x".repeat(5000)])
      expect(await vault.flows.wait(callerOf("nobody"), id, 30, signal)).toEqual({ status: "not_found", token: null });
  });

  it("a state is valid for one callback, even when two arrive concurrently", async () => {
    const { url } = await vault.authenticate(callerOf("replayed"), "basic");
    const brought = callbackParametersOf(await authorizeInBrowser(url ?? ""));
    const both = await Promise.allSettled([vault.flows.handleCallback(brought), vault.flows.handleCallback(brought)]);
    expect(both.map((one) => (one.status === "fulfilled" ? one.value : one.reason.code)).sort()).toEqual(
      [{ status: "connected" }, "flow_not_open"].sort(),
    );
    await expect(vault.flows.handleCallback(brought)).rejects.toMatchObject(refused);
  });

  it("a state that was made up, shortened or taken from another flow is refused, and the flow stays open", async () => {
    const user = callerOf("guessed");
    const { url, auth_id } = await vault.authenticate(user, "basic");
    const other = await vault.authenticate(user, "basic");
    const brought = callbackParametersOf(await authorizeInBrowser(url ?? ""));
    const state = brought.state ?? "";
    const nonceOf = (address: string | null) => new URL(address ?? "").searchParams.get("state")?.split(".")[1];
    const wrong = [
      undefined,
      "",
      ".",
      auth_id ?? "",
      `${auth_id}.`,
      state.slice(0, -1),
      `${state}x`,
      `${newId()}.${state.split(".")[1]}`,
      `${auth_id}.${nonceOf(other.url)}`,
      createHash("sha256").update(state).digest("hex"),
    ];
    for (const made_up of wrong)
      await expect(vault.flows.handleCallback({ ...brought, state: made_up }), made_up).rejects.toMatchObject(refused);
    await expect(vault.flows.handleCallback({ ...brought, code: undefined })).rejects.toMatchObject(refused);
    expect(await vault.flows.handleCallback(brought)).toEqual({ status: "connected" });
  });

  it("a state at the callback of another provider is refused", async () => {
    const user = callerOf("mixed up");
    const { url } = await vault.authenticate(user, "basic");
    const brought = callbackParametersOf(await authorizeInBrowser(url ?? ""));
    for (const provider_id of ["post", "nowhere", "BASIC", ""])
      await expect(vault.flows.handleCallback({ ...brought, provider_id })).rejects.toMatchObject(refused);
    expect((await vault.authenticate(user, "post")).status).toBe("pending");
  });

  it("an answer that names another issuer gives no token, and ends the flow", async () => {
    const user = callerOf("misled");
    const { url } = await vault.authenticate(user, "basic");
    const brought = callbackParametersOf(await authorizeInBrowser(url ?? ""));
    const end = await vault.flows.handleCallback({ ...brought, iss: "https://evil.example.com" });
    expect(end).toEqual({ status: "failed", reason: "the response is not a valid OAuth response" });
    await expect(vault.flows.handleCallback(brought)).rejects.toMatchObject(refused);
    expect((await vault.authenticate(user, "basic")).status).toBe("pending");
  });

  it("a user who returns after the time limit is refused", async () => {
    const quick = await TestVault.on(at, { flow_ttl_ms: 1 });
    const user = callerOf("slow");
    const { url, auth_id } = await quick.authenticate(user, "basic");
    const brought = callbackParametersOf(await authorizeInBrowser(url ?? ""));
    await expect(vault.flows.handleCallback(brought)).rejects.toMatchObject(refused);
    const { signal } = new AbortController();
    expect(await vault.flows.wait(user, auth_id ?? "", 30, signal)).toEqual({ status: "not_found", token: null });
    await quick.close();
  });

  it("a user who denies access ends the wait, and can read the reason", async () => {
    const user = callerOf("unwilling");
    const { url, auth_id } = await vault.authenticate(user, "basic");
    const waiting = vault.flows.wait(user, auth_id ?? "", 30, new AbortController().signal);
    const back = await authorizeInBrowser(url ?? "", { decision: "deny" });
    expect(back.searchParams.get("error")).toBe("access_denied");
    expect(await vault.flows.handleCallback(callbackParametersOf(back))).toEqual({
      status: "failed",
      reason: "access_denied",
    });
    expect(await waiting).toEqual({ status: "not_found", token: null });
  });

  it("the wrong verifier gets no token: PKCE is checked at the server", async () => {
    const user = callerOf("tampered");
    const [first, second] = [await vault.authenticate(user, "public"), await vault.authenticate(user, "public")];
    const brought = callbackParametersOf(await authorizeInBrowser(first.url ?? ""));
    // The code of one way there, brought back on the other: its verifier is another.
    const crossed = { ...brought, state: new URL(second.url ?? "").searchParams.get("state") ?? "" };
    expect(await vault.flows.handleCallback(crossed)).toEqual({ status: "failed", reason: "invalid_grant" });
    expect((await vault.authenticate(user, "public")).status).toBe("pending");
  });

  it("only the user who started the flow may return its code", async () => {
    const user = callerOf("sent");
    const { url } = await vault.authenticate(user, "post");
    const brought = callbackParametersOf(await authorizeInBrowser(url ?? ""));
    for (const other of [callerOf("somebody else"), callerOf("sent", ["admin"], newId())])
      await expect(vault.flows.handleCallback(brought, other)).rejects.toMatchObject(refused);
    expect(await vault.flows.handleCallback(brought, user)).toEqual({ status: "connected" });
  });

  it("the redirect URI is the one that the operator has set", async () => {
    const own = { provider_id: "own way", client_id: "basic" };
    const allowed = JSON.stringify([ELSEWHERE]);
    await vault.provider(server, basic, { ...own, default_redirect_uri: ELSEWHERE, allowed_redirect_uris: allowed });
    const user = callerOf("elsewhere");
    const { url } = await vault.authenticate(user, "own way");
    const back = await authorizeInBrowser(url ?? "");
    expect(back.href.startsWith(`${ELSEWHERE}?`)).toBe(true);
    expect(await vault.flows.handleCallback({ ...callbackParametersOf(back), provider_id: "own way" }, user)).toEqual({
      status: "connected",
    });
    await vault.provider(server, basic, { ...own, provider_id: "not allowed", allowed_redirect_uris: allowed });
    await expect(vault.authenticate(user, "not allowed")).rejects.toMatchObject({ code: "redirect_uri_not_allowed" });
  });

  it("the configured parameters of a provider do not replace the parameters that protect the flow", async () => {
    const params = {
      access_type: "offline",
      state: "x",
      redirect_uri: "https://evil.example.com",
      code_challenge: "x",
    };
    await vault.provider(server, basic, { provider_id: "with params", authorization_params: JSON.stringify(params) });
    const { url, auth_id } = await vault.authenticate(callerOf("params"), "with params");
    const sent = new URL(url ?? "").searchParams;
    expect(sent.get("access_type")).toBe("offline");
    expect(sent.get("redirect_uri")).toBe(callbackUrlOf("with%20params"));
    expect(sent.getAll("state")).toEqual([expect.stringContaining(`${auth_id}.`)]);
    expect(sent.get("code_challenge")).toMatch(/^[\w-]{43}$/);
  });

  it("an unknown provider, and one of another workspace, is not found", async () => {
    for (const caller of [callerOf("user"), callerOf("user", ["admin"], newId())])
      await expect(
        vault.authenticate(caller, caller.tenant_id === callerOf("").tenant_id ? "nowhere" : "basic"),
      ).rejects.toMatchObject({
        code: "oauth_provider_not_found",
      });
  });
});
