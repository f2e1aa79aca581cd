import { isoOfMilliseconds } from "../platform/lib/times.ts";
import type { AgentConnection, OAuthProvider, OAuthTokenSummary, TokenEvent } from "./contract/records.ts";
import type { ConnectionWithToken } from "./storage/connections.ts";
import type { ProviderRow, TokenEventRow, TokenRow } from "./storage/schema.ts";

// Every field is listed explicitly, so that a new column cannot expose a secret.

const timeOrNull = (ms: number | null): string | null => (ms === null ? null : isoOfMilliseconds(ms));

export const providerOf = (row: ProviderRow): OAuthProvider => ({
  id: row.id,
  organization_id: row.tenant_id,
  provider_id: row.provider_id,
  name: row.name,
  client_id: row.client_id,
  auth_url: row.auth_url,
  token_url: row.token_url,
  uses_pkce: row.uses_pkce === 1,
  code_challenge_method: row.code_challenge_method,
  provider_type: row.provider_type,
  mcp_server_url: row.mcp_server_url,
  token_endpoint_auth_method: row.token_endpoint_auth_method,
  is_dynamic_client: row.is_dynamic_client === 1,
  authorization_params: JSON.parse(row.authorization_params) as Record<string, string>,
  allowed_redirect_uris: JSON.parse(row.allowed_redirect_uris) as string[],
  default_redirect_uri: row.default_redirect_uri,
  created_at: isoOfMilliseconds(row.created_at),
  updated_at: isoOfMilliseconds(row.updated_at),
});

export const tokenSummaryOf = (row: TokenRow): OAuthTokenSummary => ({
  id: row.token_id,
  provider_id: row.provider_id,
  provider_account_label: row.provider_account_label,
  scopes: JSON.parse(row.scopes) as string[],
  expires_at: timeOrNull(row.expires_at),
  is_default: row.is_default === 1,
  created_at: isoOfMilliseconds(row.created_at),
  updated_at: isoOfMilliseconds(row.updated_at),
});

export const connectionOf = (row: Omit<ConnectionWithToken, "user_id">): AgentConnection => ({
  id: row.connection_id,
  agent_id: row.agent_id,
  oauth_token_id: row.token_id,
  provider_id: row.provider_id,
  provider_account_label: row.provider_account_label,
  scopes: JSON.parse(row.scopes) as string[],
  expires_at: timeOrNull(row.expires_at),
  created_by: row.created_by,
  created_at: isoOfMilliseconds(row.created_at),
});

export const tokenEventOf = (row: TokenEventRow): TokenEvent => ({
  id: row.event_id,
  provider_id: row.provider_id,
  agent_id: row.agent_id,
  event_type: row.event_type,
  reason: row.reason,
  source: row.source,
  provider_account_label: row.provider_account_label,
  scopes: JSON.parse(row.scopes) as string[],
  detail: row.detail === null ? null : { message: row.detail },
  acknowledged_at: timeOrNull(row.acknowledged_at),
  created_at: isoOfMilliseconds(row.created_at),
});
