import { securitySchemes } from "../../platform/contract/operation.ts";
import * as connections from "./connections.ts";
import * as flows from "./flows.ts";
import * as providers from "./providers.ts";
import * as tokens from "./tokens.ts";

/**
 * Routes of the Auth Service, served at the root and below `/api-host`. Static paths must precede paths with a parameter in the same
 * segment. A comment repeats method and path of each route.
 */
export const authServiceRoutes = {
  providers: {
    listProviders: providers.listProviders, // GET /v2/auth/providers
    createProvider: providers.createProvider, // POST /v2/auth/providers
    getProvider: providers.getProvider, // GET /v2/auth/providers/{provider_id}
    updateProvider: providers.updateProvider, // PATCH /v2/auth/providers/{provider_id}
    deleteProvider: providers.deleteProvider, // DELETE /v2/auth/providers/{provider_id}
    listPlatformProviders: providers.listPlatformProviders, // GET /v2/auth/platform-providers
  },
  flows: {
    discoverMcpProvider: flows.discoverMcpProvider, // POST /v2/auth/providers/mcp-discover
    authenticate: flows.authenticate, // POST /v2/auth/authenticate
    waitForAuthentication: flows.waitForAuthentication, // GET /v2/auth/wait/{auth_id}
    oauthCallback: flows.oauthCallback, // GET /v2/auth/callback/{provider_id}
    postOauthCallback: flows.postOauthCallback, // POST /v2/auth/callback/{provider_id}
    oauthSetup: flows.oauthSetup, // GET /v2/auth/setup/{provider_id}
  },
  tokens: {
    listTokens: tokens.listTokens, // GET /v2/auth/tokens
    deleteTokens: tokens.deleteTokens, // DELETE /v2/auth/tokens
    checkTokenExists: tokens.checkTokenExists, // GET /v2/auth/tokens/exists
    checkTokensExist: tokens.checkTokensExist, // POST /v2/auth/tokens/exists/batch
    importToken: tokens.importToken, // POST /v2/auth/tokens/import
    updateToken: tokens.updateToken, // PATCH /v2/auth/tokens/{token_id}/metadata
    deleteToken: tokens.deleteToken, // DELETE /v2/auth/tokens/{token_id}
    listTokenEvents: tokens.listTokenEvents, // GET /v2/auth/token-events
  },
  connections: {
    listConnections: connections.listConnections, // GET /v2/auth/agents/{agent_id}/connections
    createConnection: connections.createConnection, // POST /v2/auth/agents/{agent_id}/connections
    removeConnection: connections.removeConnection, // DELETE /v2/auth/agents/{agent_id}/connections/{connection_id}
    putAgentToken: connections.putAgentToken, // POST /v2/auth/agents/{agent_id}/providers/{provider_id}/tokens
  },
} as const;

/** Head of the OpenAPI document. */
export const authServiceDocument = {
  openapi: "3.1.0",
  info: {
    title: "Threadmill control plane",
    version: "0.1.0",
    description:
      "OAuth providers, and tokens of users for their agents. A 422 lists every invalid field; other errors have the body " +
      "`{detail}`, including 401 (no valid key), 413 (body too large) and 503 (retry). Unknown body fields and query " +
      "parameters are ignored.",
  },
  tags: [
    { name: "Auth Service (v2)", description: "OAuth providers, flows and tokens of users." },
    { name: "Agent Connections (v2)", description: "Permissions of agents to use tokens." },
  ],
};

export { securitySchemes };
