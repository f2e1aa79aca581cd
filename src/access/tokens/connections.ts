import { type Caller, mayUse } from "../../platform/contract/caller.ts";
import type { Tx } from "../../platform/database/database.ts";
import { ApiError } from "../../platform/errors.ts";
import { newId } from "../../platform/lib/ids.ts";
import type { VaultContext } from "../context.ts";
import type { AgentToken } from "../contract/connections.ts";
import type { AgentConnection } from "../contract/records.ts";
import { revokeInBackground } from "../oauth/revocation.ts";
import { deleteConnection, findConnection, insertConnection, listConnections } from "../storage/connections.ts";
import { findProvider, lockProvider } from "../storage/providers.ts";
import type { TokenRow } from "../storage/schema.ts";
import { insertTokenEvents } from "../storage/token-events.ts";
import { deleteAgentTokenIfUnused, findToken, insertToken, lockToken } from "../storage/tokens.ts";
import { connectionOf } from "../wire.ts";
import { apiTokenEvent } from "./token-events.ts";
import { importedColumns } from "./token-secret.ts";

/** Connections of agents to tokens. Callers see connections to their own tokens and to agent-owned tokens. Agent IDs are opaque. */
export class Connections {
  readonly #context: VaultContext;

  constructor(context: VaultContext) {
    this.#context = context;
  }

  async list({ tenant_id, user_id }: Caller, agent_id: string): Promise<AgentConnection[]> {
    return (await listConnections(this.#context.database.read, { tenant_id, user_id, agent_id })).map(connectionOf);
  }

  /**
   * @throws ApiError oauth_token_not_found, also for a token of another user or another agent; missing_scope for a token of the agent
   *   when the caller is not an admin
   */
  async create(caller: Caller, agent_id: string, token_id: string): Promise<AgentConnection> {
    const { tenant_id, user_id } = caller;
    const created = await this.#context.database.write(async (tx) => {
      const token = await lockToken(tx, tenant_id, token_id);
      const mayConnect = token && (token.user_id === null ? token.agent_id === agent_id : token.user_id === user_id);
      if (!mayConnect) return undefined;
      if (token.user_id === null) requireAdmin(caller);
      return connect(tx, token, agent_id, user_id);
    });
    if (!created) throw new ApiError("oauth_token_not_found");
    return created;
  }

  /** Also deletes an agent-owned token that has lost its last connection. @throws ApiError connection_not_found, missing_scope */
  async remove(caller: Caller, agent_id: string, connection_id: string): Promise<void> {
    const { tenant_id, user_id } = caller;
    const removed = await this.#context.database.write(async (tx) => {
      const connection = await findConnection(tx, { tenant_id, user_id, agent_id }, connection_id);
      const token = connection && (await findToken(tx, tenant_id, connection.token_id));
      if (token?.user_id === null) requireAdmin(caller);
      if (!connection || (await deleteConnection(tx, tenant_id, connection_id)) === 0) return undefined;
      const tokens = await deleteUnused(tx, [connection], user_id, "disconnected");
      return { tokens, provider: await findProvider(tx, tenant_id, connection.provider_id) };
    });
    if (!removed) throw new ApiError("connection_not_found");
    revokeInBackground(this.#context, removed.provider, removed.tokens);
  }

  /**
   * Stores an agent-owned token and connects it. Of the agent's connections for the provider, those that the caller can see are replaced.
   *
   * @throws ApiError oauth_provider_not_found
   */
  async putToken(
    { tenant_id, user_id }: Caller,
    { agent_id, provider_id }: { agent_id: string; provider_id: string },
    request: AgentToken,
  ): Promise<AgentConnection> {
    const row = {
      ...importedColumns(this.#context, tenant_id, request),
      provider_id,
      user_id: null,
      agent_id,
      provider_account_label: request.provider_account_label ?? null,
      is_default: 0,
    };
    const stored = await this.#context.database.write(async (tx) => {
      const provider = await lockProvider(tx, tenant_id, provider_id);
      if (!provider) return undefined;
      const previous = await listConnections(tx, { tenant_id, user_id, agent_id }, provider_id);
      for (const { connection_id } of previous) await deleteConnection(tx, tenant_id, connection_id);
      const replaced = await deleteUnused(tx, previous, user_id, "replaced");
      const token = await insertToken(tx, row);
      await insertTokenEvents(tx, [apiTokenEvent(token, user_id, "token_created")]);
      return { provider, replaced, connection: await connect(tx, token, agent_id, user_id) };
    });
    if (!stored) throw new ApiError("oauth_provider_not_found", { provider_id });
    revokeInBackground(this.#context, stored.provider, stored.replaced);
    return stored.connection;
  }
}

/** Requires an admin, because an agent-owned token affects all users of the agent. @throws ApiError missing_scope */
function requireAdmin(caller: Caller): void {
  if (!mayUse(caller, "admin")) throw new ApiError("missing_scope", { scope: "admin" });
}

async function connect(tx: Tx, token: TokenRow, agent_id: string, created_by: string): Promise<AgentConnection> {
  const { tenant_id, token_id, provider_id, provider_account_label, scopes, expires_at } = token;
  const connection = { connection_id: newId(), tenant_id, agent_id, token_id, provider_id, created_by };
  return connectionOf({ ...(await insertConnection(tx, connection)), provider_account_label, scopes, expires_at });
}

/** Deletes agent-owned tokens that have lost their last connection. */
async function deleteUnused(
  tx: Tx,
  connections: readonly { tenant_id: string; token_id: string }[],
  caller_id: string,
  reason: "disconnected" | "replaced",
): Promise<TokenRow[]> {
  const deleted: TokenRow[] = [];
  for (const { tenant_id, token_id } of connections) {
    // Locked first, so that the check for connections includes those of concurrent transactions.
    await lockToken(tx, tenant_id, token_id);
    const token = await deleteAgentTokenIfUnused(tx, tenant_id, token_id);
    if (token) deleted.push(token);
  }
  await insertTokenEvents(
    tx,
    deleted.map((token) => apiTokenEvent(token, caller_id, "token_deleted", reason)),
  );
  return deleted;
}
