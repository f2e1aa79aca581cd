import { createRoute, z } from "@hono/zod-openapi";
import { jsonBody, jsonObject, jsonResponse, optional, withDefault } from "../../platform/contract/fields.ts";
import { laxBoolean, laxInt, laxUuid } from "../../platform/contract/lax-fields.ts";
import { operation, refusals } from "../../platform/contract/operation.ts";
import { agentId, providerId, scopes } from "./fields.ts";
import { OAuthProvider } from "./records.ts";

const tags = ["Auth Service (v2)"];

/** Longer is no state, code or sentence that anybody sends. */
const text = z.string().max(8_192);

/** Which token is wanted, for whom. */
export const AuthenticateRequest = z
  .object({
    provider: providerId,
    scopes: scopes.openapi({ description: "The token must cover all of them." }),
    user_id: optional(text).openapi({ description: "Like `ls_user_id`, which wins over it." }),
    ls_user_id: optional(text).openapi({
      description: "Whose token. Only a caller with the scope `service` may name somebody else; others are ignored.",
    }),
    agent_id: optional(agentId).openapi({ description: "The agent that asks: tokens it is connected to come first." }),
    use_agent_builder_public_oauth: withDefault(laxBoolean, false).openapi({ description: "Without effect." }),
    force_new: withDefault(laxBoolean, false).openapi({
      description: "Send the user to the provider whatever is there, to add another account.",
    }),
    token_id: optional(laxUuid).openapi({ description: "This token of the user and no other." }),
    is_default: withDefault(laxBoolean, true).openapi({
      description: "Whether the token that comes of a flow becomes the user's default at the provider.",
    }),
  })
  .openapi("AuthenticateRequest");
export type AuthenticateRequest = z.output<typeof AuthenticateRequest>;

/** With `completed` there is a token, otherwise the address to send the user to. */
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

/** `pending` is never answered: a wait ends with `timeout`, since clients take `pending` for a failure. */
export const WaitAnswer = z
  .object({
    status: z.enum(["completed", "pending", "timeout", "not_found"]),
    token: z.string().nullable(),
  })
  .openapi("WaitResponse");
export type WaitAnswer = z.infer<typeof WaitAnswer>;

/** A token, or a way for the user to get one. */
export const authenticate = createRoute({
  ...operation("authenticate", "post", "/v2/auth/authenticate"),
  summary: "Get a token, or where to send the user for one",
  tags,
  request: { body: jsonBody(AuthenticateRequest) },
  responses: { 200: jsonResponse(AuthenticateAnswer, "A token, or an address."), ...refusals(400, 404) },
});

/** Holds the answer back until the flow has ended, or `timeout` seconds have passed. */
export const waitForAuthentication = createRoute({
  ...operation("wait_for_auth_completion", "get", "/v2/auth/wait/{auth_id}"),
  summary: "Wait until the user is back",
  tags,
  request: {
    params: z.object({ auth_id: text }),
    query: z.object({
      timeout: laxInt({}).default(30).openapi({ default: 30, description: "In seconds; at most 600." }),
    }),
  },
  responses: { 200: jsonResponse(WaitAnswer, "How it ended, or `timeout`."), ...refusals() },
});

const page = {
  302: { description: "To a page that says whether it worked." },
  400: {
    description: "A page that says why this belongs to no flow.",
    content: { "text/html": { schema: z.string() } },
  },
};

const returnedQuery = z.object({
  code: optional(text),
  state: optional(text).openapi({ description: "Contains the `auth_id`." }),
  error: optional(text),
  error_description: optional(text),
});

/** Where a provider sends the user's browser. It brings no key: the state is what proves that it belongs to a flow. */
export const oauthCallback = createRoute({
  ...operation("oauth_callback_get", "get", "/v2/auth/callback/{provider_id}"),
  security: [{ "Bearer Auth": [] }],
  summary: "A user's browser is back from the provider",
  tags,
  request: {
    params: z.object({ provider_id: providerId }),
    query: returnedQuery.extend({ iss: optional(text).openapi({ description: "RFC 9207." }) }),
  },
  responses: { ...page, ...refusals() },
});

const Connected = z.object({ status: z.literal("connected"), provider_id: z.string() }).openapi("OAuthConnected");

/** The same for a web app that is the redirect URI itself: it passes on what it was given, in its user's name. */
export const postOauthCallback = createRoute({
  ...operation("oauth_callback_post", "post", "/v2/auth/callback/{provider_id}"),
  summary: "Pass on what the provider gave to the user's browser",
  tags,
  request: {
    params: z.object({ provider_id: providerId }),
    body: jsonBody(z.object({ code: text, state: text }).openapi("OAuthCallback")),
  },
  responses: { 200: jsonResponse(Connected, "Connected."), ...refusals(400) },
});

/** The setup URL of a GitHub App. */
export const oauthSetup = createRoute({
  ...operation("oauth_setup", "get", "/v2/auth/setup/{provider_id}"),
  security: [],
  summary: "A user's browser is back from the installation of an app",
  tags,
  request: {
    params: z.object({ provider_id: providerId }),
    query: returnedQuery.extend({
      setup_action: optional(text),
      installation_id: optional(laxInt({})),
    }),
  },
  responses: { ...page, ...refusals() },
});

/** What is asked of an MCP server: how to get tokens for it. */
export const McpDiscoverRequest = z
  .object({
    provider_id: z.string().min(1).max(255),
    name: z.string().min(1).max(255),
    mcp_server_url: z.string().max(2048).openapi({ description: "The address of the MCP server." }),
  })
  .openapi("McpDiscoverRequest");
export type McpDiscoverRequest = z.output<typeof McpDiscoverRequest>;

/** A provider made of what an MCP server and its authorization server say of themselves. */
export const discoverMcpProvider = createRoute({
  ...operation("mcp_discover", "post", "/v2/auth/providers/mcp-discover"),
  summary: "Make a provider of an MCP server's metadata",
  tags,
  request: { body: jsonBody(McpDiscoverRequest) },
  responses: { 200: jsonResponse(OAuthProvider, "The provider, without its secret."), ...refusals(400, 409) },
});
