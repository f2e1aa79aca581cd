import { nowMs, type Tx } from "../../platform/database/database.ts";
import type { ConnectionRow, TokenRow } from "./schema.ts";

export type NewConnection = Omit<ConnectionRow, "created_at">;

export type ConnectionWithToken = ConnectionRow &
  Pick<TokenRow, "provider_account_label" | "scopes" | "expires_at" | "user_id">;

/** Creates the connection, or returns the existing one. */
export async function insertConnection(tx: Tx, connection: NewConnection): Promise<ConnectionRow> {
  const made = await tx.first(
    tx.k
      .insertInto("agent_connections")
      .values({ ...connection, created_at: nowMs })
      .onConflict((conflict) => conflict.columns(["tenant_id", "agent_id", "token_id"]).doNothing())
      .returningAll(),
  );
  if (made) return made;
  const { tenant_id, agent_id, token_id } = connection;
  return (await tx.first(
    tx.k
      .selectFrom("agent_connections")
      .selectAll()
      .where("tenant_id", "=", tenant_id)
      .where("agent_id", "=", agent_id)
      .where("token_id", "=", token_id),
  )) as ConnectionRow;
}

/** Selects the agent's connections that a user may see: connections to the user's tokens and to agent-owned tokens. */
export interface VisibleConnections {
  tenant_id: string;
  agent_id: string;
  user_id: string;
}

/** Newest first. */
export function listConnections(
  tx: Tx,
  which: VisibleConnections,
  provider_id?: string,
): Promise<ConnectionWithToken[]> {
  let query = connectionsOf(tx, which);
  if (provider_id !== undefined) query = query.where("agent_connections.provider_id", "=", provider_id);
  return tx.all(
    query
      .orderBy("agent_connections.created_at", "desc")
      .orderBy("agent_connections.connection_id", "desc")
      .limit(MAX_CONNECTIONS),
  );
}

export const findConnection = (
  tx: Tx,
  which: VisibleConnections,
  connection_id: string,
): Promise<ConnectionWithToken | undefined> =>
  tx.first(connectionsOf(tx, which).where("agent_connections.connection_id", "=", connection_id));

const connectionsOf = (tx: Tx, { tenant_id, agent_id, user_id }: VisibleConnections) =>
  tx.k
    .selectFrom("agent_connections")
    .innerJoin("oauth_tokens", "oauth_tokens.token_id", "agent_connections.token_id")
    .selectAll("agent_connections")
    .select(["provider_account_label", "scopes", "expires_at", "user_id"])
    .where("agent_connections.tenant_id", "=", tenant_id)
    .where("agent_connections.agent_id", "=", agent_id)
    .where((e) => e.or([e("user_id", "=", user_id), e("user_id", "is", null)]));

/** Maximum number of connections in a list. The API has no pagination for connections. */
export const MAX_CONNECTIONS = 1000;

export const deleteConnection = (tx: Tx, tenant_id: string, connection_id: string): Promise<number> =>
  tx.run(
    tx.k.deleteFrom("agent_connections").where("tenant_id", "=", tenant_id).where("connection_id", "=", connection_id),
  );
