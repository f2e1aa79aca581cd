import { type Caller, mayUse } from "../../platform/contract/caller.ts";
import type { Tx } from "../../platform/database/database.ts";
import { ApiError } from "../../platform/errors.ts";
import { newId } from "../../platform/lib/ids.ts";
import type { VaultContext } from "../context.ts";
import type { AgentToken } from "../contract/connections.ts";
import type { AgentConnection } from "../contract/records.ts";
import { deleteConnection, findConnection, insertConnection, listConnections } from "../storage/connections.ts";
import { findProvider, lockProvider } from "../storage/providers.ts";
import type { TokenRow } from "../storage/schema.ts";
import { insertTokenEvents } from "../storage/token-events.ts";
import { deleteAgentTokenIfUnused, findToken, insertToken, lockToken } from "../storage/tokens.ts";
import { connectionOf } from "../wire.ts";
import { type RevokeTokens, revokeLater } from "./after-deletion.ts";
import { expiryOf, givenSecret } from "./given-token.ts";
import { calledFor } from "./token-events.ts";
import { sealToken } from "./token-secret.ts";

type Owner = Pick<Caller, "tenant_id" | "user_id" | "scopes">;

/**
 * Which agents may use which tokens. A caller sees the connections to their own tokens and to those that belong to the agent
 * itself; what other users have connected is theirs. Agent ids are opaque.
 */
export class Connections {
  readonly #context: VaultContext;
  readonly #revoke: RevokeTokens;

  constructor(context: VaultContext, revoke: RevokeTokens) {
    this.#context = context;
    this.#revoke = revoke;
  }

  async list({ tenant_id, user_id }: Owner, agent_id: string): Promise<AgentConnection[]> {
    return (await listConnections(this.#context.database.read, { tenant_id, user_id, agent_id })).map(connectionOf);
  }

  /** @throws ApiError oauth_token_not_found, also for a token of another user or another agent; missing_scope for an agent's own */
  async create(caller: Owner, agent_id: string, token_id: string): Promise<AgentConnection> {
    const { tenant_id, user_id } = caller;
    const made = await this.#context.database.write(async (tx) => {
      const token = await lockToken(tx, tenant_id, token_id);
      const mayConnect = token && (token.user_id === null ? token.agent_id === agent_id : token.user_id === user_id);
      if (!mayConnect) return undefined;
      if (token.user_id === null) requireAdmin(caller);
      return connect(tx, token, agent_id, user_id);
    });
    if (!made) throw new ApiError("oauth_token_not_found");
    return made;
  }

  /** The token goes too when it is an agent's own and no agent uses it any more. @throws ApiError connection_not_found; missing_scope */
  async remove(caller: Owner, agent_id: string, connection_id: string): Promise<void> {
    const { tenant_id, user_id } = caller;
    const removed = await this.#context.database.write(async (tx) => {
      const connection = await findConnection(tx, { tenant_id, user_id, agent_id }, connection_id);
      const token = connection && (await findToken(tx, tenant_id, connection.token_id));
      if (token?.user_id === null) requireAdmin(caller);
      if (!connection || (await deleteConnection(tx, tenant_id, connection_id)) === 0) return undefined;
      const tokens = await dropUnused(tx, [connection], { reason: "disconnected", by: user_id });
      return { tokens, provider: await findProvider(tx, tenant_id, connection.provider_id) };
    });
    if (!removed) throw new ApiError("connection_not_found");
    revokeLater(this.#context, this.#revoke, removed.provider, removed.tokens);
  }

  /**
   * Gives an agent a token of its own, in the place of what it used at the provider for the caller and by itself.
   *
   * @throws ApiError oauth_provider_not_found
   */
  async putToken(
    { tenant_id, user_id }: Owner,
    { agent_id, provider_id }: { agent_id: string; provider_id: string },
    request: AgentToken,
  ): Promise<AgentConnection> {
    const { database, seal, clock } = this.#context;
    const token_id = newId();
    const given = {
      token_id,
      tenant_id,
      provider_id,
      user_id: null,
      agent_id,
      provider_account_label: request.provider_account_label ?? null,
      scopes: JSON.stringify(request.scopes),
      is_default: 0,
      secret: sealToken(seal, { tenant_id, token_id }, givenSecret(request)),
      metadata: JSON.stringify(request.metadata ?? {}),
      expires_at: expiryOf(request, clock),
    };
    const put = await database.write(async (tx) => {
      const provider = await lockProvider(tx, tenant_id, provider_id);
      if (!provider) return undefined;
      const prior = await listConnections(tx, { tenant_id, user_id, agent_id }, provider_id);
      for (const { connection_id } of prior) await deleteConnection(tx, tenant_id, connection_id);
      const replaced = await dropUnused(tx, prior, { reason: "replaced", by: user_id });
      const token = await insertToken(tx, given);
      await insertTokenEvents(tx, [calledFor(token, "token_created", { by: user_id })]);
      return { provider, replaced, connection: await connect(tx, token, agent_id, user_id) };
    });
    if (!put) throw new ApiError("oauth_provider_not_found", { provider_id });
    revokeLater(this.#context, this.#revoke, put.provider, put.replaced);
    return put.connection;
  }
}

/** What belongs to an agent is used for everybody. @throws ApiError missing_scope */
function requireAdmin(caller: Owner): void {
  if (!mayUse(caller, "admin")) throw new ApiError("missing_scope", { scope: "admin" });
}

async function connect(tx: Tx, token: TokenRow, agent_id: string, created_by: string): Promise<AgentConnection> {
  const { tenant_id, token_id, provider_id, provider_account_label, scopes, expires_at } = token;
  const connection = { connection_id: newId(), tenant_id, agent_id, token_id, provider_id, created_by };
  return connectionOf({ ...(await insertConnection(tx, connection)), provider_account_label, scopes, expires_at });
}

/** Deletes agents' own tokens that have lost their last connection, and tells so in their events. */
async function dropUnused(
  tx: Tx,
  connections: readonly { tenant_id: string; token_id: string }[],
  why: { reason: "disconnected" | "replaced"; by: string },
): Promise<TokenRow[]> {
  const dropped: TokenRow[] = [];
  for (const { tenant_id, token_id } of connections) {
    // Held first, so that the look for connections comes after those which others were making.
    await lockToken(tx, tenant_id, token_id);
    const token = await deleteAgentTokenIfUnused(tx, tenant_id, token_id);
    if (token) dropped.push(token);
  }
  await insertTokenEvents(
    tx,
    dropped.map((token) => calledFor(token, "token_deleted", why)),
  );
  return dropped;
}
