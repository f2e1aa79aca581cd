import type { Role } from "../../platform/contract/caller.ts";

/**
 * The tables of the access module. `_at` and `_until` are milliseconds since the epoch, lists and objects are JSON text,
 * flags are 0 or 1. Sealed columns are encrypted and bound to their row (src/access/encryption/seal.ts).
 */
declare module "../../platform/database/database.ts" {
  interface Schema {
    workspaces: WorkspaceRow;
    workspace_members: WorkspaceMemberRow;
    api_keys: ApiKeyRow;
    encryption_keys: EncryptionKeyRow;
    oauth_providers: ProviderRow;
    oauth_tokens: TokenRow;
    agent_connections: ConnectionRow;
    oauth_flows: FlowRow;
    oauth_token_events: TokenEventRow;
  }
}

/** Every record belongs to a workspace. In the API, a workspace is also called a tenant or an organization. */
export interface WorkspaceRow {
  tenant_id: string;
  name: string;
  created_at: number;
}

export interface WorkspaceMemberRow {
  tenant_id: string;
  user_id: string;
  role: Role;
  created_at: number;
}

export interface ApiKeyRow {
  key_id: string;
  tenant_id: string;
  user_id: string;
  name: string;
  /** SHA-256 of the whole key, in hex. The key itself is returned once and not stored. */
  digest: string;
  scopes: string;
  created_at: number;
  /** Time of last use, accurate to one minute. */
  last_used_at: number | null;
  revoked_at: number | null;
}

/** An encryption key that this database has used. The service starts only if every registered key that is not retired is configured. */
export interface EncryptionKeyRow {
  key_id: string;
  /** A known text that is sealed with the key. */
  check_value: string;
  created_at: number;
  /** Time at which a rotation found no more values that are encrypted with the key. */
  retired_at: number | null;
}

export interface ProviderRow {
  id: string;
  tenant_id: string;
  /** Chosen by the client, unique within the workspace. */
  provider_id: string;
  name: string;
  client_id: string;
  /** Sealed. */
  client_secret: string | null;
  auth_url: string;
  token_url: string;
  revocation_url: string | null;
  /** Issuer identifier of the authorization server. Responses with another issuer are rejected. */
  issuer: string | null;
  /** RFC 8707 resource indicator of the tokens. */
  resource: string | null;
  uses_pkce: number;
  code_challenge_method: string | null;
  provider_type: string | null;
  mcp_server_url: string | null;
  token_endpoint_auth_method: string;
  /** 1 if this service registered the client (RFC 7591). */
  is_dynamic_client: number;
  authorization_params: string;
  allowed_redirect_uris: string;
  default_redirect_uri: string | null;
  created_at: number;
  updated_at: number;
}

export interface TokenRow {
  token_id: string;
  tenant_id: string;
  provider_id: string;
  /** The owner is either a user or an agent; the other column is null. */
  user_id: string | null;
  agent_id: string | null;
  provider_account_label: string | null;
  scopes: string;
  /** 1 if this is the user's default token at the provider. Each user has at most one default token per provider. */
  is_default: number;
  /** A TokenSecret as JSON, sealed. */
  secret: string;
  metadata: string;
  expires_at: number | null;
  /** The holder of the refresh lease and the end of the lease. */
  refresh_holder: string | null;
  refresh_until: number | null;
  created_at: number;
  updated_at: number;
}

export interface ConnectionRow {
  connection_id: string;
  tenant_id: string;
  agent_id: string;
  token_id: string;
  provider_id: string;
  created_by: string;
  created_at: number;
}

/** An authorization of a user at a provider. Its `state` is single-use. */
export interface FlowRow {
  auth_id: string;
  tenant_id: string;
  provider_id: string;
  /** Owner of the token. */
  user_id: string;
  /** Caller that started the flow: the user, or a service on behalf of the user. */
  started_by: string;
  agent_id: string | null;
  /** The token that the flow created or renewed. While the flow is open: the token to renew, if any. */
  token_id: string | null;
  scopes: string;
  redirect_uri: string;
  is_default: number;
  /** PKCE code verifier, sealed. */
  verifier: string | null;
  /** SHA-256 of the state, in hex. */
  state_digest: string;
  expires_at: number;
  /** Time at which a callback claimed the flow. Set once. */
  claimed_at: number | null;
  /** Null while the flow is open. */
  outcome: "completed" | "failed" | "cancelled" | null;
  created_at: number;
}

export interface TokenEventRow {
  event_id: string;
  tenant_id: string;
  user_id: string | null;
  provider_id: string;
  agent_id: string | null;
  event_type: string;
  reason: string | null;
  source: string | null;
  provider_account_label: string | null;
  scopes: string;
  detail: string | null;
  acknowledged_at: number | null;
  created_at: number;
}
