import { type Caller, mayUse } from "../../platform/contract/caller.ts";
import { ApiError } from "../../platform/errors.ts";
import type { BackgroundService } from "../../platform/lib/background-service.ts";
import type { JsonObject } from "../../platform/lib/json/json.ts";
import type { VaultContext } from "../context.ts";
import type { AuthenticateAnswer, AuthenticateRequest, McpDiscoverRequest, WaitAnswer } from "../contract/flows.ts";
import type { OAuthProvider } from "../contract/records.ts";
import { retention } from "../retention.ts";
import { listConnections } from "../storage/connections.ts";
import { deleteExpiredFlows } from "../storage/flows.ts";
import { findProvider } from "../storage/providers.ts";
import type { ProviderRow, TokenRow } from "../storage/schema.ts";
import { findToken, listTokens } from "../storage/tokens.ts";
import { type CallbackParameters, type FlowResult, handleCallback } from "./flow-callback.ts";
import { startFlow } from "./flow-start.ts";
import { waitForFlow } from "./flow-wait.ts";
import { discoverProvider } from "./mcp-discovery.ts";
import { ensureFreshToken } from "./refresh.ts";

/** Client libraries request 300 s by default. */
const MAX_WAIT_MS = 600_000;

/** Time until an expired flow is deleted. */
const RETENTION_MS = 24 * 3_600_000;

interface RunUser {
  tenant_id: string;
  user_id: string;
  /** The Auth Service uses assistant IDs as agent IDs. */
  assistant_id: string;
}

interface RunTokenRequest {
  provider: string;
  scopes: string[];
  /** Whether the token is requested for the assistant, or for the user only. */
  agent_scoped: boolean;
  token_id?: string | undefined;
}

/** Manages OAuth flows, and deletes expired flows. */
export class Flows implements BackgroundService {
  readonly #context: VaultContext;
  readonly #retention: BackgroundService;
  readonly #stopping = new AbortController();

  constructor(context: VaultContext) {
    this.#context = context;
    this.#retention = retention(context, "oauth_flows", (tx, limit) => deleteExpiredFlows(tx, RETENTION_MS, limit));
  }

