import type { Role } from "../../platform/contract/caller.ts";

/**
 * The tables of the vault, as both databases hold them. `_at` and `_until` are milliseconds since the epoch, lists and objects
 * are JSON text, flags are 0 or 1. What is called sealed is encrypted (src/access/encryption/seal.ts) and bound to its place.
 */
declare module "../../platform/database/schema.ts" {
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

/** A workspace is what the contracts call tenant and organization: everything belongs to one. */
export interface WorkspaceRow {
  tenant_id: string;
  name: string;
  created_at: number;
}

/** Who may name a workspace in `X-Tenant-Id`. */
export interface WorkspaceMemberRow {
  tenant_id: string;
  user_id: string;
  role: Role;
  created_at: number;
}

export interface ApiKeyRow {
  /** The public part of the key, by which it is looked up. */
  key_id: string;
  tenant_id: string;
  user_id: string;
  name: string;
  /** SHA-256 of the whole key, in hex. The key itself is shown once and kept nowhere. */
  digest: string;
  scopes: string;
  created_at: number;
  /** To the minute. */
  last_used_at: number | null;
  revoked_at: number | null;
}

/** Which encryption keys this database has met. A start without one of them that is not retired is refused. */
export interface EncryptionKeyRow {
  key_id: string;
  /** A known text, sealed with the key. */
  check_value: string;
  created_at: number;
  /** When a rotation found that nothing is sealed with it any more. */
  retired_at: number | null;
}

export interface ProviderRow {
  id: string;
  tenant_id: string;
  /** The caller's name for it, unique within the workspace. */
  provider_id: string;
  name: string;
  client_id: string;
  /** Sealed. */
  client_secret: string | null;
  auth_url: string;
  token_url: string;
  revocation_url: string | null;
  /** The authorization server's own name; answers that carry another are refused. */
  issuer: string | null;
  /** RFC 8707: for whom tokens are meant. */
  resource: string | null;
  uses_pkce: number;
  code_challenge_method: string | null;
  provider_type: string | null;
  mcp_server_url: string | null;
  token_endpoint_auth_method: string;
  /** 1: registered by this service (RFC 7591). */
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
  /** Whose it is; null when it belongs to an agent. */
  user_id: string | null;
  /** The agent that owns it; null when it is a user's. */
  agent_id: string | null;
  provider_account_label: string | null;
  scopes: string;
  /** 1: what the user's agents get when they do not name a token. At most one of a user and a provider. */
  is_default: number;
  /** A TokenSecret as JSON, sealed. */
  secret: string;
  metadata: string;
  expires_at: number | null;
  /** Who refreshes it right now, and until when the others wait. */
  refresh_holder: string | null;
  refresh_until: number | null;
  created_at: number;
  updated_at: number;
}

/** An agent that may use a token. */
export interface ConnectionRow {
  connection_id: string;
  tenant_id: string;
  agent_id: string;
  token_id: string;
  provider_id: string;
  created_by: string;
  created_at: number;
}

/** One way of a user to a provider and back. Its `state` is used once. */
export interface FlowRow {
  auth_id: string;
  tenant_id: string;
  provider_id: string;
  /** Whose token comes of it. */
  user_id: string;
  /** Who asked for it: the user, or a service that named the user. */
  started_by: string;
  agent_id: string | null;
  /** The token that comes of it; before that the one it is to renew, if any. */
  token_id: string | null;
  scopes: string;
  redirect_uri: string;
  is_default: number;
  /** PKCE's secret half, sealed. */
  verifier: string | null;
  /** SHA-256 of the state, in hex. */
  state_digest: string;
  expires_at: number;
  /** When a callback took it. Set once. */
  claimed_at: number | null;
  /** Null while it is open. */
  outcome: "completed" | "failed" | "cancelled" | null;
  created_at: number;
}

/** What became of a token, for its user to read. */
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
