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

/** Upper limit of the requested timeout. The default of the clients is 300 s. */
const MAX_WAIT_MS = 600_000;

/** Expired flows are deleted after this time. */
const RETENTION_MS = 24 * 3_600_000;

/** The user and the assistant of a run. */
interface RunUser {
  tenant_id: string;
  user_id: string;
  /** Assistants are the agents of the Auth Service. */
  assistant_id: string;
}

interface RunTokenRequest {
  provider: string;
  scopes: string[];
  /** Whether the token is requested for the assistant, or for the user only. */
  agent_scoped: boolean;
  token_id?: string | undefined;
}

/** OAuth flows: authentication requests, waits, callbacks, discovery, and the deletion of expired flows. */
export class Flows implements BackgroundService {
  readonly #context: VaultContext;
  readonly #retention: BackgroundService;
  readonly #stopping = new AbortController();

  constructor(context: VaultContext) {
    this.#context = context;
    this.#retention = retention(context, "oauth_flows", (tx, limit) => deleteExpiredFlows(tx, RETENTION_MS, limit));
  }

  /** As {@link authenticate}. */
  authenticate(caller: Caller, body: AuthenticateRequest, base_url: string | undefined): Promise<AuthenticateAnswer> {
    return authenticate(this.#context, caller, body, base_url);
  }

  /**
   * Returns a token for the graph of a run, or the URL at which the run's user authorizes. The request is made as the run's user. The
   * scopes of the user's API key do not apply, because the request comes from the operator's graph.
   *
   * @param base_url as in {@link authenticate}
   * @throws ApiError as {@link authenticate}
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

  /**
   * As {@link waitForFlow}; also ends when the service stops.
   *
   * @param signal aborted when the client disconnects
   */
  wait(caller: Caller, auth_id: string, timeout_s: number, signal: AbortSignal): Promise<WaitAnswer> {
    const timeout_ms = Math.min(Math.max(timeout_s, 0) * 1000, MAX_WAIT_MS);
    const ended = AbortSignal.any([signal, this.#stopping.signal]);
    return waitForFlow(this.#context, caller, auth_id, { timeout_ms, signal: ended });
  }

  /** As {@link handleCallback}. */
  handleCallback(callback: CallbackParameters, caller?: Caller): Promise<FlowResult> {
    return handleCallback(this.#context, callback, caller);
  }

  /** As {@link discoverProvider}. */
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
}

/** A validated request. */
interface TokenRequest {
  caller: Caller;
  /** Owner of the requested token. */
  user_id: string;
  provider: ProviderRow;
  body: AuthenticateRequest;
  base_url: string | undefined;
}

type CompletedAnswer = AuthenticateAnswer & { status: "completed" };

/** No usable token: the status of the response, and the token that a flow is to renew. */
interface MissingToken {
  status: "pending" | "connection_required" | "token_expired";
  token_to_renew?: TokenRow | undefined;
}

/**
 * Returns a token of a user at a provider, or the URL at which the user authorizes.
 *
 * @param base_url public URL of this server; undefined when it is not known
 * @throws ApiError oauth_provider_not_found, oauth_token_not_found; provider_unavailable when the token has expired and the refresh
 *   failed temporarily; no_public_url, redirect_uri_not_allowed
 */
async function authenticate(
  context: VaultContext,
  caller: Caller,
  body: AuthenticateRequest,
  base_url: string | undefined,
): Promise<AuthenticateAnswer> {
  const provider = await findProvider(context.database.read, caller.tenant_id, body.provider);
  if (!provider) throw new ApiError("oauth_provider_not_found", { provider_id: body.provider });
  const request = { caller, user_id: requestedUserId(caller, body), provider, body, base_url };
  const found = body.force_new ? { status: "pending" as const } : await findUsableToken(context, request);
  return found.status === "completed" ? found : requestAuthorization(context, request, found);
}

/** Only a caller with the scope `service` can select another user. For other callers the fields are ignored. */
const requestedUserId = (caller: Caller, { ls_user_id, user_id }: AuthenticateRequest): string =>
  mayUse(caller, "service") ? (ls_user_id ?? user_id ?? caller.user_id) : caller.user_id;

/** In this order: the requested token, a token that the agent is connected to, the user's default token. */
async function findUsableToken(context: VaultContext, request: TokenRequest): Promise<CompletedAnswer | MissingToken> {
  const { database } = context;
  const { caller, user_id, provider, body } = request;
  const { provider_id } = provider;
  const { tenant_id } = caller;
  if (body.token_id !== undefined) {
    const token = await findToken(database.read, tenant_id, body.token_id);
    if (token?.user_id !== user_id || token.provider_id !== provider_id) throw new ApiError("oauth_token_not_found");
    return useToken(context, request, token, "token_expired");
  }
  let first_missing: MissingToken | undefined;
  for (const token of await connectedTokens(context, request)) {
    const result = await useToken(context, request, token, "pending");
    if (result.status === "completed") return result;
    first_missing ??= result;
  }
  const tokens = await listTokens(database.read, { tenant_id, user_id, provider_id });
  const default_token = tokens.find((token) => token.is_default === 1);
  const result = default_token && (await useToken(context, request, default_token, "pending"));
  if (result?.status === "completed") return result;
  const missing = first_missing ?? result;
  if (missing) return missing;
  const hasUnconnected = tokens.some((token) => coversScopes(token, body.scopes));
  return { status: hasUnconnected && body.agent_id !== undefined ? "connection_required" : "pending" };
}

/** The user's own tokens first, then tokens of the agent, which all of its users share; newest connection first. */
async function connectedTokens({ database }: VaultContext, request: TokenRequest): Promise<TokenRow[]> {
  const { caller, user_id, provider, body } = request;
  if (body.agent_id === undefined) return [];
  const { tenant_id } = caller;
  const selection = { tenant_id, agent_id: body.agent_id, user_id };
  const connections = await listConnections(database.read, selection, provider.provider_id);
  const tokens = await Promise.all(connections.map(({ token_id }) => findToken(database.read, tenant_id, token_id)));
  const found = tokens.filter((token) => token !== undefined);
  return [...found.filter((token) => token.user_id === user_id), ...found.filter((token) => token.user_id !== user_id)];
}

/** @param status_if_expired the status when the token has expired and cannot be refreshed */
async function useToken(
  context: VaultContext,
  { user_id, provider, body }: TokenRequest,
  token: TokenRow,
  status_if_expired: MissingToken["status"],
): Promise<CompletedAnswer | MissingToken> {
  const token_to_renew = token.user_id === user_id ? token : undefined;
  if (!coversScopes(token, body.scopes)) return { status: "pending", token_to_renew };
  const state = await ensureFreshToken(context, token);
  switch (state.status) {
    case "fresh":
      return {
        status: "completed",
        url: null,
        auth_id: null,
        token: state.secret.access_token,
        user_id,
        metadata: JSON.parse(state.token.metadata) as JsonObject,
      };
    case "deleted":
      return { status: "pending" };
    case "expired":
      return { status: status_if_expired, token_to_renew };
    case "unavailable":
      throw new ApiError("provider_unavailable", { provider_id: provider.provider_id, reason: state.reason });
  }
}

const coversScopes = (token: TokenRow, scopes: readonly string[]): boolean => {
  const granted = new Set(JSON.parse(token.scopes) as string[]);
  return scopes.every((scope) => granted.has(scope));
};

/** Starts a flow and returns its authorization URL. */
async function requestAuthorization(
  context: VaultContext,
  { caller, user_id, provider, body, base_url }: TokenRequest,
  { status, token_to_renew }: MissingToken,
): Promise<AuthenticateAnswer> {
  const { url, auth_id } = await startFlow(context, provider, {
    tenant_id: caller.tenant_id,
    user_id,
    started_by: caller.user_id,
    agent_id: body.agent_id,
    scopes: body.scopes,
    is_default: body.is_default,
    token_to_renew,
    base_url,
  });
  return { status, url, auth_id, token: null, user_id, metadata: null };
}
