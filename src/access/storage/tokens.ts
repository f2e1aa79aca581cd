import { sql } from "kysely";
import { nowMs, type Tx } from "../../platform/database/database.ts";
import { lockProvider } from "./providers.ts";
import type { TokenRow } from "./schema.ts";

export type NewToken = Omit<TokenRow, "refresh_holder" | "refresh_until" | "created_at" | "updated_at">;

/** Whose tokens: of one user, at one provider when that is named. */
export interface TokensOfUser {
  tenant_id: string;
  user_id: string;
  provider_id?: string | undefined;
}

export async function insertToken(tx: Tx, token: NewToken): Promise<TokenRow> {
  const row = { ...token, refresh_holder: null, refresh_until: null, created_at: nowMs, updated_at: nowMs };
  return (await tx.first(tx.k.insertInto("oauth_tokens").values(row).returningAll())) as TokenRow;
}

export const findToken = (tx: Tx, tenant_id: string, token_id: string): Promise<TokenRow | undefined> =>
  tx.first(
    tx.k.selectFrom("oauth_tokens").selectAll().where("tenant_id", "=", tenant_id).where("token_id", "=", token_id),
  );

/** The same, held until the transaction ends. */
export const lockToken = (tx: Tx, tenant_id: string, token_id: string): Promise<TokenRow | undefined> =>
  tx.first(
    tx.dialect.forUpdate(
      tx.k.selectFrom("oauth_tokens").selectAll().where("tenant_id", "=", tenant_id).where("token_id", "=", token_id),
    ),
  );

/** Newest first; the user's default leads. */
export const listTokens = (tx: Tx, which: TokensOfUser): Promise<TokenRow[]> =>
  tx.all(
    tokensOf(tx, which)
      .selectAll()
      .orderBy("is_default", "desc")
      .orderBy("created_at", "desc")
      .orderBy("token_id", "desc")
      .limit(MAX_TOKENS),
  );

/** Of a user, in one list: the API has no pages for them. */
export const MAX_TOKENS = 1000;

/** All of them, held until the transaction ends. */
export const lockTokens = (tx: Tx, which: TokensOfUser): Promise<TokenRow[]> =>
  tx.all(tx.dialect.forUpdate(tokensOf(tx, which).selectAll().orderBy("token_id")));

/** The same of everybody at a provider, agents' own too. */
export const lockTokensAt = (tx: Tx, tenant_id: string, provider_id: string): Promise<TokenRow[]> =>
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

/** Of those that are named, the ones for which there is a token. */
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

/** Undefined when it is gone: a token that was deleted does not come back. */
export const updateToken = (
  tx: Tx,
  token_id: string,
  changes: Partial<Omit<NewToken, "token_id" | "tenant_id">>,
): Promise<TokenRow | undefined> =>
  tx.first(
    tx.k
      .updateTable("oauth_tokens")
      .set({ ...changes, updated_at: nowMs })
      .where("token_id", "=", token_id)
      .returningAll(),
  );

/**
 * Puts what a user has granted anew in the place of what a token held. Whoever refreshes the old one right now has it no more, so
 * that neither its success nor its failure touches the new one. Undefined when the token is gone.
 */
export const renewToken = (
  tx: Tx,
  token_id: string,
  granted: Pick<TokenRow, "secret" | "scopes" | "expires_at" | "metadata">,
): Promise<TokenRow | undefined> =>
  tx.first(
    tx.k
      .updateTable("oauth_tokens")
      .set({ ...granted, refresh_holder: null, refresh_until: null, updated_at: nowMs })
      .where("token_id", "=", token_id)
      .returningAll(),
  );

/**
 * Before another token of the user becomes the default at a provider. Whoever does this holds the provider until the transaction
 * ends, so that two who do it at a time do not make two.
 */
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

/** Ids of one `in (...)`. */
const MAX_IDS = 5000;

/** With the connections of agents to them. */
export async function deleteTokens(tx: Tx, token_ids: readonly string[]): Promise<void> {
  for (let from = 0; from < token_ids.length; from += MAX_IDS) {
    const some = token_ids.slice(from, from + MAX_IDS);
    await tx.run(tx.k.deleteFrom("agent_connections").where("token_id", "in", some));
    await tx.run(tx.k.deleteFrom("oauth_tokens").where("token_id", "in", some));
  }
}

/** Deletes a token of an agent that no agent uses any more. Undefined when it is a user's, or is used. */
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

/**
 * Makes `holder` the one that refreshes a token, for `hold_ms` by the clock of the database, unless somebody else is at it.
 *
 * @returns the token as it is now; undefined when it is gone or somebody else refreshes it
 */
export const holdForRefresh = (
  tx: Tx,
  token_id: string,
  holder: string,
  hold_ms: number,
): Promise<TokenRow | undefined> =>
  tx.first(
    tx.k
      .updateTable("oauth_tokens")
      .set({ refresh_holder: holder, refresh_until: sql<number>`now_ms() + ${hold_ms}` })
      .where("token_id", "=", token_id)
      .where((e) => e.or([e("refresh_until", "is", null), e("refresh_until", "<=", nowMs)]))
      .returningAll(),
  );

/** Ends what {@link holdForRefresh} began, with the new token when there is one. Undefined when the token is gone meanwhile. */
export const endRefresh = (
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

/** Deletes a token that can be refreshed no more, with the connections of agents to it. Undefined when `holder` no longer has it. */
export async function deleteTokenIfHeld(tx: Tx, token_id: string, holder: string): Promise<TokenRow | undefined> {
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
