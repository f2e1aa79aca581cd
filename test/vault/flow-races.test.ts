import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createDatabase, databases, type TestDatabase } from "../support/databases.ts";
import { authorizeInBrowser, OAuthServer } from "../support/oauth-server.ts";
import { until } from "../support/until.ts";
import { CLIENTS, callbackParametersOf, callbackUrlOf, callerOf, TestVault } from "../support/vault.ts";

const { basic, post } = CLIENTS;

describe.each(databases)("deleting tokens while flows are in progress on %s", (name) => {
  let at: TestDatabase;
  let vault: TestVault;
  let server: OAuthServer;
  beforeAll(async () => {
    at = await createDatabase(name);
    vault = await TestVault.on(at);
    server = await OAuthServer.start([basic, post], [callbackUrlOf("basic"), callbackUrlOf("post")]);
    await vault.provider(server, basic);
    await vault.provider(server, post);
  });
  afterAll(async () => {
    await vault.close();
    await server.stop();
    await at.drop();
  });
  beforeEach(() => {
    server.gate = undefined;
  });

  const nothingOf = async (user: ReturnType<typeof callerOf>, provider = "basic") => {
    expect(await vault.tokens(user, provider)).toEqual([]);
    expect((await vault.authenticate(user, provider)).status).toBe("pending");
  };

  it("a deletion while the user is at the provider lets no late callback bring a token back", async () => {
    const user = callerOf("away");
    await vault.connect(user, "basic");
    const { url, auth_id } = await vault.authenticate(user, "basic", { force_new: true });
    const waiting = vault.flows.wait(user, auth_id ?? "", 30, new AbortController().signal);
    const brought = callbackParametersOf(await authorizeInBrowser(url ?? ""));
    await vault.rules.tokens.deleteAll(user, "basic");
    expect(await waiting).toEqual({ status: "not_found", token: null });
    await expect(vault.flows.handleCallback(brought)).rejects.toMatchObject({ code: "flow_not_open" });
    await nothingOf(user);
  });

  it("a deletion between the callback and the provider's answer takes effect, and the provider's token is revoked", async () => {
    const user = callerOf("in between");
    const { url, auth_id } = await vault.authenticate(user, "basic");
    const brought = callbackParametersOf(await authorizeInBrowser(url ?? ""));
    const gate = Promise.withResolvers<void>();
    server.gate = gate.promise;
    const before = server.requests.length;
    const returning = vault.flows.handleCallback(brought);
    await until("the code is on its way", async () => server.requests.slice(before).includes("/token"));
    await vault.rules.tokens.deleteAll(user, "basic");
    gate.resolve();
    expect(await returning).toEqual({ status: "failed", reason: "cancelled" });
    const signal = new AbortController().signal;
    expect(await vault.flows.wait(user, auth_id ?? "", 30, signal)).toEqual({ status: "not_found", token: null });
    await nothingOf(user);
    const [given = ""] = server.issued.slice(-2);
    await until("it is revoked", async () => !(await server.knows(given)));
  });

  it("a deletion touches no flow of another provider, and none of another user", async () => {
    const [user, other] = [callerOf("one"), callerOf("another")];
    const asked = [await vault.authenticate(user, "post"), await vault.authenticate(other, "basic")];
    await vault.rules.tokens.deleteAll(user, "basic");
    for (const { url } of asked)
      expect(await vault.flows.handleCallback(callbackParametersOf(await authorizeInBrowser(url ?? "")))).toEqual({
        status: "connected",
      });
  });

  it("concurrent deletions and callbacks leave no token that a deletion has seen", async () => {
    for (let round = 0; round < 12; round++) {
      const user = callerOf(`meeting ${round}`);
      const { url } = await vault.authenticate(user, "basic");
      const brought = callbackParametersOf(await authorizeInBrowser(url ?? ""));
      const [returned] = await Promise.allSettled([
        vault.flows.handleCallback(brought),
        ...Array.from({ length: 3 }, () => vault.rules.tokens.deleteAll(user, "basic")),
      ]);
      const isConnected = returned.status === "fulfilled" && returned.value.status === "connected";
      // Whichever came first: connected and then deleted, or cancelled.
      if (isConnected) expect(await vault.tokens(user, "basic")).toHaveLength(0);
      else await nothingOf(user);
    }
  });

  it("of flows that end concurrently one becomes the default", async () => {
    const user = callerOf("in several windows");
    const asked = await Promise.all([1, 2, 3, 4].map(() => vault.authenticate(user, "basic")));
    const brought = [];
    for (const { url } of asked) brought.push(callbackParametersOf(await authorizeInBrowser(url ?? "")));
    const ends = await Promise.all(brought.map((one) => vault.flows.handleCallback(one)));
    expect(ends).toEqual(Array(4).fill({ status: "connected" }));
    expect((await vault.tokens(user, "basic")).map(({ is_default }) => is_default)).toEqual([1, 0, 0, 0]);
  });

  it("a token that is deleted during a new grant stays deleted", async () => {
    const user = callerOf("renewing");
    await vault.connect(user, "basic");
    const [token] = await vault.tokens(user, "basic");
    const { token_id = "" } = token ?? {};
    const { url } = await vault.authenticate(user, "basic", { token_id, scopes: ["read", "write"] });
    const brought = callbackParametersOf(await authorizeInBrowser(url ?? ""));
    await vault.rules.tokens.delete(user, token_id);
    expect(await vault.flows.handleCallback(brought)).toEqual({ status: "failed", reason: "token_deleted" });
    await nothingOf(user);
  });

  it("deleting a provider deletes its flows", async () => {
    const user = callerOf("late");
    const own = { provider_id: "short-lived", default_redirect_uri: callbackUrlOf("post") };
    await vault.provider(server, post, own);
    const { url } = await vault.authenticate(user, "short-lived");
    const brought = { ...callbackParametersOf(await authorizeInBrowser(url ?? "")), provider_id: "short-lived" };
    await vault.rules.providers.delete(user, "short-lived");
    await expect(vault.flows.handleCallback(brought)).rejects.toMatchObject({ code: "flow_not_open" });
    await vault.provider(server, post, own);
    await nothingOf(user, "short-lived");
  });
});
