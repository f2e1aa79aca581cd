import { sql } from "kysely";
import { insertFlow } from "../../../src/access/storage/flows.ts";
import type { ConnectionRow, FlowRow, ProviderRow, TokenRow } from "../../../src/access/storage/schema.ts";
import { newId } from "../../../src/platform/lib/ids.ts";
import { openOn } from "../../support/storage.ts";
import { type AuthServiceApi, provider, type User } from "./api.ts";

export const PROVIDERS = ["github", "google"] as const;
export const AGENTS = ["agent-1", "agent-2"] as const;

/** All rows but the events. */
export interface Rows {
  oauth_providers: ProviderRow[];
  oauth_tokens: TokenRow[];
  agent_connections: ConnectionRow[];
  oauth_flows: FlowRow[];
}

const TABLES = ["oauth_providers", "oauth_tokens", "agent_connections", "oauth_flows"] as const;

export async function rowsOf(api: AuthServiceApi): Promise<Rows> {
  const storage = openOn(api.service.database);
  const rows: Record<string, unknown[]> = {};
  for (const table of TABLES) {
    const found = await storage.read.all(sql`select * from ${sql.table(table)}`.compile(storage.read.k));
    rows[table] = found
      .map((row) => ({ ...(row as object) }))
      .sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
  }
  await storage.close();
  return rows as unknown as Rows;
}

/**
 * Two users in two workspaces, with two providers each, two tokens at each provider, both agents connected to both tokens, a flow
 * under way; and a token of its own for each agent at each provider.
 */
export async function insertFixtures(api: AuthServiceApi): Promise<Record<"ada1" | "bob1" | "ada2" | "bob2", User>> {
  const [one, two] = [await api.newWorkspace(newId().slice(-8)), await api.newWorkspace(newId().slice(-8))];
  const users = {
    ada1: await api.user("ada", one),
    bob1: await api.user("bob", one),
    ada2: await api.user("ada", two),
    bob2: await api.user("bob", two),
  };
  const both = [users.ada1, users.ada2];
  await Promise.all(both.flatMap((user) => PROVIDERS.map((name) => user.call("POST", "/providers", provider(name)))));
  const agentsOwn = async (user: User, name: string, agent: string) =>
    (await user.asAdmin()).call(
      "POST",
      `/agents/${agent}/providers/${name}/tokens`,
      { access_token: "agents-own" },
      201,
    );
  await Promise.all(
    both.flatMap((user) => PROVIDERS.flatMap((name) => AGENTS.map((agent) => agentsOwn(user, name, agent)))),
  );
  await Promise.all(
    Object.entries(users).flatMap(([name, user]) => PROVIDERS.map((at) => connect(api, user, name.slice(0, 3), at))),
  );
  return users;
}

async function connect(api: AuthServiceApi, user: User, user_id: string, provider_id: string): Promise<void> {
  for (const n of [1, 2]) {
    const token = { provider_id, access_token: `${user_id}-${n}`, refresh_token: "r", scopes: ["read"] };
    const { token_id } = await user.call("POST", "/tokens/import", token);
    for (const agent of AGENTS)
      await user.call("POST", `/agents/${agent}/connections`, { oauth_token_id: token_id }, 201);
  }
  await beginFlow(api, { tenant_id: user.tenant_id, user_id, provider_id });
}

/** A flow whose user is at the provider right now. */
async function beginFlow(
  api: AuthServiceApi,
  whose: Pick<FlowRow, "tenant_id" | "user_id" | "provider_id">,
): Promise<void> {
  const storage = openOn(api.service.database);
  const flow = {
    ...whose,
    auth_id: newId(),
    started_by: whose.user_id,
    agent_id: null,
    token_id: null,
    scopes: "[]",
    redirect_uri: "https://app.example.com/cb",
    is_default: 1,
    verifier: "sealed",
    state_digest: "digest",
  };
  await storage.write((tx) => insertFlow(tx, flow, 600_000));
  await storage.close();
}
