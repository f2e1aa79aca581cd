import type { Caller } from "../../platform/contract/caller.ts";
import type { Tx } from "../../platform/database/database.ts";
import { ApiError } from "../../platform/errors.ts";
import { newId } from "../../platform/lib/ids.ts";
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
import { deleteTokens, lockTokensAt, renewToken } from "../storage/tokens.ts";
import { announceFlows, type RevokeTokens, revokeLater } from "../tokens/after-deletion.ts";
import { calledFor } from "../tokens/token-events.ts";
import { NO_SECRET, sealToken } from "../tokens/token-secret.ts";
import { providerOf } from "../wire.ts";
import { sealClientSecret } from "./provider-secret.ts";
import { checkAddresses } from "./provider-urls.ts";

type Owner = Pick<Caller, "tenant_id">;

/** The OAuth providers of a workspace. */
export class Providers {
  readonly #context: VaultContext;
  readonly #revoke: RevokeTokens;

  constructor(context: VaultContext, revoke: RevokeTokens) {
    this.#context = context;
    this.#revoke = revoke;
  }

  async list({ tenant_id }: Owner): Promise<OAuthProvider[]> {
    return (await listProviders(this.#context.database.read, tenant_id)).map(providerOf);
  }

  /** @throws ApiError oauth_provider_not_found */
  async get({ tenant_id }: Owner, provider_id: string): Promise<OAuthProvider> {
    const row = await findProvider(this.#context.database.read, tenant_id, provider_id);
    if (!row) throw new ApiError("oauth_provider_not_found", { provider_id });
    return providerOf(row);
  }

  /** @throws InvalidRequestError for an address that may not be fetched; ApiError oauth_provider_exists */
  async create({ tenant_id }: Owner, request: ProviderCreate): Promise<OAuthProvider> {
    const { database, seal, fetch_rules } = this.#context;
    checkAddresses(request, fetch_rules);
    const key = { tenant_id, id: newId() };
    const row = await database.write((tx) =>
      insertProvider(tx, {
        ...key,
        provider_id: request.provider_id,
        name: request.name,
        client_id: request.client_id,
        client_secret: request.client_secret ? sealClientSecret(seal, key, request.client_secret) : null,
        auth_url: request.auth_url,
        token_url: request.token_url,
        revocation_url: request.revocation_url ?? null,
        issuer: request.issuer ?? null,
        resource: null,
        uses_pkce: request.uses_pkce ? 1 : 0,
        code_challenge_method: request.code_challenge_method,
        provider_type: request.provider_type ?? null,
        mcp_server_url: null,
        token_endpoint_auth_method: request.token_endpoint_auth_method,
        is_dynamic_client: 0,
        authorization_params: JSON.stringify(request.authorization_params),
        allowed_redirect_uris: JSON.stringify(request.allowed_redirect_uris),
        default_redirect_uri: request.default_redirect_uri ?? null,
      }),
    );
    if (!row) throw new ApiError("oauth_provider_exists", { provider_id: request.provider_id });
    return providerOf(row);
  }

  /**
   * Another client or another address ends the flows that are under way: what comes back belongs to the old ones. The client secret
   * and all grants belong to the origin of the token endpoint: with another one they go, as it could be anybody's.
   *
   * @throws InvalidRequestError for an address that may not be fetched; ApiError oauth_provider_not_found
   */
  async update(
    caller: Pick<Caller, "tenant_id" | "user_id">,
    provider_id: string,
    request: ProviderUpdate,
  ): Promise<OAuthProvider> {
    const { database, seal, fetch_rules } = this.#context;
    const { tenant_id } = caller;
    checkAddresses(request, fetch_rules);
    const done = await database.write(async (tx) => {
      const found = await findProvider(tx, tenant_id, provider_id);
      if (!found) return undefined;
      const changes = changesOf(request, (secret) => sealClientSecret(seal, found, secret));
      // Flows before the provider, as everywhere.
      const flows = leadsElsewhere(changes, found) ? await cancelFlows(tx, { tenant_id, provider_id }) : [];
      if (!isAtAnotherOrigin(changes, found)) {
        return { row: await updateProvider(tx, found, changes), before: found, flows, ended: [] };
      }
      const row = await updateProvider(tx, found, { client_secret: null, ...changes });
      return { row, before: found, flows, ended: await this.#endGrants(tx, caller, provider_id) };
    });
    if (!done?.row) throw new ApiError("oauth_provider_not_found", { provider_id });
    announceFlows(this.#context, done.flows);
    // At the addresses that they were granted at.
    revokeLater(this.#context, this.#revoke, done.before, done.ended);
    return providerOf(done.row);
  }

  /** Leaves of each grant that there was one, for its owner to renew; its connections stay. Answers them as they were. */
  async #endGrants(tx: Tx, { tenant_id, user_id }: Pick<Caller, "tenant_id" | "user_id">, provider_id: string) {
    const { seal } = this.#context;
    await lockProvider(tx, tenant_id, provider_id);
    const tokens = await lockTokensAt(tx, tenant_id, provider_id);
    for (const token of tokens)
      await renewToken(tx, token.token_id, {
        secret: sealToken(seal, token, NO_SECRET),
        scopes: token.scopes,
        expires_at: 0,
        metadata: token.metadata,
      });
    const why = { reason: "provider_changed", by: user_id } as const;
    await insertTokenEvents(
      tx,
      tokens.map((token) => calledFor(token, "needs_reconnect", why)),
    );
    return tokens;
  }

  /** With the flows and tokens of all users there, and the tokens that agents have there. @throws ApiError oauth_provider_not_found */
  async delete({ tenant_id, user_id }: Pick<Caller, "tenant_id" | "user_id">, provider_id: string): Promise<void> {
    const { database } = this.#context;
    const { provider, flows, tokens } = await database.write(async (tx) => {
      const flows = await deleteFlows(tx, tenant_id, provider_id);
      const provider = await lockProvider(tx, tenant_id, provider_id);
      const tokens = await lockTokensAt(tx, tenant_id, provider_id);
      await deleteTokens(
        tx,
        tokens.map(({ token_id }) => token_id),
      );
      const why = { reason: "provider_deleted", by: user_id } as const;
      await insertTokenEvents(
        tx,
        tokens.map((token) => calledFor(token, "token_deleted", why)),
      );
      await deleteProvider(tx, tenant_id, provider_id);
      return { provider, flows, tokens };
    });
    if (!provider) throw new ApiError("oauth_provider_not_found", { provider_id });
    announceFlows(this.#context, flows);
    revokeLater(this.#context, this.#revoke, provider, tokens);
  }
}

/** What is missing or null stays as it is. */
function changesOf(request: ProviderUpdate, seal: (secret: string) => string): Partial<NewProvider> {
  const { client_secret, uses_pkce, authorization_params, allowed_redirect_uris, ...texts } = request;
  const given = Object.entries(texts).filter(([, value]) => typeof value === "string");
  return {
    ...Object.fromEntries(given),
    ...(typeof client_secret === "string" && { client_secret: client_secret === "" ? null : seal(client_secret) }),
    ...(typeof uses_pkce === "boolean" && { uses_pkce: uses_pkce ? 1 : 0 }),
    ...(authorization_params && { authorization_params: JSON.stringify(authorization_params) }),
    ...(allowed_redirect_uris && { allowed_redirect_uris: JSON.stringify(allowed_redirect_uris) }),
  };
}

/** What a flow that is under way relies on. A secret is sealed anew each time, so that it always counts as another. */
const RELIED_ON = ["client_id", "client_secret", "auth_url", "token_url", "issuer"] as const;

const isAtAnotherOrigin = ({ token_url }: Partial<NewProvider>, row: ProviderRow): boolean =>
  token_url !== undefined && new URL(token_url).origin !== new URL(row.token_url).origin;

const leadsElsewhere = (changes: Partial<NewProvider>, row: ProviderRow): boolean =>
  RELIED_ON.some((field) => field in changes && changes[field] !== row[field]);
