import type { Caller } from "../../platform/contract/caller.ts";
import type { Tx } from "../../platform/database/database.ts";
import { ApiError } from "../../platform/errors.ts";
import type { VaultContext } from "../context.ts";
import type { OAuthTokenSummary, TokenEvent } from "../contract/records.ts";
import type { TokenImport, TokensDeleted, TokenUpdate } from "../contract/tokens.ts";
import { notifyFlowWaiters } from "../oauth/flow-wait.ts";
import { revokeInBackground } from "../oauth/revocation.ts";
import { cancelFlows } from "../storage/flows.ts";
import { findProvider, lockProvider } from "../storage/providers.ts";
import type { ProviderRow, TokenRow } from "../storage/schema.ts";
import { insertTokenEvents, listTokenEvents } from "../storage/token-events.ts";
import {
  clearDefault,
  findToken,
  insertUserToken,
  listTokens,
  lockToken,
  lockTokens,
  providersWithTokens,
  updateToken,
} from "../storage/tokens.ts";
import { tokenEventOf, tokenSummaryOf } from "../wire.ts";
import { apiTokenEvent, deleteTokensWithEvents } from "./token-events.ts";
import { importedColumns } from "./token-secret.ts";

/** The OAuth tokens of the caller in their workspace. The user comes from the credentials, never from the request. */
export class Tokens {
  readonly #context: VaultContext;

  constructor(context: VaultContext) {
    this.#context = context;
  }

  async list({ tenant_id, user_id }: Caller, provider_id?: string): Promise<OAuthTokenSummary[]> {
    const rows = await listTokens(this.#context.database.read, { tenant_id, user_id, provider_id });
    return rows.map(tokenSummaryOf);
  }

  /** Returns whether the caller has a token, by provider ID; false for a provider that does not exist. */
  async exist({ tenant_id, user_id }: Caller, provider_ids: readonly string[]): Promise<Record<string, boolean>> {
    const connected = await providersWithTokens(this.#context.database.read, { tenant_id, user_id }, provider_ids);
    return Object.fromEntries(provider_ids.map((provider_id) => [provider_id, connected.has(provider_id)]));
  }

  /** @throws ApiError oauth_provider_not_found */
  async import({ tenant_id, user_id }: Caller, request: TokenImport): Promise<{ token_id: string }> {
    const { provider_id, is_default } = request;
    const columns = importedColumns(this.#context, tenant_id, request);
    const row = { ...columns, provider_id, user_id, provider_account_label: null };
    const provider = await this.#context.database.write(async (tx) => {
      const found = await lockProvider(tx, tenant_id, provider_id);
      if (!found) return undefined;
      const token = await insertUserToken(tx, row, is_default);
      await insertTokenEvents(tx, [apiTokenEvent(token, user_id, "token_created")]);
      return found;
    });
    if (!provider) throw new ApiError("oauth_provider_not_found", { provider_id });
    return { token_id: row.token_id };
  }

  /** @throws ApiError oauth_token_not_found, also for a token of another user */
  async update({ tenant_id, user_id }: Caller, token_id: string, request: TokenUpdate): Promise<OAuthTokenSummary> {
    const { provider_account_label, is_default } = request;
    const row = await this.#context.database.write(async (tx) => {
      const token = ownedBy(user_id, await findToken(tx, tenant_id, token_id));
      if (!token) throw new ApiError("oauth_token_not_found");
      if (is_default === true) await clearDefault(tx, { tenant_id, user_id, provider_id: token.provider_id });
      const updated = await updateToken(tx, token_id, {
        ...(typeof provider_account_label === "string" && { provider_account_label }),
        ...(typeof is_default === "boolean" && { is_default: is_default ? 1 : 0 }),
      });
      // The token was deleted in the meantime. The error rolls the transaction back, so the previous default is kept.
      if (!updated) throw new ApiError("oauth_token_not_found");
      return updated;
    });
    return tokenSummaryOf(row);
  }

  /** @throws ApiError oauth_token_not_found, also for a token of another user */
  async delete(owner: Caller, token_id: string): Promise<void> {
    const { tenant_id, user_id } = owner;
    const deleted = await this.#context.database.write(async (tx) => {
      const token = ownedBy(user_id, await lockToken(tx, tenant_id, token_id));
      return deleteLocked(tx, token ? [token] : [], user_id);
    });
    if (deleted.tokens.length === 0) throw new ApiError("oauth_token_not_found");
    this.#afterDeletion(owner, deleted);
  }

  /** Also cancels open flows. Succeeds even if there are no tokens or the provider does not exist. */
  async deleteAll(owner: Caller, provider_id: string): Promise<TokensDeleted> {
    const { tenant_id, user_id } = owner;
    const selection = { tenant_id, user_id, provider_id };
    const { flows, ...deleted } = await this.#context.database.write(async (tx) => {
      const flows = await cancelFlows(tx, selection);
      return { ...(await deleteLocked(tx, await lockTokens(tx, selection), user_id)), flows };
    });
    notifyFlowWaiters(this.#context, flows);
    this.#afterDeletion(owner, deleted);
    return { message: `OAuth tokens for provider '${provider_id}' deleted`, provider_id };
  }

  #afterDeletion({ tenant_id, user_id }: Caller, { tokens, provider }: DeletedTokens): void {
    const { log } = this.#context;
    for (const { token_id, provider_id } of tokens)
      log.info({ workspace_id: tenant_id, user_id, provider_id, token_id }, "OAuth token deleted");
    revokeInBackground(this.#context, provider, tokens);
  }

  /** Newest first. */
  async events({ tenant_id, user_id }: Caller, provider_id: string | undefined, limit: number): Promise<TokenEvent[]> {
    const rows = await listTokenEvents(this.#context.database.read, { tenant_id, user_id, provider_id }, limit);
    return rows.map(tokenEventOf);
  }
}

const ownedBy = (user_id: string, token: TokenRow | undefined): TokenRow | undefined =>
  token?.user_id === user_id ? token : undefined;

interface DeletedTokens {
  tokens: readonly TokenRow[];
  provider: ProviderRow | undefined;
}

/** Deletes locked tokens of one provider, and stores an event for each. */
async function deleteLocked(tx: Tx, tokens: readonly TokenRow[], caller_id: string): Promise<DeletedTokens> {
  const [first] = tokens;
  await deleteTokensWithEvents(tx, tokens, caller_id, "user_deleted");
  return { tokens, provider: first && (await findProvider(tx, first.tenant_id, first.provider_id)) };
}
