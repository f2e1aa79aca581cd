import type { Caller } from "../../platform/contract/caller.ts";
import { redactedInput } from "../../platform/contract/validation-errors.ts";
import type { Tx } from "../../platform/database/database.ts";
import { ApiError, type InvalidPart, InvalidRequestError } from "../../platform/errors.ts";
import { newId } from "../../platform/lib/ids.ts";
import { type FetchRules, urlRefusal } from "../../platform/lib/safe-fetch/safe-fetch.ts";
import type { VaultContext } from "../context.ts";
import type { ProviderCreate, ProviderUpdate } from "../contract/providers.ts";
import type { OAuthProvider } from "../contract/records.ts";
import { cancelFlows, deleteFlows } from "../storage/flows.ts";
import {
  deleteProvider,
  findProvider,
  insertProvider,
  listProviders,
  lockProvider,
  type NewProvider,
  updateProvider,
} from "../storage/providers.ts";
import type { ProviderRow } from "../storage/schema.ts";
import { insertTokenEvents } from "../storage/token-events.ts";
import { lockTokensOfProvider, renewToken } from "../storage/tokens.ts";
import { apiTokenEvent, deleteTokensWithEvents } from "../tokens/token-events.ts";
import { NO_SECRET, sealToken } from "../tokens/token-secret.ts";
import { providerOf } from "../wire.ts";
import { notifyFlowWaiters } from "./flow-wait.ts";
import { sealClientSecret } from "./provider-secret.ts";
import { revokeInBackground } from "./revocation.ts";

export class Providers {
  readonly #context: VaultContext;

  constructor(context: VaultContext) {
    this.#context = context;
  }

