import type { Tx } from "../../platform/database/database.ts";
import type { TokenRow } from "../storage/schema.ts";
import { clearDefault, insertToken, type NewToken, providersWithTokens } from "../storage/tokens.ts";

/** A token of a user that is not stored yet. */
export type UsersToken = Omit<NewToken, "user_id" | "agent_id" | "is_default"> & { user_id: string };

/** Stores a token of a user. It becomes the default at its provider when that is asked for, and when it is the first one there. */
export async function addToken(tx: Tx, token: UsersToken, wants_default: boolean): Promise<TokenRow> {
  const { provider_id } = token;
  const is_first = !(await providersWithTokens(tx, token, [provider_id])).has(provider_id);
  const is_default = wants_default || is_first;
  if (is_default) await clearDefault(tx, token);
  return insertToken(tx, { ...token, agent_id: null, is_default: is_default ? 1 : 0 });
}
