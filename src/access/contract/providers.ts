import { createRoute, z } from "@hono/zod-openapi";
import { jsonBody, jsonResponse } from "../../platform/contract/fields.ts";
import { laxBoolean, literal } from "../../platform/contract/lax-fields.ts";
import { refusals } from "../../platform/contract/operation.ts";
import { nullish, operationsOf, providerParams, secretText } from "./fields.ts";
import { OAuthProvider } from "./records.ts";

const operation = operationsOf("Auth Service (v2)");

/** URL of a provider or of an application. `Providers` checks whether the URL is allowed. */
const url = z.string().max(2048);

const authorizationParams = z
  .record(z.string().max(200), z.string().max(2000))
  .openapi({ description: "Additional parameters of the authorization URL, such as `access_type`." });

const redirectUris = z.array(url).max(100);
const revocationUrl = nullish(url).openapi({
  description: "Revocation endpoint (RFC 7009). Deleted tokens are revoked there.",
});
const issuer = nullish(url).openapi({
  description: "Expected issuer. Authorization responses from other issuers are rejected (RFC 9207).",
});

const ProviderCreate = z
  .object({
    provider_id: z.string().min(1).max(255),
    name: z.string().min(1).max(255),
    client_id: z.string().max(2048),
    client_secret: nullish(secretText),
    auth_url: url,
    token_url: url,
    uses_pkce: laxBoolean.default(true).openapi({ default: true }),
    code_challenge_method: nullish(z.string().max(50)).default("S256"),
    provider_type: nullish(literal(["microsoft", "salesforce", "slack"])),
    token_endpoint_auth_method: literal(["none", "client_secret_basic", "client_secret_post"])
      .default("client_secret_post")
      .openapi({ default: "client_secret_post" }),
    authorization_params: authorizationParams.default({}),
    allowed_redirect_uris: redirectUris.default([]),
    default_redirect_uri: nullish(url),
    revocation_url: revocationUrl,
    issuer,
  })
  .openapi("OAuthProviderCreateRequest");
export type ProviderCreate = z.output<typeof ProviderCreate>;

/** Fields that are missing or null stay unchanged. */
const ProviderUpdate = z
  .object({
    name: nullish(z.string().min(1).max(255)),
    client_id: nullish(z.string().max(2048)),
    client_secret: nullish(secretText).openapi({
      description: "New client secret. An empty string removes the current secret.",
    }),
    auth_url: nullish(url),
    token_url: nullish(url),
    uses_pkce: nullish(laxBoolean),
    code_challenge_method: nullish(z.string().max(50)),
    authorization_params: nullish(authorizationParams),
    allowed_redirect_uris: nullish(redirectUris),
    default_redirect_uri: nullish(url),
    revocation_url: revocationUrl,
    issuer,
  })
  .openapi("OAuthProviderUpdateRequest");
export type ProviderUpdate = z.output<typeof ProviderUpdate>;

const provider = jsonResponse(OAuthProvider, "The provider, without its client secret.");
const providers = jsonResponse(z.array(OAuthProvider), "The providers, oldest first.");

const Deleted = z.object({ message: z.string() }).openapi("OAuthProviderDeleted");

export const providerRoutes = {
  listProviders: createRoute({
    ...operation("list_oauth_providers", "get", "/v2/auth/providers"),
    summary: "List OAuth providers",
    responses: { 200: providers },
  }),
  createProvider: createRoute({
    ...operation("create_oauth_provider", "post", "/v2/auth/providers"),
    summary: "Create an OAuth provider. Fails with 409 if the provider_id already exists in the workspace",
    request: { body: jsonBody(ProviderCreate) },
    responses: { 200: provider, ...refusals(409) },
  }),
  getProvider: createRoute({
    ...operation("get_oauth_provider", "get", "/v2/auth/providers/{provider_id}"),
    summary: "Get an OAuth provider",
    request: { params: providerParams },
    responses: { 200: provider, ...refusals(404) },
  }),
  updateProvider: createRoute({
    ...operation("update_oauth_provider", "patch", "/v2/auth/providers/{provider_id}"),
    summary:
      "Update an OAuth provider. Changing client_id, client_secret, issuer, auth_url or token_url cancels pending authorizations",
    request: { params: providerParams, body: jsonBody(ProviderUpdate) },
    responses: { 200: provider, ...refusals(404) },
  }),
  deleteProvider: createRoute({
    ...operation("delete_oauth_provider", "delete", "/v2/auth/providers/{provider_id}"),
    summary: "Delete an OAuth provider and all tokens from this provider",
    request: { params: providerParams },
    responses: { 200: jsonResponse(Deleted, "The provider is deleted."), ...refusals(404) },
  }),
  listPlatformProviders: createRoute({
    ...operation("list_platform_oauth_providers", "get", "/v2/auth/platform-providers"),
    summary: "List shared OAuth providers (for client compatibility; always empty)",
    responses: { 200: providers },
  }),
} as const;
