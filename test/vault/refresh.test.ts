import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { acquireRefreshLease, deleteTokens, findToken, updateToken } from "../../src/access/storage/tokens.ts";
import { openToken, sealToken } from "../../src/access/tokens/token-secret.ts";
import { createDatabase, databases, type TestDatabase } from "../support/databases.ts";
import { OAuthServer } from "../support/oauth-server.ts";
import { until } from "../support/until.ts";
import { CLIENTS, callbackUrlOf, callerOf, TestVault, testSeal } from "../support/vault.ts";

const { basic } = CLIENTS;
const unavailable = { code: "provider_unavailable", status: 503 };

describe.each(databases)("refreshing tokens on %s", (name) => {
  let at: TestDatabase;
  let vault: TestVault;
  let server: OAuthServer;
  beforeAll(async () => {
    at = await createDatabase(name);
    vault = await TestVault.on(at, { provider_timeout_ms: 3_000 });
    server = await OAuthServer.start([basic], [callbackUrlOf("basic")]);
    await vault.provider(server, basic);
  });
  afterAll(async () => {
    await vault.close();
    await server.stop();
    await at.drop();
  });
  beforeEach(() => {
    server.behavior = "normal";
    server.gate = undefined;
    server.access_ttl_s = 3600;
  });

  const secretOf = async (user: ReturnType<typeof callerOf>) => {
    const [token] = await vault.tokens(user, "basic");
    if (!token) throw new Error(`${user.user_id} has no token.`);
    return openToken(testSeal, token);
  };

  it("a token that is valid for longer than a minute is returned unchanged", async () => {
    const user = callerOf("fresh");
    await vault.connect(user, "basic");
    const before = server.refreshes;
    const [first, second] = [await vault.authenticate(user, "basic"), await vault.authenticate(user, "basic")];
    expect(first).toEqual(second);
    expect(server.refreshes).toBe(before);
  });

  it("a token that expires within a minute is refreshed before it is returned, and its refresh token rotates", async () => {
    const user = callerOf("nearly over");
    server.access_ttl_s = 50;
    await vault.connect(user, "basic");
    const old = await secretOf(user);
    server.access_ttl_s = 3600;
    const given = await vault.authenticate(user, "basic");
    const renewed = await secretOf(user);
    expect(given).toMatchObject({ status: "completed", token: renewed.access_token });
    expect(renewed.access_token).not.toBe(old.access_token);
    expect(renewed.refresh_token).not.toBe(old.refresh_token);
    await vault.expireTokens(user, "basic");
    expect((await vault.authenticate(user, "basic")).status).toBe("completed");
  });

  it("of 50 concurrent callers one refreshes, and all get the new token", async () => {
    const user = callerOf("crowd");
    await vault.connect(user, "basic");
    for (let round = 0; round < 3; round++) {
      await vault.expireTokens(user, "basic");
      const before = server.refreshes;
      const answers = await Promise.all(Array.from({ length: 50 }, () => vault.authenticate(user, "basic")));
      const { access_token } = await secretOf(user);
      expect(new Set(answers.map(({ status, token }) => `${status} ${token}`))).toEqual(
        new Set([`completed ${access_token}`]),
      );
      expect(server.refreshes - before).toBe(1);
    }
  });

  it.runIf(name === "postgres")("of 50 concurrent callers of several processes one refreshes", async () => {
    const processes = [vault, await TestVault.on(at), await TestVault.on(at)];
    const user = callerOf("crowd of processes");
    await vault.connect(user, "basic");
    for (let round = 0; round < 3; round++) {
      await vault.expireTokens(user, "basic");
      const before = server.refreshes;
      const answers = await Promise.all(
        Array.from({ length: 50 }, (_, i) => (processes[i % 3] as TestVault).authenticate(user, "basic")),
      );
      expect(new Set(answers.map(({ token }) => token))).toEqual(new Set([(await secretOf(user)).access_token]));
      expect(server.refreshes - before).toBe(1);
    }
    await Promise.all(processes.slice(1).map((process) => process.close()));
  });

  it("a token that was withdrawn at the provider is deleted with its connections, and its user can read why", async () => {
    const user = callerOf("withdrawn");
    await vault.connect(user, "basic", { agent_id: "an agent" });
    await server.withdraw((await secretOf(user)).refresh_token ?? "");
    await vault.expireTokens(user, "basic");
    expect(await vault.authenticate(user, "basic")).toMatchObject({ status: "pending", token: null });
    expect(await vault.tokens(user, "basic")).toEqual([]);
    expect(await vault.events(user)).toMatchObject([
      { event_type: "token_deleted", reason: "invalid_grant", source: "refresh", provider_id: "basic", agent_id: null },
      { event_type: "token_created", source: "flow", agent_id: "an agent" },
    ]);
    await vault.connect(user, "basic");
    expect((await vault.authenticate(user, "basic")).status).toBe("completed");
  });

  it.each(["error", "silent"] as const)("a token is kept when the provider answers with %s", async (behavior) => {
    const user = callerOf(`patient with ${behavior}`);
    server.access_ttl_s = 50;
    await vault.connect(user, "basic");
    const { access_token } = await secretOf(user);
    server.behavior = behavior;
    // Good for 50 s more: given out all the same.
    expect(await vault.authenticate(user, "basic")).toMatchObject({ status: "completed", token: access_token });
    await vault.expireTokens(user, "basic");
    const before = server.requests.length;
    const asked = Array.from({ length: 10 }, () => vault.authenticate(user, "basic"));
    for (const answer of await Promise.allSettled(asked))
      expect(answer).toMatchObject({ status: "rejected", reason: unavailable });
    // One tried, and the others took its word for it; perhaps another came too late to hear of it.
    const tries = server.requests.slice(before).filter((path) => path === "/token").length;
    if (behavior === "silent") expect(tries).toBeLessThan(3);
    server.behavior = "normal";
    expect((await vault.authenticate(user, "basic")).status).toBe("completed");
  });

  it("the error of a provider that does not answer contains no secret", async () => {
    const user = callerOf("discreet");
    await vault.connect(user, "basic");
    await vault.expireTokens(user, "basic");
    server.behavior = "error";
    const { access_token, refresh_token } = await secretOf(user);
    const error: Error = await vault.authenticate(user, "basic").then(
      () => expect.unreachable(),
      (reason) => reason,
    );
    expect(error.message).toBe('The token for "basic" has expired and could not be refreshed: status 500. Try again.');
    for (const secret of [access_token, refresh_token, basic.client_secret])
      expect(JSON.stringify([error.message, error.cause])).not.toContain(secret);
  });

  it("a token that is deleted while it is refreshed stays deleted, and what came of it is revoked", async () => {
    const user = callerOf("deleted meanwhile");
    await vault.connect(user, "basic");
    await vault.expireTokens(user, "basic");
    const [token] = await vault.tokens(user, "basic");
    const gate = Promise.withResolvers<void>();
    server.gate = gate.promise;
    const before = server.requests.length;
    const asked = vault.authenticate(user, "basic");
    await until("the refresh has begun", async () => server.requests.slice(before).includes("/token"));
    await vault.database.write((tx) => deleteTokens(tx, [token?.token_id ?? ""]));
    gate.resolve();
    expect(await asked).toMatchObject({ status: "pending", token: null });
    expect(await vault.tokens(user, "basic")).toEqual([]);
    const renewed = server.issued.at(-2) ?? "";
    await until("the new token is revoked", async () => !(await server.knows(renewed)));
  });

  it("a token that is renewed while its refresh is refused is the renewed one", async () => {
    const user = callerOf("renewed meanwhile");
    await vault.connect(user, "basic");
    await vault.expireTokens(user, "basic");
    const [token] = await vault.tokens(user, "basic");
    const { token_id = "" } = token ?? {};
    await server.withdraw((await secretOf(user)).refresh_token ?? "");
    const gate = Promise.withResolvers<void>();
    server.gate = gate.promise;
    const before = server.requests.length;
    const asked = vault.authenticate(user, "basic");
    await until("the refresh has begun", async () => server.requests.slice(before).includes("/token"));
    const secret = sealToken(testSeal, { tenant_id: user.tenant_id, token_id }, { access_token: "renewed" });
    await vault.database.write((tx) => updateToken(tx, token_id, { secret, expires_at: null, refresh_holder: null }));
    gate.resolve();
    expect(await asked).toMatchObject({ status: "completed", token: "renewed" });
  });

  it("a refresh that is ongoing when the process stops is stored before it ends", async () => {
    const stopping = await TestVault.on(at);
    const user = callerOf("of a stopping process");
    await vault.connect(user, "basic");
    await vault.expireTokens(user, "basic");
    const gate = Promise.withResolvers<void>();
    server.gate = gate.promise;
    const asked = stopping.authenticate(user, "basic");
    const [token] = await vault.tokens(user, "basic");
    const holder = async () =>
      (await findToken(vault.database.read, user.tenant_id, token?.token_id ?? ""))?.refresh_holder;
    await until("the refresh is ongoing", async () => typeof (await holder()) === "string");
    const stopped = stopping.rules.ended().then(holder);
    gate.resolve();
    server.gate = undefined;
    expect(await stopped).toBeNull();
    expect((await asked).status).toBe("completed");
    await stopping.close();
  });

  it("a process that exits during a refresh holds the token no longer than the time limit", async () => {
    const user = callerOf("orphan");
    await vault.connect(user, "basic");
    await vault.expireTokens(user, "basic");
    const [token] = await vault.tokens(user, "basic");
    const { token_id = "" } = token ?? {};
    const held = await vault.database.write((tx) => acquireRefreshLease(tx, token_id, "a dead holder", 300));
    expect(held?.refresh_holder).toBe("a dead holder");
    expect((await vault.authenticate(user, "basic")).status).toBe("completed");
    expect(await findToken(vault.database.read, user.tenant_id, token_id)).toMatchObject({ refresh_holder: null });
  });

  it("a token that cannot be refreshed is replaced by a new grant after it has expired", async () => {
    const user = callerOf("without refresh token");
    await vault.connect(user, "basic");
    const [token] = await vault.tokens(user, "basic");
    const { token_id = "" } = token ?? {};
    const secret = sealToken(testSeal, { tenant_id: user.tenant_id, token_id }, { access_token: "only this" });
    await vault.database.write((tx) => updateToken(tx, token_id, { secret }));
    expect(await vault.authenticate(user, "basic")).toMatchObject({ status: "completed", token: "only this" });
    await vault.expireTokens(user, "basic");
    expect(await vault.authenticate(user, "basic")).toMatchObject({ status: "pending" });
    expect(await vault.authenticate(user, "basic", { token_id })).toMatchObject({
      status: "token_expired",
      url: expect.stringContaining(server.url),
      auth_id: expect.any(String),
    });
    await vault.connect(user, "basic");
    expect(await vault.tokens(user, "basic")).toMatchObject([{ token_id }]);
    expect((await vault.authenticate(user, "basic", { token_id })).status).toBe("completed");
  });
});
