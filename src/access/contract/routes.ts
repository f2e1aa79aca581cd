import { securitySchemes } from "../../platform/contract/operation.ts";
import { connectionRoutes } from "./connections.ts";
import { flowRoutes } from "./flows.ts";
import { providerRoutes } from "./providers.ts";
import { tokenRoutes } from "./tokens.ts";

/**
 * Routes of the Auth Service, served at the root and below `/api-host`. Within a table, static paths precede paths with a parameter
 * in the same segment.
 */
export const authServiceRoutes = {
  providers: providerRoutes,
  flows: flowRoutes,
  tokens: tokenRoutes,
  connections: connectionRoutes,
} as const;

/** The OpenAPI document without its paths and schemas. */
export const authServiceDocument = {
  openapi: "3.1.0",
  info: {
    title: "Threadmill control plane",
    version: "0.1.0",
    description:
      "OAuth providers, and tokens with which agents act for users. Errors have the body `{detail}`. In a 422 response, `detail` is " +
      "a list of the invalid fields; otherwise, it is a message. Besides the listed errors, a request can fail with 401 (missing or invalid key), 403 (not " +
      "permitted), 413 (body too large), 429 (limit reached) or 503 (retry later). Unknown body fields and query parameters are ignored.",
  },
  tags: [
    { name: "Auth Service (v2)", description: "OAuth providers, flows and users' tokens." },
    { name: "Agent Connections (v2)", description: "Permissions for agents to use tokens." },
  ],
};

export { securitySchemes };
