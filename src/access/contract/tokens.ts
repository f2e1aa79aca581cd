import { createRoute, z } from "@hono/zod-openapi";
import { jsonBody, jsonObject, jsonResponse } from "../../platform/contract/fields.ts";
import { laxBoolean, laxInt } from "../../platform/contract/lax-fields.ts";
import { operation, refusals } from "../../platform/contract/operation.ts";
import { label, perhaps, providerId, scopes, secretText } from "./fields.ts";
import { OAuthTokenSummary, TokenEvent } from "./records.ts";

const tags = ["Auth Service (v2)"];

/** Of one provider, when it is named. */
const ofProvider = z.object({ provider_id: providerId.optional() });
const ofThisProvider = z.object({ provider_id: providerId });

/** Not only UUIDs: what nobody's token is called is not found. */
const tokenParams = z.object({ token_id: z.string() });

/** A hundred years: times beyond them cannot be written. */
const MAX_SECONDS = 3_153_600_000;

/** A token that was obtained elsewhere. */
export const givenToken = {
  access_token: secretText,
  refresh_token: perhaps(secretText),
  expires_in_seconds: perhaps(laxInt({ ge: 0, le: MAX_SECONDS })),
  scopes: scopes.default([]),
  metadata: perhaps(jsonObject),
};

export const listTokens = createRoute({
  ...operation("list_oauth_tokens_for_user", "get", "/v2/auth/tokens"),
  summary: "The caller's tokens, without the tokens themselves",
  tags,
  request: { query: ofProvider },
  responses: { 200: jsonResponse(z.array(OAuthTokenSummary), "The default first, then the newest."), ...refusals() },
});

const TokensDeleted = z.object({ message: z.string(), provider_id: z.string() }).openapi("OAuthTokensDeleted");
export type TokensDeleted = z.output<typeof TokensDeleted>;

export const deleteTokens = createRoute({
  ...operation("delete_oauth_tokens_for_user", "delete", "/v2/auth/tokens"),
  summary: "Delete all tokens of the caller at a provider, across agents",
  tags,
  request: { query: ofThisProvider },
  responses: { 200: jsonResponse(TokensDeleted, "There are none now, also when there were none."), ...refusals() },
});

export const checkTokenExists = createRoute({
  ...operation("check_oauth_token_exists", "get", "/v2/auth/tokens/exists"),
  summary: "Whether the caller has a token at a provider",
  tags,
  request: { query: ofThisProvider },
  responses: {
    200: jsonResponse(z.object({ has_token: z.boolean() }).openapi("OAuthTokenStatusResponse"), "Whether."),
    ...refusals(),
  },
});

const Batch = z.object({ provider_ids: z.array(providerId).max(1000) }).openapi("OAuthTokenStatusBatchRequest");
const BatchAnswer = z.object({ has_token: z.record(z.string(), z.boolean()) }).openapi("OAuthTokenStatusBatchResponse");

export const checkTokensExist = createRoute({
  ...operation("check_oauth_tokens_exist_batch", "post", "/v2/auth/tokens/exists/batch"),
  summary: "At which providers the caller has a token",
  tags,
  request: { body: jsonBody(Batch) },
  responses: { 200: jsonResponse(BatchAnswer, "By provider, each that was asked for."), ...refusals() },
});

const TokenImport = z
  .object({ provider_id: providerId, ...givenToken, is_default: laxBoolean.default(true).openapi({ default: true }) })
  .openapi("OAuthTokenImportRequest");
export type TokenImport = z.output<typeof TokenImport>;

export const importToken = createRoute({
  ...operation("import_oauth_token", "post", "/v2/auth/tokens/import"),
  summary: "Keep a token of the caller that was obtained elsewhere",
  tags,
  request: { body: jsonBody(TokenImport) },
  responses: {
    200: jsonResponse(z.object({ token_id: z.string() }).openapi("OAuthTokenImportResponse"), "Its id, no secret."),
    ...refusals(404),
  },
});

const TokenUpdate = z
  .object({ provider_account_label: perhaps(label), is_default: perhaps(laxBoolean) })
  .openapi("OAuthTokenUpdateRequest");
export type TokenUpdate = z.output<typeof TokenUpdate>;

export const updateToken = createRoute({
  ...operation("update_token_label", "patch", "/v2/auth/tokens/{token_id}/metadata"),
  summary: "Name one of the caller's tokens, or make it the default",
  tags,
  request: { params: tokenParams, body: jsonBody(TokenUpdate) },
  responses: { 200: jsonResponse(OAuthTokenSummary, "The token as it is now."), ...refusals(404) },
});

export const deleteToken = createRoute({
  ...operation("delete_single_oauth_token", "delete", "/v2/auth/tokens/{token_id}"),
  summary: "Delete one of the caller's tokens",
  tags,
  request: { params: tokenParams },
  responses: { 204: { description: "Deleted." }, ...refusals(404) },
});

export const listTokenEvents = createRoute({
  ...operation("list_token_events_for_user", "get", "/v2/auth/token-events"),
  summary: "What became of the caller's tokens",
  tags,
  request: { query: ofProvider.extend({ limit: laxInt({ ge: 1, le: 200 }).default(50).openapi({ default: 50 }) }) },
  responses: { 200: jsonResponse(z.array(TokenEvent), "The newest first."), ...refusals() },
});
