import { sql } from "kysely";
import { nowMs, type Tx } from "../../platform/database/database.ts";
import { lockProvider } from "./providers.ts";
import type { TokenRow } from "./schema.ts";

export type NewToken = Omit<TokenRow, "refresh_holder" | "refresh_until" | "created_at" | "updated_at">;

/** Selects the tokens of a user, at one provider or at all providers. */
export interface TokensOfUser {
  tenant_id: string;
  user_id: string;
  provider_id?: string | undefined;
}

export async function insertToken(tx: Tx, token: NewToken): Promise<TokenRow> {
  const row = { ...token, refresh_holder: null, refresh_until: null, created_at: nowMs, updated_at: nowMs };
  return (await tx.first(tx.k.insertInto("oauth_tokens").values(row).returningAll())) as TokenRow;
}

/** Stores a token of a user. The token becomes the default on request, or if it is the user's first token at the provider. */
export async function insertUserToken(
  tx: Tx,
  token: Omit<NewToken, "user_id" | "agent_id" | "is_default"> & { user_id: string },
  make_default: boolean,
): Promise<TokenRow> {
  const { provider_id } = token;
  const is_default = make_default || !(await providersWithTokens(tx, token, [provider_id])).has(provider_id);
  if (is_default) await clearDefault(tx, token);
  return insertToken(tx, { ...token, agent_id: null, is_default: is_default ? 1 : 0 });
}

const tokenById = (tx: Tx, tenant_id: string, token_id: string) =>
  tx.k.selectFrom("oauth_tokens").selectAll().where("tenant_id", "=", tenant_id).where("token_id", "=", token_id);

export const findToken = (tx: Tx, tenant_id: string, token_id: string): Promise<TokenRow | undefined> =>
  tx.first(tokenById(tx, tenant_id, token_id));

export const lockToken = (tx: Tx, tenant_id: string, token_id: string): Promise<TokenRow | undefined> =>
  tx.first(tx.dialect.forUpdate(tokenById(tx, tenant_id, token_id)));

/** Lists tokens: the user's default token first, then newest first. */
export const listTokens = (tx: Tx, which: TokensOfUser): Promise<TokenRow[]> =>
  tx.all(
    tokensOf(tx, which)
      .selectAll()
      .orderBy("is_default", "desc")
      .orderBy("created_at", "desc")
      .orderBy("token_id", "desc")
      .limit(MAX_TOKENS),
  );

/** Maximum number of tokens in a list. The API has no pagination for tokens. */
export const MAX_TOKENS = 1000;

export const lockTokens = (tx: Tx, which: TokensOfUser): Promise<TokenRow[]> =>
  tx.all(tx.dialect.forUpdate(tokensOf(tx, which).selectAll().orderBy("token_id")));

/** The tokens of all users and agents. */
export const lockTokensOfProvider = (tx: Tx, tenant_id: string, provider_id: string): Promise<TokenRow[]> =>
  tx.all(
    tx.dialect.forUpdate(
      tx.k
        .selectFrom("oauth_tokens")
        .selectAll()
        .where("tenant_id", "=", tenant_id)
        .where("provider_id", "=", provider_id)
        .orderBy("token_id"),
    ),
  );

function tokensOf(tx: Tx, { tenant_id, user_id, provider_id }: TokensOfUser) {
  const query = tx.k.selectFrom("oauth_tokens").where("tenant_id", "=", tenant_id).where("user_id", "=", user_id);
  return provider_id === undefined ? query : query.where("provider_id", "=", provider_id);
}

export async function providersWithTokens(
  tx: Tx,
  { tenant_id, user_id }: TokensOfUser,
  provider_ids: readonly string[],
): Promise<Set<string>> {
  if (provider_ids.length === 0) return new Set();
  const rows = await tx.all(
    tokensOf(tx, { tenant_id, user_id }).select("provider_id").distinct().where("provider_id", "in", provider_ids),
  );
  return new Set(rows.map((row) => row.provider_id));
}

/** Returns undefined if the token was deleted. */
export const updateToken = (
  tx: Tx,
  token_id: string,
  changes: Partial<Omit<TokenRow, "token_id" | "tenant_id" | "created_at" | "updated_at">>,
): Promise<TokenRow | undefined> =>
  tx.first(
    tx.k
      .updateTable("oauth_tokens")
      .set({ ...changes, updated_at: nowMs })
      .where("token_id", "=", token_id)
      .returningAll(),
  );

