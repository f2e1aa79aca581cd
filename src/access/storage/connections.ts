import { nowMs, type Tx } from "../../platform/database/database.ts";
import type { ConnectionRow, TokenRow } from "./schema.ts";

export type NewConnection = Omit<ConnectionRow, "created_at">;

/** A connection with what its token says of itself. */
export type FullConnection = ConnectionRow &
  Pick<TokenRow, "provider_account_label" | "scopes" | "expires_at" | "user_id">;

/** Makes it, or finds the one that is there already. */
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

/** Whose connections: those of an agent that a user may see, which are to their own tokens and to the agent's. */
export interface ConnectionsOfAgent {
  tenant_id: string;
  agent_id: string;
  user_id: string;
}

/** Newest first. */
export function listConnections(tx: Tx, whose: ConnectionsOfAgent, provider_id?: string): Promise<FullConnection[]> {
  let query = connectionsOf(tx, whose);
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
  whose: ConnectionsOfAgent,
  connection_id: string,
): Promise<FullConnection | undefined> =>
  tx.first(connectionsOf(tx, whose).where("agent_connections.connection_id", "=", connection_id));

const connectionsOf = (tx: Tx, { tenant_id, agent_id, user_id }: ConnectionsOfAgent) =>
  tx.k
    .selectFrom("agent_connections")
    .innerJoin("oauth_tokens", "oauth_tokens.token_id", "agent_connections.token_id")
    .selectAll("agent_connections")
    .select(["provider_account_label", "scopes", "expires_at", "user_id"])
    .where("agent_connections.tenant_id", "=", tenant_id)
    .where("agent_connections.agent_id", "=", agent_id)
    .where((e) => e.or([e("user_id", "=", user_id), e("user_id", "is", null)]));

/** Of an agent, in one list: the API has no pages for them. */
export const MAX_CONNECTIONS = 1000;

export const deleteConnection = (tx: Tx, tenant_id: string, connection_id: string): Promise<number> =>
  tx.run(
    tx.k.deleteFrom("agent_connections").where("tenant_id", "=", tenant_id).where("connection_id", "=", connection_id),
  );