  /**
   * Returns a user's token at a provider, or the URL at which the user can authorize access.
   *
   * @param base_url public URL of this server, if known
   * @throws ApiError oauth_provider_not_found, oauth_token_not_found; provider_unavailable when the token has expired and the refresh
   *   failed temporarily; no_public_url, redirect_uri_not_allowed
   */
  async authenticate(
    caller: Caller,
    body: AuthenticateRequest,
    base_url: string | undefined,
  ): Promise<AuthenticateAnswer> {
    const provider = await findProvider(this.#context.database.read, caller.tenant_id, body.provider);
    if (!provider) throw new ApiError("oauth_provider_not_found", { provider_id: body.provider });
    const request = { caller, user_id: requestedUserId(caller, body), provider, body, base_url };
    const found = body.force_new ? { status: "pending" as const } : await this.#findUsableToken(request);
    return found.status === "completed" ? found : this.#requestAuthorization(request, found);
  }

  /**
   * Returns a token for the graph of a run, or the URL at which the run's user can authorize access. The request is made as that user. The
   * scopes of the user's API key do not apply, because the request comes from the operator's graph.
   *
   * @throws ApiError with the same codes as {@link authenticate}
   */
  async tokenForRun(
    { tenant_id, user_id, assistant_id }: RunUser,
    { provider, scopes, agent_scoped, token_id }: RunTokenRequest,
    base_url: string | undefined,
  ): Promise<{ token: string } | { auth_url: string }> {
    // Without the scope `service`, so that the request cannot select another user.
    const caller = { tenant_id, user_id, scopes: [] };
    const body = {
      provider,
      scopes,
      token_id,
      agent_id: agent_scoped ? assistant_id : undefined,
      user_id: undefined,
      ls_user_id: undefined,
      use_agent_builder_public_oauth: false,
      force_new: false,
      is_default: true,
    };
    const response = await this.authenticate(caller, body, base_url);
    return response.status === "completed" ? { token: response.token as string } : { auth_url: response.url as string };
  }

  /** Like {@link waitForFlow}, but also ends when the service stops. */
  wait(caller: Caller, auth_id: string, timeout_s: number, signal: AbortSignal): Promise<WaitAnswer> {
    const timeout_ms = Math.min(Math.max(timeout_s, 0) * 1000, MAX_WAIT_MS);
    const ended = AbortSignal.any([signal, this.#stopping.signal]);
    return waitForFlow(this.#context, caller, auth_id, { timeout_ms, signal: ended });
  }

  /** See {@link handleCallback}. */
  handleCallback(callback: CallbackParameters, caller?: Caller): Promise<FlowResult> {
    return this.#context.ongoing.add(handleCallback(this.#context, callback, caller));
  }

  /** See {@link discoverProvider}. */
  discover(caller: Caller, body: McpDiscoverRequest, base_url: string | undefined): Promise<OAuthProvider> {
    return discoverProvider(this.#context, caller, body, base_url);
  }

  start(): void {
    this.#retention.start();
  }

  stop(): Promise<void> {
    this.#stopping.abort();
    return this.#retention.stop();
  }

  /** Finds the requested token; if none is requested, a token that is connected to the agent, else the user's default token. */
  async #findUsableToken(request: TokenRequest): Promise<CompletedAnswer | MissingToken> {
    const { read } = this.#context.database;
    const { user_id, body } = request;
    const { tenant_id, provider_id } = request.provider;
    if (body.token_id !== undefined) {
      const token = await findToken(read, tenant_id, body.token_id);
      if (token?.user_id !== user_id || token.provider_id !== provider_id) throw new ApiError("oauth_token_not_found");
      return this.#useToken(request, token, "token_expired");
    }
    let first_missing: MissingToken | undefined;
    for (const token of await this.#connectedTokens(request)) {
      const result = await this.#useToken(request, token, "pending");
      if (result.status === "completed") return result;
      first_missing ??= result;
    }
    const tokens = await listTokens(read, { tenant_id, user_id, provider_id });
    const default_token = tokens.find((token) => token.is_default === 1);
    const result = default_token && (await this.#useToken(request, default_token, "pending"));
    if (result?.status === "completed") return result;
    const missing = first_missing ?? result;
    if (missing) return missing;
    const hasUnconnected = tokens.some((token) => coversScopes(token, body.scopes));
    return { status: hasUnconnected && body.agent_id !== undefined ? "connection_required" : "pending" };
  }

  /** The user's own tokens first, then tokens of the agent, which all of its users share; newest connection first. */
  async #connectedTokens({ user_id, provider, body: { agent_id } }: TokenRequest): Promise<TokenRow[]> {
    if (agent_id === undefined) return [];
    const { read } = this.#context.database;
    const { tenant_id, provider_id } = provider;
    const connections = await listConnections(read, { tenant_id, agent_id, user_id }, provider_id);
    const tokens = await Promise.all(connections.map(({ token_id }) => findToken(read, tenant_id, token_id)));
    const found = tokens.filter((token) => token !== undefined);
    return [
      ...found.filter((token) => token.user_id === user_id),
      ...found.filter((token) => token.user_id !== user_id),
    ];
  }

  /** @param status_if_expired the status when the token has expired and cannot be refreshed */
  async #useToken(
    { user_id, provider: { provider_id }, body }: TokenRequest,
    token: TokenRow,
    status_if_expired: MissingToken["status"],
  ): Promise<CompletedAnswer | MissingToken> {
    const token_to_renew = token.user_id === user_id ? token : undefined;
    if (!coversScopes(token, body.scopes)) return { status: "pending", token_to_renew };
    const state = await ensureFreshToken(this.#context, token);
    if (state.status === "deleted") return { status: "pending" };
    if (state.status === "expired") return { status: status_if_expired, token_to_renew };
    if (state.status === "unavailable")
      throw new ApiError("provider_unavailable", { provider_id, reason: state.reason });
    const metadata = JSON.parse(state.token.metadata) as JsonObject;
    return { status: "completed", url: null, auth_id: null, token: state.secret.access_token, user_id, metadata };
  }

  async #requestAuthorization(
    { caller, user_id, body, base_url }: TokenRequest,
    { status, token_to_renew }: MissingToken,
  ): Promise<AuthenticateAnswer> {
    // Again, because it may have been changed or deleted during a refresh.
    const provider = await findProvider(this.#context.database.read, caller.tenant_id, body.provider);
    if (!provider) throw new ApiError("oauth_provider_not_found", { provider_id: body.provider });
    const { agent_id, scopes, is_default } = body;
    const owner = { tenant_id: caller.tenant_id, user_id, started_by: caller.user_id };
    const flow = { ...owner, agent_id, scopes, is_default, token_to_renew, base_url };
    const { url, auth_id } = await startFlow(this.#context, provider, flow);
    return { status, url, auth_id, token: null, user_id, metadata: null };
  }
}

interface TokenRequest {
  caller: Caller;
  /** User ID of the requested token's owner. */
  user_id: string;
  provider: ProviderRow;
  body: AuthenticateRequest;
  base_url: string | undefined;
}

type CompletedAnswer = AuthenticateAnswer & { status: "completed" };

/** Result without a usable token: the status of the response, and the token that a flow must renew. */
interface MissingToken {
  status: "pending" | "connection_required" | "token_expired";
  token_to_renew?: TokenRow | undefined;
}

/** Only a caller with the scope `service` can select another user. For other callers, `user_id` and `ls_user_id` are ignored. */
const requestedUserId = (caller: Caller, { ls_user_id, user_id }: AuthenticateRequest): string =>
  mayUse(caller, "service") ? (ls_user_id ?? user_id ?? caller.user_id) : caller.user_id;

const coversScopes = (token: TokenRow, scopes: readonly string[]): boolean => {
  const granted = new Set(JSON.parse(token.scopes) as string[]);
  return scopes.every((scope) => granted.has(scope));
};