/** Also ends the lease of a refresh in progress, whose result is then not stored. Returns undefined if the token was deleted. */
export const renewToken = (
  tx: Tx,
  token_id: string,
  granted: Pick<TokenRow, "secret" | "scopes" | "expires_at" | "metadata">,
): Promise<TokenRow | undefined> =>
  updateToken(tx, token_id, { ...granted, refresh_holder: null, refresh_until: null });

/** Locks the provider until the transaction ends, so that concurrent transactions cannot create two defaults. */
export async function clearDefault(
  tx: Tx,
  { tenant_id, user_id, provider_id }: Required<TokensOfUser>,
): Promise<number> {
  await lockProvider(tx, tenant_id, provider_id);
  return tx.run(
    tx.k
      .updateTable("oauth_tokens")
      .set({ is_default: 0 })
      .where("tenant_id", "=", tenant_id)
      .where("user_id", "=", user_id)
      .where("provider_id", "=", provider_id)
      .where("is_default", "=", 1),
  );
}

/** Maximum number of values in one `in (...)`. */
const MAX_IDS = 5000;

/** Also deletes the connections of agents to the tokens. */
export async function deleteTokens(tx: Tx, token_ids: readonly string[]): Promise<void> {
  for (let from = 0; from < token_ids.length; from += MAX_IDS) {
    const batch = token_ids.slice(from, from + MAX_IDS);
    await tx.run(tx.k.deleteFrom("agent_connections").where("token_id", "in", batch));
    await tx.run(tx.k.deleteFrom("oauth_tokens").where("token_id", "in", batch));
  }
}

/** Deletes and returns the token if it is agent-owned and has no connections. Otherwise returns undefined. */
export const deleteAgentTokenIfUnused = (tx: Tx, tenant_id: string, token_id: string): Promise<TokenRow | undefined> =>
  tx.first(
    tx.k
      .deleteFrom("oauth_tokens")
      .where("tenant_id", "=", tenant_id)
      .where("token_id", "=", token_id)
      .where("user_id", "is", null)
      .where((e) =>
        e.not(e.exists(e.selectFrom("agent_connections").select("connection_id").where("token_id", "=", token_id))),
      )
      .returningAll(),
  );

/** Returns the current token; undefined when it was deleted or another holder has the lease. */
export const acquireRefreshLease = (
  tx: Tx,
  token_id: string,
  holder: string,
  lease_ms: number,
): Promise<TokenRow | undefined> =>
  tx.first(
    tx.k
      .updateTable("oauth_tokens")
      .set({ refresh_holder: holder, refresh_until: sql<number>`now_ms() + ${lease_ms}` })
      .where("token_id", "=", token_id)
      .where((e) => e.or([e("refresh_until", "is", null), e("refresh_until", "<=", nowMs)]))
      .returningAll(),
  );

/** Returns undefined if `holder` no longer has the lease. */
export const releaseRefreshLease = (
  tx: Tx,
  token_id: string,
  holder: string,
  changes: Partial<Pick<TokenRow, "secret" | "scopes" | "expires_at" | "metadata">>,
): Promise<TokenRow | undefined> =>
  tx.first(
    tx.k
      .updateTable("oauth_tokens")
      .set({ ...changes, refresh_holder: null, refresh_until: null, updated_at: nowMs })
      .where("token_id", "=", token_id)
      .where("refresh_holder", "=", holder)
      .returningAll(),
  );

/** Also deletes the connections of agents to the token. Returns undefined if `holder` no longer has the refresh lease. */
export async function deleteTokenIfLeased(tx: Tx, token_id: string, holder: string): Promise<TokenRow | undefined> {
  const deleted = await tx.first(
    tx.k
      .deleteFrom("oauth_tokens")
      .where("token_id", "=", token_id)
      .where("refresh_holder", "=", holder)
      .returningAll(),
  );
  if (deleted) await tx.run(tx.k.deleteFrom("agent_connections").where("token_id", "=", token_id));
  return deleted;
}