  async list({ tenant_id }: Caller): Promise<OAuthProvider[]> {
    return (await listProviders(this.#context.database.read, tenant_id)).map(providerOf);
  }

  /** @throws ApiError oauth_provider_not_found */
  async get({ tenant_id }: Caller, provider_id: string): Promise<OAuthProvider> {
    const row = await findProvider(this.#context.database.read, tenant_id, provider_id);
    if (!row) throw new ApiError("oauth_provider_not_found", { provider_id });
    return providerOf(row);
  }

  /** @throws InvalidRequestError for a URL that is not allowed or a malformed redirect URI; ApiError oauth_provider_exists */
  async create({ tenant_id }: Caller, request: ProviderCreate): Promise<OAuthProvider> {
    const { database, seal, fetch_rules } = this.#context;
    checkAddresses(request, fetch_rules);
    const { client_secret, uses_pkce, authorization_params, allowed_redirect_uris, ...texts } = request;
    const key = { tenant_id, id: newId() };
    const row = await database.write((tx) =>
      insertProvider(tx, {
        ...key,
        ...texts,
        client_secret: client_secret ? sealClientSecret(seal, key, client_secret) : null,
        uses_pkce: uses_pkce ? 1 : 0,
        is_dynamic_client: 0,
        authorization_params: JSON.stringify(authorization_params),
        allowed_redirect_uris: JSON.stringify(allowed_redirect_uris),
      }),
    );
    if (!row) throw new ApiError("oauth_provider_exists", { provider_id: request.provider_id });
    return providerOf(row);
  }

  /**
   * Updates a provider. A change of the client, issuer, authorization URL or token URL cancels open flows, which use the old values. A
   * change of the origin of the token or revocation URL also drops the client secret and all grants, because they must not be sent there.
   *
   * @throws InvalidRequestError for a URL that is not allowed or a malformed redirect URI; ApiError oauth_provider_not_found
   */
  async update(caller: Caller, provider_id: string, request: ProviderUpdate): Promise<OAuthProvider> {
    const { database, seal, fetch_rules } = this.#context;
    const { tenant_id } = caller;
    checkAddresses(request, fetch_rules);
    const updated = await database.write(async (tx) => {
      const found = await findProvider(tx, tenant_id, provider_id);
      if (!found) return undefined;
      const changes = changesOf(request, (secret) => sealClientSecret(seal, found, secret));
      // Lock order: flows before the provider.
      const isElsewhere = changesTokenOrigin(changes, found);
      const flows =
        isElsewhere || affectsFlows(changes, found) ? await cancelFlows(tx, { tenant_id, provider_id }) : [];
      if (!isElsewhere) {
        return { row: await updateProvider(tx, found, changes), before: found, flows, invalidated: [] };
      }
      const outdated = keepsOtherRevocation(changes, found) && { revocation_url: null };
      const row = await updateProvider(tx, found, { client_secret: null, ...outdated, ...changes });
      return { row, before: found, flows, invalidated: await this.#invalidateGrants(tx, caller, provider_id) };
    });
    if (!updated?.row) throw new ApiError("oauth_provider_not_found", { provider_id });
    notifyFlowWaiters(this.#context, updated.flows);
    // Revokes at the old URLs, because the old provider issued the tokens.
    revokeInBackground(this.#context, updated.before, updated.invalidated);
    return providerOf(updated.row);
  }

  /** Removes the secrets of all tokens, so that their owners must authorize again. Connections are kept. @returns the old rows */
  async #invalidateGrants(tx: Tx, { tenant_id, user_id }: Caller, provider_id: string) {
    const { seal } = this.#context;
    await lockProvider(tx, tenant_id, provider_id);
    const tokens = await lockTokensOfProvider(tx, tenant_id, provider_id);
    for (const token of tokens)
      await renewToken(tx, token.token_id, {
        secret: sealToken(seal, token, NO_SECRET),
        scopes: token.scopes,
        expires_at: 0,
        metadata: token.metadata,
      });
    await insertTokenEvents(
      tx,
      tokens.map((token) => apiTokenEvent(token, user_id, "needs_reconnect", "provider_changed")),
    );
    return tokens;
  }

  /** Deletes a provider with its flows and the tokens of all users and agents. @throws ApiError oauth_provider_not_found */
  async delete({ tenant_id, user_id }: Caller, provider_id: string): Promise<void> {
    const { database } = this.#context;
    const { provider, flows, tokens } = await database.write(async (tx) => {
      const flows = await deleteFlows(tx, tenant_id, provider_id);
      const provider = await lockProvider(tx, tenant_id, provider_id);
      const tokens = await lockTokensOfProvider(tx, tenant_id, provider_id);
      await deleteTokensWithEvents(tx, tokens, user_id, "provider_deleted");
      await deleteProvider(tx, tenant_id, provider_id);
      return { provider, flows, tokens };
    });
    if (!provider) throw new ApiError("oauth_provider_not_found", { provider_id });
    notifyFlowWaiters(this.#context, flows);
    const fields = { workspace_id: tenant_id, user_id, provider_id, tokens: tokens.length };
    this.#context.log.info(fields, "OAuth provider and tokens deleted");
    revokeInBackground(this.#context, provider, tokens);
  }
}

/** Fields that are missing or null stay unchanged. */
function changesOf(request: ProviderUpdate, seal: (secret: string) => string): Partial<NewProvider> {
  const { client_secret, uses_pkce, authorization_params, allowed_redirect_uris, ...texts } = request;
  const strings = Object.entries(texts).filter(([, value]) => typeof value === "string");
  return {
    ...Object.fromEntries(strings),
    ...(typeof client_secret === "string" && { client_secret: client_secret === "" ? null : seal(client_secret) }),
    ...(typeof uses_pkce === "boolean" && { uses_pkce: uses_pkce ? 1 : 0 }),
    ...(authorization_params && { authorization_params: JSON.stringify(authorization_params) }),
    ...(allowed_redirect_uris && { allowed_redirect_uris: JSON.stringify(allowed_redirect_uris) }),
  };
}

/**
 * Fields that open flows depend on. A secret in the request counts as a change even if it is the same, because encryption produces a
 * different value each time.
 */
const FLOW_FIELDS = ["client_id", "client_secret", "auth_url", "token_url", "issuer"] as const;

const originOf = (url: string): string => new URL(url).origin;

/** Whether tokens or the client secret would be sent to another origin, for a refresh or a revocation. */
function changesTokenOrigin(changes: Partial<NewProvider>, row: ProviderRow): boolean {
  const { token_url = row.token_url, revocation_url } = changes;
  if (originOf(token_url) !== originOf(row.token_url)) return true;
  if (revocation_url === undefined || revocation_url === null) return false;
  return ![token_url, row.revocation_url].some((known) => known && originOf(known) === originOf(revocation_url));
}

/** Whether the token URL moves to another origin and the revocation URL stays elsewhere: it would receive the new secret and tokens. */
function keepsOtherRevocation({ token_url, revocation_url }: Partial<NewProvider>, row: ProviderRow): boolean {
  if (token_url === undefined || revocation_url !== undefined || row.revocation_url === null) return false;
  const origin = originOf(token_url);
  return origin !== originOf(row.token_url) && origin !== originOf(row.revocation_url);
}

const affectsFlows = (changes: Partial<NewProvider>, row: ProviderRow): boolean =>
  FLOW_FIELDS.some((field) => field in changes && changes[field] !== row[field]);

/** The URLs to which the address rules apply. */
const FETCHED_URLS = ["auth_url", "token_url", "revocation_url", "issuer"] as const;

type ProviderAddresses = Partial<Record<(typeof FETCHED_URLS)[number] | "default_redirect_uri", string | null>> & {
  allowed_redirect_uris?: readonly string[] | null | undefined;
};

/** @throws InvalidRequestError that lists every URL that is not allowed and every malformed redirect URI */
function checkAddresses(addresses: ProviderAddresses, rules: FetchRules): void {
  const parts: InvalidPart[] = [];
  const check = (
    loc: (string | number)[],
    url: string | null | undefined,
    refusal: (url: string) => string | undefined,
  ) => {
    const reason = url === null || url === undefined ? undefined : refusal(url);
    if (reason === undefined) return;
    parts.push({
      type: "value_error",
      loc: ["body", ...loc],
      msg: `Value error, ${reason}`,
      input: redactedInput(url),
    });
  };
  for (const field of FETCHED_URLS) check([field], addresses[field], (url) => urlRefusal(url, rules));
  for (const [index, uri] of (addresses.allowed_redirect_uris ?? []).entries())
    check(["allowed_redirect_uris", index], uri, redirectRefusal);
  check(["default_redirect_uri"], addresses.default_redirect_uri, redirectRefusal);
  if (parts.length > 0) throw new InvalidRequestError(parts);
}

/** Only the format is checked: browsers are redirected to the URI, which may be in any network, and it is never fetched. */
function redirectRefusal(uri: string): string | undefined {
  if (!URL.canParse(uri)) return "The URI must be absolute, such as https://example.com/callback.";
  const { protocol, username, password, hash } = new URL(uri);
  if (protocol !== "https:" && protocol !== "http:") return "The URI must begin with https:// or http://.";
  if (username !== "" || password !== "" || hash !== "")
    return "The URI must not contain a user name, a password or a fragment.";
  return undefined;
}
