import { sql } from "kysely";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../../support/databases.ts";
import { openOn } from "../../support/storage.ts";
import { AuthServiceApi, ISO, provider, type User, type Wire } from "./api.ts";

const SUMMARY = [
  "id",
  "provider_id",
  "provider_account_label",
  "scopes",
  "expires_at",
  "is_default",
  "created_at",
  "updated_at",
];
const EVENT = [
  "id",
  "provider_id",
  "agent_id",
  "event_type",
  "reason",
  "source",
  "provider_account_label",
  "scopes",
  "detail",
  "acknowledged_at",
  "created_at",
];
const CONNECTION = [
  "id",
  "agent_id",
  "oauth_token_id",
  "provider_id",
  "provider_account_label",
  "scopes",
  "expires_at",
  "created_by",
  "created_at",
];

describe.each(databases)("OAuth tokens on %s", (database) => {
  let api: AuthServiceApi;
  let names = 0;
  beforeAll(async () => {
    api = await AuthServiceApi.start(database);
  });
  afterAll(() => api.stop());

  /** A user whom no other test knows, and a provider in a workspace of their own. */
  const newUser = async (): Promise<User> => {
    const user = await api.user("ada", await api.newWorkspace(`workspace ${++names}`));
    await user.call("POST", "/providers", provider("github"));
    return user;
  };
  const give = async (user: User, more: object = {}): Promise<string> =>
    (await user.call("POST", "/tokens/import", { provider_id: "github", access_token: "t", ...more })).token_id;

  describe("that are imported", () => {
    it("are listed without the secret, and are returned to callers that request them", async () => {
      const ada = await newUser();
      expect(await ada.call("GET", "/tokens/exists?provider_id=github")).toEqual({ has_token: false });
      const before = Date.now();
      const answer = await ada.call("POST", "/tokens/import", {
        provider_id: "github",
        access_token: "canary-access",
        refresh_token: "canary-refresh",
        expires_in_seconds: "3600",
        scopes: ["repo", "user"],
        metadata: { instance_url: "https://x.example.com" },
      });
      expect(answer).toEqual({ token_id: expect.stringMatching(/^[0-9a-f-]{36}$/) });
      const [token, ...others] = await ada.call("GET", "/tokens");
      expect(others).toEqual([]);
      expect(Object.keys(token)).toEqual(SUMMARY);
      expect(token).toEqual({
        id: answer.token_id,
        provider_id: "github",
        provider_account_label: null,
        scopes: ["repo", "user"],
        expires_at: expect.stringMatching(ISO),
        is_default: true,
        created_at: expect.stringMatching(ISO),
        updated_at: expect.stringMatching(ISO),
      });
      const lives_ms = Date.parse(token.expires_at) - before;
      expect(lives_ms).toBeGreaterThanOrEqual(3_600_000);
      expect(lives_ms).toBeLessThan(3_700_000);
      expect(await ada.call("GET", "/tokens?provider_id=github")).toEqual([token]);
      expect(await ada.call("GET", "/tokens?provider_id=google")).toEqual([]);
      expect(await ada.call("GET", "/tokens?provider_id=")).toEqual([]);
      expect(await ada.call("GET", "/tokens/exists?provider_id=github")).toEqual({ has_token: true });
      const provider_ids = ["github", "google", "__proto__", "github"];
      const batch = await ada.send("POST", "/tokens/exists/batch", { provider_ids });
      expect(batch.text).toBe('{"has_token":{"github":true,"google":false,"__proto__":false}}');
    });

    it("are sealed in the database, and appear in no event", async () => {
      const ada = await newUser();
      const canary = { access_token: "canary-1", refresh_token: "canary-2" };
      await give(ada, canary);
      await (await ada.asAdmin()).call("POST", "/agents/a/providers/github/tokens", canary, 201);
      const storage = openOn(api.service.database);
      const rows = [];
      for (const table of ["oauth_tokens", "oauth_token_events", "agent_connections"])
        rows.push(...(await storage.read.all(sql`select * from ${sql.table(table)}`.compile(storage.read.k))));
      await storage.close();
      expect(rows.length).toBeGreaterThan(4);
      expect(JSON.stringify(rows)).not.toMatch(/canary-[12]/);
    });

    it("belong to the caller and the workspace: other callers do not see them", async () => {
      const ada = await newUser();
      const bob = await api.user("bob", ada.tenant_id);
      const elsewhere = await newUser();
      const id = await give(ada);
      for (const other of [bob, elsewhere]) {
        expect(await other.call("GET", "/tokens")).toEqual([]);
        expect(await other.call("GET", "/tokens/exists?provider_id=github")).toEqual({ has_token: false });
        expect(await other.call("GET", "/token-events")).toEqual([]);
        for (const [method, path, body] of [
          ["PATCH", `/tokens/${id}/metadata`, { is_default: false }],
          ["DELETE", `/tokens/${id}`, undefined],
          ["POST", "/agents/a/connections", { oauth_token_id: id }],
        ] as const) {
          const answer = await other.send(method, path, body);
          expect([answer.status, answer.body]).toEqual([404, { detail: "OAuth token not found" }]);
        }
      }
      expect((await ada.call("GET", "/tokens"))[0].is_default).toBe(true);
    });

    it("need a provider of the caller's workspace", async () => {
      const ada = await newUser();
      const admin = await ada.asAdmin();
      const elsewhere = await newUser();
      await elsewhere.call("POST", "/providers", provider("google"));
      for (const provider_id of ["google", "nobody", ""]) {
        const refused = { status: 404, body: { detail: `OAuth provider '${provider_id}' not found` } };
        const token = { provider_id, access_token: "t" };
        expect(await ada.send("POST", "/tokens/import", token)).toMatchObject(refused);
        if (provider_id !== "")
          expect(await admin.send("POST", `/agents/a/providers/${provider_id}/tokens`, token)).toMatchObject(refused);
      }
      expect(await ada.call("GET", "/tokens")).toEqual([]);
    });
  });

  describe("of which one is the default", () => {
    const defaults = async (user: User) =>
      (await user.call("GET", "/tokens")).map(({ id, is_default }: Wire) => [id, is_default]);

    it("have the first one as the default, whatever it says, then the latest that is stored as the default", async () => {
      const ada = await newUser();
      const first = await give(ada, { is_default: false });
      expect(await defaults(ada)).toEqual([[first, true]]);
      const second = await give(ada, { is_default: "no" });
      const third = await give(ada);
      expect(await defaults(ada)).toEqual([
        [third, true],
        [second, false],
        [first, false],
      ]);
      await ada.call("POST", "/providers", provider("google"));
      await give(ada, { provider_id: "google" });
      expect((await defaults(ada)).filter(([, isDefault]: [string, boolean]) => isDefault)).toHaveLength(2);
    });

    it("change the default with their metadata, and never have two", async () => {
      const ada = await newUser();
      const [first, second] = [await give(ada), await give(ada, { is_default: false })];
      const path = (id: string) => `/tokens/${id}/metadata`;
      const named = await ada.call("PATCH", path(second), { provider_account_label: "work", is_default: true });
      expect(Object.keys(named)).toEqual(SUMMARY);
      expect(named).toMatchObject({ id: second, provider_account_label: "work", is_default: true });
      expect(await defaults(ada)).toEqual([
        [second, true],
        [first, false],
      ]);
      expect(await ada.call("PATCH", path(second), {})).toMatchObject({ provider_account_label: "work" });
      expect(await ada.call("PATCH", path(second), { provider_account_label: null, is_default: null })).toMatchObject({
        provider_account_label: "work",
        is_default: true,
      });
      await ada.call("PATCH", path(second), { is_default: false });
      expect((await defaults(ada)).map(([, isDefault]: [string, boolean]) => isDefault)).toEqual([false, false]);
    });

    it("have one default also when many are added concurrently", async () => {
      const ada = await newUser();
      await Promise.all(Array.from({ length: 20 }, () => give(ada)));
      const all = await defaults(ada);
      expect(all).toHaveLength(20);
      expect(all.filter(([, isDefault]: [string, boolean]) => isDefault)).toHaveLength(1);
      await Promise.all(all.map(([id]: [string]) => ada.call("PATCH", `/tokens/${id}/metadata`, { is_default: true })));
      expect((await defaults(ada)).filter(([, isDefault]: [string, boolean]) => isDefault)).toHaveLength(1);
    });
  });

  it("that come while the provider is deleted are refused or deleted with it", async () => {
    const ada = await newUser();
    const imports = Array.from({ length: 10 }, () =>
      ada.send("POST", "/tokens/import", { provider_id: "github", access_token: "t" }),
    );
    const deleted = ada.send("DELETE", "/providers/github");
    const statuses = (await Promise.all(imports)).map(({ status }) => status);
    expect((await deleted).status).toBe(200);
    expect(statuses.every((status) => status === 200 || status === 404)).toBe(true);
    expect(await ada.call("GET", "/tokens")).toEqual([]);
  });

  describe("that agents use", () => {
    it("are connected once, by their owner", async () => {
      const ada = await newUser();
      const id = await give(ada, { scopes: ["s"] });
      const made = await ada.call("POST", "/agents/agent%2Fone/connections", { oauth_token_id: id }, 201);
      expect(Object.keys(made)).toEqual(CONNECTION);
      expect(made).toEqual({
        id: expect.any(String),
        agent_id: "agent/one",
        oauth_token_id: id,
        provider_id: "github",
        provider_account_label: null,
        scopes: ["s"],
        expires_at: null,
        created_by: "ada",
        created_at: expect.stringMatching(ISO),
      });
      expect(await ada.call("POST", "/agents/agent%2Fone/connections", { oauth_token_id: id }, 201)).toEqual(made);
      expect(await ada.call("GET", "/agents/agent%2Fone/connections")).toEqual({ data: [made] });
      expect(await ada.call("GET", "/agents/other/connections")).toEqual({ data: [] });
      const bob = await api.user("bob", ada.tenant_id);
      expect(await bob.call("GET", "/agents/agent%2Fone/connections")).toEqual({ data: [] });
    });

    it("can belong to the agent itself: they belong to no user, and all users of the workspace see them", async () => {
      const ada = await newUser();
      const made = await (await ada.asAdmin()).call(
        "POST",
        "/agents/a/providers/github/tokens",
        { access_token: "t", scopes: ["s"], provider_account_label: "bot", expires_in_seconds: 60 },
        201,
      );
      expect(Object.keys(made)).toEqual(CONNECTION);
      expect(made).toMatchObject({
        agent_id: "a",
        provider_id: "github",
        provider_account_label: "bot",
        scopes: ["s"],
        expires_at: expect.stringMatching(ISO),
        created_by: "ada",
      });
      expect(await ada.call("GET", "/tokens")).toEqual([]);
      const bob = await api.user("bob", ada.tenant_id);
      expect(await bob.call("GET", "/agents/a/connections")).toEqual({ data: [made] });
      const other = await ada.send("POST", "/agents/b/connections", { oauth_token_id: made.oauth_token_id });
      expect(other.status).toBe(404);
    });
  });

  describe("in the events of their user", () => {
    it("appear when they are stored and deleted, newest first, optionally for one provider", async () => {
      const ada = await newUser();
      await ada.call("POST", "/providers", provider("google"));
      const id = await give(ada, { scopes: ["s"] });
      await give(ada, { provider_id: "google" });
      await ada.call("DELETE", `/tokens/${id}`, undefined, 204);
      const events = await ada.call("GET", "/token-events");
      expect(events.map(({ provider_id, event_type }: Wire) => [provider_id, event_type])).toEqual([
        ["github", "token_deleted"],
        ["google", "token_created"],
        ["github", "token_created"],
      ]);
      expect(Object.keys(events[0])).toEqual(EVENT);
      expect(events[0]).toEqual({
        id: expect.any(String),
        provider_id: "github",
        agent_id: null,
        event_type: "token_deleted",
        reason: "user_deleted",
        source: "api",
        provider_account_label: null,
        scopes: ["s"],
        detail: null,
        acknowledged_at: null,
        created_at: expect.stringMatching(ISO),
      });
      expect(await ada.call("GET", "/token-events?provider_id=google")).toEqual([events[1]]);
      expect(await ada.call("GET", "/token-events?limit=1")).toEqual([events[0]]);
    });
  });
});
