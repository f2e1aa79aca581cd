import { z } from "@hono/zod-openapi";
import { jsonObject, nullable, timestamp } from "../../platform/contract/fields.ts";

// API records, without secrets. Every field is present (null if it has no value), because the Python client fails on a missing field.

const nullableText = nullable(z.string());

export const OAuthProvider = z
  .object({
    id: z.string(),
    organization_id: z.string().openapi({ description: "Workspace ID." }),
    provider_id: z.string().openapi({
      description: "Provider ID, chosen by the caller who creates the provider. Unique within the workspace.",
    }),
    name: z.string(),
    client_id: z.string(),
    auth_url: z.string(),
    token_url: z.string(),
    uses_pkce: z.boolean(),
    code_challenge_method: nullableText,
    provider_type: nullableText,
    mcp_server_url: nullableText,
    token_endpoint_auth_method: z.string(),
    is_dynamic_client: z.boolean(),
    authorization_params: z.record(z.string(), z.string()),
    allowed_redirect_uris: z.array(z.string()),
    default_redirect_uri: nullableText,
    created_at: timestamp,
    updated_at: timestamp,
  })
  .openapi("OAuthProviderResponse");
export type OAuthProvider = z.output<typeof OAuthProvider>;

export const OAuthTokenSummary = z
  .object({
    id: z.string(),
    provider_id: z.string(),
    provider_account_label: nullableText,
    scopes: z.array(z.string()),
    expires_at: nullable(timestamp),
    is_default: z.boolean(),
    created_at: timestamp,
    updated_at: timestamp,
  })
  .openapi("OAuthTokenSummary");
export type OAuthTokenSummary = z.output<typeof OAuthTokenSummary>;

export const AgentConnection = z
  .object({
    id: z.string(),
    agent_id: z.string(),
    oauth_token_id: z.string(),
    provider_id: z.string(),
    provider_account_label: nullableText,
    scopes: z.array(z.string()),
    expires_at: nullable(timestamp),
    created_by: z.string(),
    created_at: timestamp,
  })
  .openapi("AgentConnectionResponse");
export type AgentConnection = z.output<typeof AgentConnection>;

export const TokenEvent = z
  .object({
    id: z.string(),
    provider_id: z.string(),
    agent_id: nullableText,
    event_type: z.string().openapi({ example: "token_deleted" }),
    reason: nullableText,
    source: nullableText,
    provider_account_label: nullableText,
    scopes: z.array(z.string()),
    detail: nullable(jsonObject),
    acknowledged_at: nullable(timestamp),
    created_at: timestamp,
  })
  .openapi("TokenEventSummary");
export type TokenEvent = z.output<typeof TokenEvent>;
