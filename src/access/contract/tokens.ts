import { createRoute, z } from "@hono/zod-openapi";
import { jsonBody, jsonObject, jsonResponse } from "../../platform/contract/fields.ts";
import { laxBoolean, laxInt } from "../../platform/contract/lax-fields.ts";
import { refusals } from "../../platform/contract/operation.ts";
import { label, nullish, operationsOf, providerId, providerParams, scopes, secretText } from "./fields.ts";
import { OAuthTokenSummary, TokenEvent } from "./records.ts";

const operation = operationsOf("Auth Service (v2)");

const optionalProvider = z.object({ provider_id: providerId.optional() });

/** Any string is valid, not only a UUID; an unknown ID causes a 404. */
const tokenParams = z.object({ token_id: z.string() });

/** 100 years. An unbounded lifetime could exceed the range of timestamps. */
const MAX_LIFETIME_S = 3_153_600_000;

/** A token that the client obtained itself. */
export const importedToken = {
  access_token: secretText,
  refresh_token: nullish(secretText),
  expires_in_seconds: nullish(laxInt({ ge: 0, le: MAX_LIFETIME_S })),
  scopes: scopes.default([]),
  metadata: nullish(jsonObject),
};

const TokensDeleted = z.object({ message: z.string(), provider_id: z.string() }).openapi("OAuthTokensDeleted");
export type TokensDeleted = z.output<typeof TokensDeleted>;

const Batch = z.object({ provider_ids: z.array(providerId).max(1000) }).openapi("OAuthTokenStatusBatchRequest");
const BatchAnswer = z.object({ has_token: z.record(z.string(), z.boolean()) }).openapi("OAuthTokenStatusBatchResponse");

const TokenImport = z
  .object({
    provider_id: providerId,
    ...importedToken,
    is_default: laxBoolean.default(true).openapi({ default: true }),
  })
  .openapi("OAuthTokenImportRequest");
export type TokenImport = z.output<typeof TokenImport>;

const TokenUpdate = z
  .object({ provider_account_label: nullish(label), is_default: nullish(laxBoolean) })
  .openapi("OAuthTokenUpdateRequest");
export type TokenUpdate = z.output<typeof TokenUpdate>;

export const tokenRoutes = {
  listTokens: createRoute({
    ...operation("list_oauth_tokens_for_user", "get", "/v2/auth/tokens"),
    summary: "List the caller's tokens, without their secrets",
    request: { query: optionalProvider },
    responses: {
      200: jsonResponse(
        z.array(OAuthTokenSummary),
        "At most 1,000 tokens of the caller. Default tokens precede all other tokens. Both groups are sorted from newest to oldest.",
      ),
      ...refusals(),
    },
  }),
  deleteTokens: createRoute({
    ...operation("delete_oauth_tokens_for_user", "delete", "/v2/auth/tokens"),
    summary: "Delete all of the caller's tokens for a provider",
    request: { query: providerParams },
    responses: {
      200: jsonResponse(TokensDeleted, "The caller's tokens for the provider are deleted."),
      ...refusals(),
    },
  }),
  checkTokenExists: createRoute({
    ...operation("check_oauth_token_exists", "get", "/v2/auth/tokens/exists"),
    summary: "Check whether the caller has a token for a provider",
    request: { query: providerParams },
    responses: {
      200: jsonResponse(
        z.object({ has_token: z.boolean() }).openapi("OAuthTokenStatusResponse"),
        "Whether the caller has a token for the provider.",
      ),
      ...refusals(),
    },
  }),
  checkTokensExist: createRoute({
    ...operation("check_oauth_tokens_exist_batch", "post", "/v2/auth/tokens/exists/batch"),
    summary: "Check which providers the caller has a token for",
    request: { body: jsonBody(Batch) },
    responses: {
      200: jsonResponse(BatchAnswer, "For each requested provider, whether the caller has a token."),
      ...refusals(),
    },
  }),
  importToken: createRoute({
    ...operation("import_oauth_token", "post", "/v2/auth/tokens/import"),
    summary: "Import a token that the caller obtained elsewhere",
    request: { body: jsonBody(TokenImport) },
    responses: {
      200: jsonResponse(
        z.object({ token_id: z.string() }).openapi("OAuthTokenImportResponse"),
        "ID of the imported token.",
      ),
      ...refusals(404),
    },
  }),
  updateToken: createRoute({
    ...operation("update_token_label", "patch", "/v2/auth/tokens/{token_id}/metadata"),
    summary: "Update the label of a token, or make the token the default",
    request: { params: tokenParams, body: jsonBody(TokenUpdate) },
    responses: { 200: jsonResponse(OAuthTokenSummary, "The updated token."), ...refusals(404) },
  }),
  deleteToken: createRoute({
    ...operation("delete_single_oauth_token", "delete", "/v2/auth/tokens/{token_id}"),
    summary: "Delete one of the caller's tokens",
    request: { params: tokenParams },
    responses: { 204: { description: "The token is deleted." }, ...refusals(404) },
  }),
  listTokenEvents: createRoute({
    ...operation("list_token_events_for_user", "get", "/v2/auth/token-events"),
    summary: "List the caller's token events",
    request: {
      query: optionalProvider.extend({ limit: laxInt({ ge: 1, le: 200 }).default(50).openapi({ default: 50 }) }),
    },
    responses: { 200: jsonResponse(z.array(TokenEvent), "The events, newest first."), ...refusals() },
  }),
} as const;
