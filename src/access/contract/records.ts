import { z } from "@hono/zod-openapi";
import { jsonObject, nullable, timestamp } from "../../platform/contract/fields.ts";

// What the wire shows. All fields are always there, null where nothing is known: the Python client fails on a missing one. No
// record has a secret in it.

const nullableText = nullable(z.string());

/** A service at which users can be asked for a token, and the client that asks there. Its secret is never shown. */
export const OAuthProvider = z
  .object({
    id: z.string(),
    organization_id: z.string().openapi({ description: "The workspace." }),
    provider_id: z.string().openapi({ description: "Chosen by who created it; unique in the workspace." }),
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

/** A token of a user, without the token. */
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

/** An agent that may use a token. */
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

/** Something that became of a token, for its user to read. */
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
