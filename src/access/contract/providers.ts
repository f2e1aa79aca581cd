import { createRoute, z } from "@hono/zod-openapi";
import { jsonBody, jsonResponse } from "../../platform/contract/fields.ts";
import { laxBoolean, literal } from "../../platform/contract/lax-fields.ts";
import { operation, refusals } from "../../platform/contract/operation.ts";
import { perhaps, providerParams, secretText } from "./fields.ts";
import { OAuthProvider } from "./records.ts";

const tags = ["Auth Service (v2)"];

/** A URL of a provider, or of a page to come back to. Which ones are taken is a rule of the vault. */
const url = z.string().max(2048);

const authorizationParams = z
  .record(z.string().max(200), z.string().max(2000))
  .openapi({ description: "Sent along when a user is asked, such as `access_type`." });

const redirectUris = z.array(url).max(100);
const revocationUrl = perhaps(url).openapi({ description: "RFC 7009; tokens that are deleted are revoked there." });
const issuer = perhaps(url).openapi({ description: "Answers that name another issuer are refused (RFC 9207)." });

const ProviderCreate = z
  .object({
    provider_id: z.string().min(1).max(255),
    name: z.string().min(1).max(255),
    client_id: z.string().max(2048),
    client_secret: perhaps(secretText),
    auth_url: url,
    token_url: url,
    uses_pkce: laxBoolean.default(true).openapi({ default: true }),
    code_challenge_method: perhaps(z.string().max(50)).default("S256"),
    provider_type: perhaps(literal(["microsoft", "salesforce", "slack"])),
    token_endpoint_auth_method: literal(["none", "client_secret_basic", "client_secret_post"])
      .default("client_secret_post")
      .openapi({ default: "client_secret_post" }),
    authorization_params: authorizationParams.default({}),
    allowed_redirect_uris: redirectUris.default([]),
    default_redirect_uri: perhaps(url),
    revocation_url: revocationUrl,
    issuer,
  })
  .openapi("OAuthProviderCreateRequest");
export type ProviderCreate = z.output<typeof ProviderCreate>;

/** What is missing or null stays as it is. */
const ProviderUpdate = z
  .object({
    name: perhaps(z.string().min(1).max(255)),
    client_id: perhaps(z.string().max(2048)),
    client_secret: perhaps(secretText).openapi({ description: "An empty one takes the secret away." }),
    auth_url: perhaps(url),
    token_url: perhaps(url),
    uses_pkce: perhaps(laxBoolean),
    code_challenge_method: perhaps(z.string().max(50)),
    authorization_params: perhaps(authorizationParams),
    allowed_redirect_uris: perhaps(redirectUris),
    default_redirect_uri: perhaps(url),
    revocation_url: revocationUrl,
    issuer,
  })
  .openapi("OAuthProviderUpdateRequest");
export type ProviderUpdate = z.output<typeof ProviderUpdate>;

const provider = jsonResponse(OAuthProvider, "The provider, without its secret.");
const providers = jsonResponse(z.array(OAuthProvider), "Providers, the oldest first.");

export const listProviders = createRoute({
  ...operation("list_oauth_providers", "get", "/v2/auth/providers"),
  summary: "The workspace's OAuth providers",
  tags,
  responses: { 200: providers },
});

export const createProvider = createRoute({
  ...operation("create_oauth_provider", "post", "/v2/auth/providers"),
  summary: "Create an OAuth provider; 409 when the workspace has one of that provider_id",
  tags,
  request: { body: jsonBody(ProviderCreate) },
  responses: { 200: provider, ...refusals(409) },
});

export const getProvider = createRoute({
  ...operation("get_oauth_provider", "get", "/v2/auth/providers/{provider_id}"),
  summary: "An OAuth provider",
  tags,
  request: { params: providerParams },
  responses: { 200: provider, ...refusals(404) },
});

export const updateProvider = createRoute({
  ...operation("update_oauth_provider", "patch", "/v2/auth/providers/{provider_id}"),
  summary: "Change an OAuth provider; another client or address ends the flows that are under way",
  tags,
  request: { params: providerParams, body: jsonBody(ProviderUpdate) },
  responses: { 200: provider, ...refusals(404) },
});

const Deleted = z.object({ message: z.string() }).openapi("OAuthProviderDeleted");

export const deleteProvider = createRoute({
  ...operation("delete_oauth_provider", "delete", "/v2/auth/providers/{provider_id}"),
  summary: "Delete an OAuth provider, with the tokens of all users at it",
  tags,
  request: { params: providerParams },
  responses: { 200: jsonResponse(Deleted, "Deleted."), ...refusals(404) },
});

export const listPlatformProviders = createRoute({
  ...operation("list_platform_oauth_providers", "get", "/v2/auth/platform-providers"),
  summary: "Providers that all workspaces share: there are none",
  tags,
  responses: { 200: providers },
});
