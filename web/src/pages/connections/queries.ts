import { queryOptions } from "@tanstack/react-query";
import type { AuthenticateAnswer, WaitAnswer } from "../../../../src/access/contract/flows.ts";
import type { OAuthProvider, OAuthTokenSummary } from "../../../../src/access/contract/records.ts";
import { api } from "../../api/request.ts";

export const connectionsKey = ["connections"] as const;

export const providersQuery = queryOptions({
  queryKey: [...connectionsKey, "providers"],
  queryFn: ({ signal }) => api.get<OAuthProvider[]>("/v2/auth/providers", { signal }),
});

export const tokensQuery = queryOptions({
  queryKey: [...connectionsKey, "tokens"],
  queryFn: ({ signal }) => api.get<OAuthTokenSummary[]>("/v2/auth/tokens", { signal }),
});

export const createProvider = (provider: object): Promise<OAuthProvider> => api.post("/v2/auth/providers", provider);

export const discoverProvider = (server: object): Promise<OAuthProvider> =>
  api.post("/v2/auth/providers/mcp-discover", server);

export const deleteProvider = (provider_id: string): Promise<void> =>
  api.delete(`/v2/auth/providers/${encodeURIComponent(provider_id)}`);

export const makeDefault = (token_id: string): Promise<OAuthTokenSummary> =>
  api.patch(`/v2/auth/tokens/${token_id}/metadata`, { is_default: true });

export const deleteToken = (token_id: string): Promise<void> => api.delete(`/v2/auth/tokens/${token_id}`);

/** Deletes all of the signed-in user's tokens for a provider. */
export const deleteTokens = (provider_id: string): Promise<void> =>
  api.delete("/v2/auth/tokens", { query: { provider_id } });

/** Starts an OAuth flow that adds an account. @returns the authorization URL and the flow's ID */
export async function startFlow(
  provider: string,
  options: { scopes: string[]; is_default: boolean },
): Promise<{ url: string; auth_id: string }> {
  const { url, auth_id } = await api.post<AuthenticateAnswer>("/v2/auth/authenticate", {
    provider,
    force_new: true,
    ...options,
  });
  if (!url || !auth_id)
    throw new Error(`The server did not return an authorization URL for the provider “${provider}”. Try again.`);
  return { url, auth_id };
}

/** Long-poll timeout in seconds. Proxies may close requests that take longer. */
const WAIT_S = 25;

/** Waits until an OAuth flow ends. @returns whether the flow returned a token */
export async function waitForFlow(auth_id: string, signal: AbortSignal): Promise<boolean> {
  for (;;) {
    const { status } = await api.get<WaitAnswer>(`/v2/auth/wait/${encodeURIComponent(auth_id)}`, {
      signal,
      query: { timeout: WAIT_S },
    });
    if (status === "completed") return true;
    if (status === "not_found") return false;
  }
}
