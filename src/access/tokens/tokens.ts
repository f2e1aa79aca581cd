import type { Caller } from "../../platform/contract/caller.ts";
import type { Tx } from "../../platform/database/database.ts";
import { ApiError } from "../../platform/errors.ts";
import { newId } from "../../platform/lib/ids.ts";
import type { VaultContext } from "../context.ts";
import type { OAuthTokenSummary, TokenEvent } from "../contract/records.ts";
import type { TokenImport, TokensDeleted, TokenUpdate } from "../contract/tokens.ts";
import { cancelFlows } from "../storage/flows.ts";
import { findProvider, lockProvider } from "../storage/providers.ts";
import type { TokenRow } from "../storage/schema.ts";
import { insertTokenEvents, listTokenEvents } from "../storage/token-events.ts";
import {
  clearDefault,
  deleteTokens,
  findToken,
  listTokens,
  lockToken,
  lockTokens,
  providersWithTokens,
  updateToken,
} from "../storage/tokens.ts";
import { tokenEventOf, tokenSummaryOf } from "../wire.ts";
import { addToken } from "./add-token.ts";
import { announceFlows, type RevokeTokens, revokeLater } from "./after-deletion.ts";
import { expiryOf, givenSecret } from "./given-token.ts";
import { calledFor } from "./token-events.ts";
import { sealToken } from "./token-secret.ts";

type Owner = Pick<Caller, "tenant_id" | "user_id">;

/** The OAuth tokens of the calling user in their workspace. The user is known from the credentials, never from the request. */
export class Tokens {
  readonly #context: VaultContext;
  readonly #revoke: RevokeTokens;

  constructor(context: VaultContext, revoke: RevokeTokens) {
    this.#context = context;
    this.#revoke = revoke;
  }

  async list({ tenant_id, user_id }: Owner, provider_id?: string): Promise<OAuthTokenSummary[]> {
    const rows = await listTokens(this.#context.database.read, { tenant_id, user_id, provider_id });
    return rows.map(tokenSummaryOf);
  }

  /** By provider, each that was asked for; one that does not exist has none. */
  async exist({ tenant_id, user_id }: Owner, provider_ids: readonly string[]): Promise<Record<string, boolean>> {
    const having = await providersWithTokens(this.#context.database.read, { tenant_id, user_id }, provider_ids);
    return Object.fromEntries(provider_ids.map((provider_id) => [provider_id, having.has(provider_id)]));
  }

  /** @throws ApiError oauth_provider_not_found */
  async import({ tenant_id, user_id }: Owner, request: TokenImport): Promise<{ token_id: string }> {
    const { database, seal, clock } = this.#context;
    const { provider_id, scopes, metadata, is_default } = request;
    const token_id = newId();
    const given = {
      token_id,
      tenant_id,
      provider_id,
      user_id,
      provider_account_label: null,
      scopes: JSON.stringify(scopes),
      secret: sealToken(seal, { tenant_id, token_id }, givenSecret(request)),
      metadata: JSON.stringify(metadata ?? {}),
      expires_at: expiryOf(request, clock),
    };
    const provider = await database.write(async (tx) => {
      const found = await lockProvider(tx, tenant_id, provider_id);
      if (!found) return undefined;
      const token = await addToken(tx, given, is_default);
      await insertTokenEvents(tx, [calledFor(token, "token_created", { by: user_id })]);
      return found;
    });
    if (!provider) throw new ApiError("oauth_provider_not_found", { provider_id });
    return { token_id };
  }

  /** @throws ApiError oauth_token_not_found, also for a token of somebody else */
  async update({ tenant_id, user_id }: Owner, token_id: string, request: TokenUpdate): Promise<OAuthTokenSummary> {
    const { provider_account_label, is_default } = request;
    const row = await this.#context.database.write(async (tx) => {
      const token = ownedBy(user_id, await findToken(tx, tenant_id, token_id));
      if (!token) throw new ApiError("oauth_token_not_found");
      if (is_default === true) await clearDefault(tx, { tenant_id, user_id, provider_id: token.provider_id });
      const updated = await updateToken(tx, token_id, {
        ...(typeof provider_account_label === "string" && { provider_account_label }),
        ...(typeof is_default === "boolean" && { is_default: is_default ? 1 : 0 }),
      });
      // Deleted meanwhile: then the former default stays one.
      if (!updated) throw new ApiError("oauth_token_not_found");
      return updated;
    });
    return tokenSummaryOf(row);
  }

  /** @throws ApiError oauth_token_not_found, also for a token of somebody else */
  async delete({ tenant_id, user_id }: Owner, token_id: string): Promise<void> {
    const { provider, tokens } = await this.#context.database.write(async (tx) => {
      const token = ownedBy(user_id, await lockToken(tx, tenant_id, token_id));
      return deleteThese(tx, token ? [token] : [], user_id);
    });
    if (tokens.length === 0) throw new ApiError("oauth_token_not_found");
    revokeLater(this.#context, this.#revoke, provider, tokens);
  }

  /**
   * Deletes all tokens of the user at a provider, across agents, and what is under way to one: a callback that comes later finds
   * its flow cancelled. That there are none, or no such provider, is as good.
   */
  async deleteAll({ tenant_id, user_id }: Owner, provider_id: string): Promise<TokensDeleted> {
    const whose = { tenant_id, user_id, provider_id };
    const { provider, tokens, flows } = await this.#context.database.write(async (tx) => {
      const flows = await cancelFlows(tx, whose);
      return { ...(await deleteThese(tx, await lockTokens(tx, whose), user_id)), flows };
    });
    announceFlows(this.#context, flows);
    revokeLater(this.#context, this.#revoke, provider, tokens);
    return { message: `OAuth tokens for provider '${provider_id}' deleted`, provider_id };
  }

  /** Newest first. */
  async events({ tenant_id, user_id }: Owner, provider_id: string | undefined, limit: number): Promise<TokenEvent[]> {
    const rows = await listTokenEvents(this.#context.database.read, { tenant_id, user_id, provider_id }, limit);
    return rows.map(tokenEventOf);
  }
}

const ownedBy = (user_id: string, token: TokenRow | undefined): TokenRow | undefined =>
  token?.user_id === user_id ? token : undefined;

/** Deletes tokens of one provider, which are held, and tells so in their events. */
async function deleteThese(tx: Tx, tokens: readonly TokenRow[], by: string) {
  const [first] = tokens;
  await deleteTokens(
    tx,
    tokens.map(({ token_id }) => token_id),
  );
  await insertTokenEvents(
    tx,
    tokens.map((token) => calledFor(token, "token_deleted", { reason: "user_deleted", by })),
  );
  return { tokens, provider: first && (await findProvider(tx, first.tenant_id, first.provider_id)) };
}
