import { createRoute, z } from "@hono/zod-openapi";
import { jsonBody, jsonObject, jsonResponse, optional, withDefault } from "../../platform/contract/fields.ts";
import { laxBoolean, laxInt, laxUuid } from "../../platform/contract/lax-fields.ts";
import { refusals } from "../../platform/contract/operation.ts";
import { agentId, operationsOf, providerId, providerParams, scopes } from "./fields.ts";
import { OAuthProvider } from "./records.ts";

const operation = operationsOf("Auth Service (v2)");

/** A state, code, ID or error message of limited length. */
const text = z.string().max(8_192);

export const AuthenticateRequest = z
  .object({
    provider: providerId,
    scopes: scopes.openapi({ description: "Scopes that the token must include." }),
    user_id: optional(text).openapi({ description: "Like `ls_user_id`, which takes precedence." }),
    ls_user_id: optional(text).openapi({
      description:
        "User ID of the token owner. Default: the caller. Ignored unless the caller has the scope `service`.",
    }),
    agent_id: optional(agentId).openapi({
      description: "Agent that requests the token. Tokens that are connected to this agent are preferred.",
    }),
    use_agent_builder_public_oauth: withDefault(laxBoolean, false).openapi({
      description: "Accepted for compatibility, but has no effect.",
    }),
    force_new: withDefault(laxBoolean, false).openapi({
      description: "Always start a new authorization, for example to add another account.",
    }),
    token_id: optional(laxUuid).openapi({
      description: "ID of the user's token to return. No other token is returned.",
    }),
    is_default: withDefault(laxBoolean, true).openapi({
      description:
        "Whether a new token becomes the user's default token for the provider. The user's first token for a provider always becomes the default.",
    }),
  })
  .openapi("AuthenticateRequest");
export type AuthenticateRequest = z.output<typeof AuthenticateRequest>;

/** If the status is `completed`, `token` is set. Otherwise, `url` is the authorization URL for the user. */
export const AuthenticateAnswer = z
  .object({
    status: z.enum(["completed", "pending", "connection_required", "token_expired"]),
    url: z.string().nullable(),
    auth_id: z.string().nullable(),
    token: z.string().nullable(),
    user_id: z.string().nullable(),
    metadata: jsonObject.nullable(),
  })
  .openapi("AuthenticateResponse");
export type AuthenticateAnswer = z.infer<typeof AuthenticateAnswer>;

/** `pending` is never returned, because clients treat it as a failure. A wait without a result ends with `timeout`. */
export const WaitAnswer = z
  .object({
    status: z.enum(["completed", "pending", "timeout", "not_found"]),
    token: z.string().nullable(),
  })
  .openapi("WaitResponse");
export type WaitAnswer = z.infer<typeof WaitAnswer>;

const page = {
  302: { description: "Redirect to a page that shows the result." },
  400: {
    description: "Error page: no pending authorization matches the request.",
    content: { "text/html": { schema: z.string() } },
  },
};

const returnedQuery = z.object({
  code: optional(text),
  state: optional(text).openapi({ description: "OAuth state. The value contains the `auth_id`." }),
  error: optional(text),
  error_description: optional(text),
});

const issuer = optional(text).openapi({ description: "Issuer of the response (RFC 9207)." });

const Connected = z.object({ status: z.literal("connected"), provider_id: z.string() }).openapi("OAuthConnected");

export const McpDiscoverRequest = z
  .object({
    provider_id: z.string().min(1).max(255),
    name: z.string().min(1).max(255),
    mcp_server_url: z.string().max(2048).openapi({ description: "URL of the MCP server." }),
  })
  .openapi("McpDiscoverRequest");
export type McpDiscoverRequest = z.output<typeof McpDiscoverRequest>;

export const flowRoutes = {
  discoverMcpProvider: createRoute({
    ...operation("mcp_discover", "post", "/v2/auth/providers/mcp-discover"),
    summary: "Create a provider from the metadata of an MCP server",
    request: { body: jsonBody(McpDiscoverRequest) },
    responses: {
      200: jsonResponse(OAuthProvider, "The new provider, without its client secret."),
      ...refusals(400, 409),
    },
  }),
  authenticate: createRoute({
    ...operation("authenticate", "post", "/v2/auth/authenticate"),
    summary: "Get a user's access token, or an authorization URL if there is none",
    request: { body: jsonBody(AuthenticateRequest) },
    responses: {
      200: jsonResponse(AuthenticateAnswer, "An access token, or an authorization URL if there is no valid token."),
      ...refusals(400, 404),
    },
  }),
  /** A long poll: responds when the flow has ended or after `timeout` seconds. */
  waitForAuthentication: createRoute({
    ...operation("wait_for_auth_completion", "get", "/v2/auth/wait/{auth_id}"),
    summary: "Wait for an authorization to complete",
    request: {
      params: z.object({ auth_id: text }),
      query: z.object({
        timeout: laxInt({})
          .default(30)
          .openapi({ default: 30, description: "Timeout in seconds. Values above 600 are treated as 600." }),
      }),
    },
    responses: {
      200: jsonResponse(WaitAnswer, "The result of the authorization, or `timeout` if it is still pending."),
      ...refusals(),
    },
  }),
  /** The redirect URI. A browser sends no API key; the state authenticates the request. */
  oauthCallback: createRoute({
    ...operation("oauth_callback_get", "get", "/v2/auth/callback/{provider_id}"),
    security: [{ "Bearer Auth": [] }],
    summary: "OAuth redirect URI for browsers",
    request: {
      params: providerParams,
      query: returnedQuery.extend({ iss: issuer }),
    },
    responses: { ...page, ...refusals() },
  }),
  /** Used by web apps that receive the redirect themselves and forward the parameters with the user's credentials. */
  postOauthCallback: createRoute({
    ...operation("oauth_callback_post", "post", "/v2/auth/callback/{provider_id}"),
    summary: "Complete an authorization with the query parameters of the redirect",
    request: {
      params: providerParams,
      body: jsonBody(
        returnedQuery
          .extend({ state: text, iss: issuer })
          .refine(({ code, error }) => code !== undefined || error !== undefined, {
            path: ["code"],
            message: "is required, unless the redirect contains an error",
          })
          .openapi("OAuthCallback"),
      ),
    },
    responses: { 200: jsonResponse(Connected, "The token is stored."), ...refusals(400) },
  }),
  /** GitHub redirects here after an app has been installed or its installation has been updated. */
  oauthSetup: createRoute({
    ...operation("oauth_setup", "get", "/v2/auth/setup/{provider_id}"),
    security: [],
    summary: "Complete an authorization after the setup of a GitHub App",
    request: {
      params: providerParams,
      query: returnedQuery.extend({
        setup_action: optional(text),
        installation_id: optional(laxInt({})),
      }),
    },
    responses: { ...page, ...refusals() },
  }),
} as const;
