import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { FlowRow, TokenRow } from "../../../src/access/storage/schema.ts";
import { databases } from "../../support/databases.ts";
import { AuthServiceApi, type User, type Wire } from "./api.ts";
import { insertFixtures, type Rows, rowsOf } from "./fixtures.ts";

/** What is left when the tokens that are picked go, with all connections to them, and nothing else. */
function without(rows: Rows, picked: (token: TokenRow) => boolean): Rows {
  const deleted = new Set(rows.oauth_tokens.filter(picked).map(({ token_id }) => token_id));
  return {
    ...rows,
    oauth_tokens: rows.oauth_tokens.filter(({ token_id }) => !deleted.has(token_id)),
    agent_connections: rows.agent_connections.filter(({ token_id }) => !deleted.has(token_id)),
  };
}

const isOf =
  ({ tenant_id }: User, user_id: string, provider_id: string) =>
  (row: Pick<TokenRow | FlowRow, "tenant_id" | "user_id" | "provider_id">) =>
    row.tenant_id === tenant_id && row.user_id === user_id && row.provider_id === provider_id;

const cancelled = (flow: FlowRow): FlowRow => ({ ...flow, outcome: "cancelled", verifier: null });

describe.each(databases)("of two users in two workspaces with two providers and two agents on %s", (database) => {
  let api: AuthServiceApi;
  let users: Awaited<ReturnType<typeof insertFixtures>>;
  let before: Rows;
  beforeAll(async () => {
    api = await AuthServiceApi.start(database);
  });
  afterAll(() => api.stop());
  // The worlds of other tests stay beside it.
  beforeEach(async () => {
    users = await insertFixtures(api);
    before = await rowsOf(api);
  });

  const eventsOf = (user: User): Promise<Wire[]> => user.call("GET", "/token-events?limit=200");
  const deletionsOf = async (user: User) =>
    (await eventsOf(user)).filter(({ event_type }: Wire) => event_type === "token_deleted");

  it("all tokens of a user at a provider are deleted, with their connections and open flows", async () => {
    const { ada1 } = users;
    const isTheirs = isOf(ada1, "ada", "github");
    const answer = await ada1.send("DELETE", "/tokens?provider_id=github");
    expect([answer.status, answer.body]).toEqual([
      200,
      { message: "OAuth tokens for provider 'github' deleted", provider_id: "github" },
    ]);
    const after = await rowsOf(api);
    const left = without(before, isTheirs);
    expect(before.oauth_tokens.length - left.oauth_tokens.length).toBe(2);
    expect(before.agent_connections.length - left.agent_connections.length).toBe(4);
    const flows = before.oauth_flows.map((flow) => (isTheirs(flow) ? cancelled(flow) : flow));
    expect(after).toEqual({ ...left, oauth_flows: expect.arrayContaining(flows) });
    expect(after.oauth_flows).toHaveLength(flows.length);
    expect(await ada1.call("GET", "/tokens/exists?provider_id=github")).toEqual({ has_token: false });
    expect(await ada1.call("GET", "/tokens?provider_id=github")).toEqual([]);
    expect(await deletionsOf(ada1)).toEqual(
      Array.from({ length: 2 }, () =>
        expect.objectContaining({ provider_id: "github", reason: "user_deleted", source: "api", scopes: ["read"] }),
      ),
    );
    for (const other of [users.bob1, users.ada2, users.bob2]) expect(await deletionsOf(other)).toEqual([]);
    // A second time there is nothing to do, and the answer is the same.
    const again = await ada1.send("DELETE", "/tokens?provider_id=github");
    expect([again.status, again.body]).toEqual([200, answer.body]);
    expect(await rowsOf(api)).toEqual(after);
    expect(await deletionsOf(ada1)).toHaveLength(2);
  });

  it.each([
    ["of another name", "nobody"],
    ["without one", ""],
    ["with an odd one", "a'b\" or 1=1 --\n%00/.."],
    ["with a long one", "ü".repeat(1000)],
  ])("none is deleted for a provider that does not exist, %s", async (_, provider_id) => {
    const answer = await users.ada1.send("DELETE", `/tokens?provider_id=${encodeURIComponent(provider_id)}`);
    expect([answer.status, answer.body]).toEqual([200, { message: expect.any(String), provider_id }]);
    expect(await rowsOf(api)).toEqual(before);
  });

  it("the user is the caller, whatever user the request names", async () => {
    const { ada1 } = users;
    const query = "?provider_id=github&user_id=bob&ls_user_id=bob&tenant_id=x";
    expect((await ada1.send("DELETE", `/tokens${query}`, { user_id: "bob", ls_user_id: "bob" })).status).toBe(200);
    const after = await rowsOf(api);
    expect(after.oauth_tokens).toEqual(without(before, isOf(ada1, "ada", "github")).oauth_tokens);
  });

  it("of a repeated provider_id the last counts", async () => {
    const { ada1 } = users;
    expect((await ada1.call("DELETE", "/tokens?provider_id=github&provider_id=google")).provider_id).toBe("google");
    const after = await rowsOf(api);
    expect(after.oauth_tokens).toEqual(without(before, isOf(ada1, "ada", "google")).oauth_tokens);
  });

  it("a token is deleted only for its owner", async () => {
    const { ada1, bob1, ada2 } = users;
    const [token] = await ada1.call("GET", "/tokens?provider_id=github");
    for (const other of [bob1, ada2]) {
      const refused = await other.send("DELETE", `/tokens/${token.id}`);
      expect([refused.status, refused.body]).toEqual([404, { detail: "OAuth token not found" }]);
    }
    expect(await rowsOf(api)).toEqual(before);
    const answer = await ada1.send("DELETE", `/tokens/${token.id}`);
    expect([answer.status, answer.text]).toEqual([204, ""]);
    expect(await rowsOf(api)).toEqual(without(before, ({ token_id }) => token_id === token.id));
    expect(await deletionsOf(ada1)).toHaveLength(1);
    expect((await ada1.send("DELETE", `/tokens/${token.id}`)).status).toBe(404);
    const agents = before.oauth_tokens.find(({ user_id }) => user_id === null);
    expect((await ada1.send("DELETE", `/tokens/${agents?.token_id}`)).status).toBe(404);
  });

  it("a provider is deleted with its data in the workspace, and all users with a token there get an event", async () => {
    const { ada1, bob1, ada2 } = users;
    const isAt = (row: { tenant_id: string; provider_id: string }) =>
      row.tenant_id === ada1.tenant_id && row.provider_id === "github";
    await ada1.call("DELETE", "/providers/github");
    expect(await rowsOf(api)).toEqual({
      ...without(before, isAt),
      oauth_providers: before.oauth_providers.filter((row) => !isAt(row)),
      oauth_flows: before.oauth_flows.filter((row) => !isAt(row)),
    });
    const reasons = async (user: User) => (await deletionsOf(user)).map(({ reason, agent_id }) => [reason, agent_id]);
    // Who deletes it reads also of the agents' own.
    expect((await reasons(ada1)).sort()).toEqual([
      ["provider_deleted", null],
      ["provider_deleted", null],
      ["provider_deleted", "agent-1"],
      ["provider_deleted", "agent-2"],
    ]);
    expect(await reasons(bob1)).toEqual([
      ["provider_deleted", null],
      ["provider_deleted", null],
    ]);
    expect(await deletionsOf(ada2)).toEqual([]);
  });

  it("an agent's connection is deleted, and its token only if the agent owns it", async () => {
    const { ada1, bob1, ada2 } = users;
    const { data } = await ada1.call("GET", "/agents/agent-1/connections");
    const of = (created_by: string, isOwn: boolean) =>
      data.find((one: Wire) => {
        const token = before.oauth_tokens.find(({ token_id }) => token_id === one.oauth_token_id);
        return one.created_by === created_by && (token?.user_id === null) === isOwn;
      });
    const users_ = of("ada", false);
    const own = of("ada", true);
    for (const [user, agent] of [
      [bob1, "agent-1"],
      [ada2, "agent-1"],
      [ada1, "agent-2"],
    ] as const) {
      const refused = await user.send("DELETE", `/agents/${agent}/connections/${users_.id}`);
      expect([refused.status, refused.body]).toEqual([404, { detail: "Agent connection not found" }]);
    }
    expect(await rowsOf(api)).toEqual(before);
    const answer = await ada1.send("DELETE", `/agents/agent-1/connections/${users_.id}`);
    expect([answer.status, answer.text]).toEqual([204, ""]);
    const left = {
      ...before,
      agent_connections: before.agent_connections.filter(({ connection_id }) => connection_id !== users_.id),
    };
    expect(await rowsOf(api)).toEqual(left);
    // The user's token stays also when no agent uses it any more.
    const { data: others } = await ada1.call("GET", "/agents/agent-2/connections");
    const last = others.find((one: Wire) => one.oauth_token_id === users_.oauth_token_id);
    await ada1.call("DELETE", `/agents/agent-2/connections/${last.id}`, undefined, 204);
    left.agent_connections = left.agent_connections.filter(({ connection_id }) => connection_id !== last.id);
    expect(await rowsOf(api)).toEqual(left);
    expect((await ada1.send("DELETE", `/agents/agent-1/connections/${own.id}`)).status).toBe(403);
    await (await ada1.asAdmin()).call("DELETE", `/agents/agent-1/connections/${own.id}`, undefined, 204);
    expect(await rowsOf(api)).toEqual(without(left, ({ token_id }) => token_id === own.oauth_token_id));
    expect(await deletionsOf(ada1)).toEqual([expect.objectContaining({ reason: "disconnected", agent_id: "agent-1" })]);
  });

  it("a new token of an agent replaces what it used for the caller and by itself", async () => {
    const { ada1 } = users;
    const made = await (await ada1.asAdmin()).call(
      "POST",
      "/agents/agent-1/providers/github/tokens",
      { access_token: "new", provider_account_label: "bot", scopes: ["s"] },
      201,
    );
    const after = await rowsOf(api);
    const isReplaced = (row: { agent_id: string | null; provider_id: string; tenant_id: string }) =>
      row.tenant_id === ada1.tenant_id && row.agent_id === "agent-1" && row.provider_id === "github";
    const bobs = new Set(
      before.oauth_tokens.filter(({ user_id }) => user_id === "bob").map(({ token_id }) => token_id),
    );
    expect(after.oauth_tokens.filter(({ token_id }) => token_id !== made.oauth_token_id)).toEqual(
      before.oauth_tokens.filter((token) => !(token.user_id === null && isReplaced(token))),
    );
    expect(after.agent_connections.filter(({ connection_id }) => connection_id !== made.id)).toEqual(
      before.agent_connections.filter((one) => !isReplaced(one) || bobs.has(one.token_id)),
    );
    expect(after.oauth_flows).toEqual(before.oauth_flows);
    expect(await deletionsOf(ada1)).toEqual([expect.objectContaining({ reason: "replaced", agent_id: "agent-1" })]);
  });

  it("flows end only when the client or an address of their provider changes", async () => {
    const { ada1 } = users;
    await ada1.call("PATCH", "/providers/github", { name: "n", uses_pkce: true, client_id: "client-of-github" });
    expect((await rowsOf(api)).oauth_flows).toEqual(before.oauth_flows);
    await ada1.call("PATCH", "/providers/github", { token_url: "https://elsewhere.example.com/token" });
    const isAt = (flow: FlowRow) => flow.tenant_id === ada1.tenant_id && flow.provider_id === "github";
    const after = (await rowsOf(api)).oauth_flows;
    expect(after).toHaveLength(before.oauth_flows.length);
    expect(after).toEqual(
      expect.arrayContaining(before.oauth_flows.map((flow) => (isAt(flow) ? cancelled(flow) : flow))),
    );
    expect(before.oauth_flows.filter(isAt)).toHaveLength(2);
  });
});
