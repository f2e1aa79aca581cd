import type { Migration } from "../../platform/database/migrate.ts";

/** Workspaces, members and API keys; OAuth providers, flows and tokens. */
export const vault: Migration = {
  name: "004-vault",
  statements: ({ types }) => [
    `create table workspaces (
      tenant_id text primary key, name text not null unique, created_at ${types.bigint} not null)`,
    // Existing rows belong to this workspace (DEFAULT_TENANT in platform/contract/caller.ts).
    `insert into workspaces (tenant_id, name, created_at)
      values ('00000000-0000-0000-0000-000000000001', 'default', now_ms())`,
    `create table workspace_members (
      tenant_id text not null, user_id text not null, created_at ${types.bigint} not null,
      primary key (tenant_id, user_id))`,
    "create index workspaces_of_user on workspace_members (user_id)",
    `create table api_keys (
      key_id text primary key, tenant_id text not null, user_id text not null, name text not null, digest text not null,
      scopes text not null, created_at ${types.bigint} not null, last_used_at ${types.bigint},
      revoked_at ${types.bigint})`,
    `create table encryption_keys (
      key_id text primary key, check_value text not null, created_at ${types.bigint} not null,
      retired_at ${types.bigint})`,
    `create table oauth_providers (
      id text primary key, tenant_id text not null, provider_id text not null, name text not null,
      client_id text not null, client_secret text, auth_url text not null, token_url text not null,
      revocation_url text, issuer text, resource text, uses_pkce integer not null, code_challenge_method text,
      provider_type text, mcp_server_url text, token_endpoint_auth_method text not null,
      is_dynamic_client integer not null, authorization_params text not null, allowed_redirect_uris text not null,
      default_redirect_uri text, created_at ${types.bigint} not null, updated_at ${types.bigint} not null,
      unique (tenant_id, provider_id))`,
    `create table oauth_tokens (
      token_id text primary key, tenant_id text not null, provider_id text not null, user_id text, agent_id text,
      provider_account_label text, scopes text not null, is_default integer not null, secret text not null,
      metadata text not null, expires_at ${types.bigint}, refresh_holder text, refresh_until ${types.bigint},
      created_at ${types.bigint} not null, updated_at ${types.bigint} not null)`,
    "create index oauth_tokens_of_user on oauth_tokens (tenant_id, user_id, provider_id)",
    "create index oauth_tokens_at_provider on oauth_tokens (tenant_id, provider_id)",
    `create unique index oauth_tokens_one_default on oauth_tokens (tenant_id, user_id, provider_id)
      where is_default = 1`,
    `create table agent_connections (
      connection_id text primary key, tenant_id text not null, agent_id text not null, token_id text not null,
      provider_id text not null, created_by text not null, created_at ${types.bigint} not null,
      unique (tenant_id, agent_id, token_id))`,
    "create index connections_of_token on agent_connections (token_id)",
    `create table oauth_flows (
      auth_id text primary key, tenant_id text not null, provider_id text not null, user_id text not null,
      started_by text not null, agent_id text, token_id text, scopes text not null, redirect_uri text not null, is_default integer not null,
      verifier text, state_digest text not null, expires_at ${types.bigint} not null, claimed_at ${types.bigint},
      outcome text, created_at ${types.bigint} not null)`,
    "create index oauth_flows_of_user on oauth_flows (tenant_id, user_id, provider_id)",
    "create index oauth_flows_by_end on oauth_flows (expires_at)",
    `create table oauth_token_events (
      event_id text primary key, tenant_id text not null, user_id text, provider_id text not null, agent_id text,
      event_type text not null, reason text, source text, provider_account_label text, scopes text not null,
      detail text, acknowledged_at ${types.bigint}, created_at ${types.bigint} not null)`,
    "create index oauth_token_events_of_user on oauth_token_events (tenant_id, user_id, created_at)",
    "create index oauth_token_events_by_time on oauth_token_events (created_at)",
  ],
};

/** The role of a workspace member: `member` or `admin`. */
export const memberRoles: Migration = {
  name: "011-member-roles",
  statements: () => ["alter table workspace_members add column role text not null default 'member'"],
};
