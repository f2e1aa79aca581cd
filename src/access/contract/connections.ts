import { createRoute, z } from "@hono/zod-openapi";
import { jsonBody, jsonResponse } from "../../platform/contract/fields.ts";
import { refusals } from "../../platform/contract/operation.ts";
import { agentId, label, nullish, operationsOf, providerId } from "./fields.ts";
import { AgentConnection } from "./records.ts";
import { importedToken } from "./tokens.ts";

const operation = operationsOf("Agent Connections (v2)");

const agentParams = z.object({ agent_id: agentId });

const Connections = z.object({ data: z.array(AgentConnection) }).openapi("AgentConnectionListResponse");

const ConnectionCreate = z.object({ oauth_token_id: z.string() }).openapi("CreateAgentConnectionRequest");

const AgentToken = z
  .object({ ...importedToken, provider_account_label: nullish(label) })
  .openapi("UpsertAgentProviderTokenRequest");
export type AgentToken = z.output<typeof AgentToken>;

export const connectionRoutes = {
  listConnections: createRoute({
    ...operation("list_connections", "get", "/v2/auth/agents/{agent_id}/connections"),
    summary: "List an agent's connections to the caller's tokens and to agent-owned tokens",
    request: { params: agentParams },
    responses: { 200: jsonResponse(Connections, "The connections, newest first."), ...refusals() },
  }),
  createConnection: createRoute({
    ...operation("create_connection", "post", "/v2/auth/agents/{agent_id}/connections"),
    summary: "Connect an agent to a token",
    request: { params: agentParams, body: jsonBody(ConnectionCreate) },
    responses: {
      201: jsonResponse(AgentConnection, "The new or existing connection."),
      ...refusals(404),
    },
  }),
  removeConnection: createRoute({
    ...operation("remove_connection", "delete", "/v2/auth/agents/{agent_id}/connections/{connection_id}"),
    summary: "Disconnect an agent from a token",
    description: "If the token is agent-owned and has no other connections, it is deleted as well.",
    request: { params: agentParams.extend({ connection_id: z.string() }) },
    responses: { 204: { description: "The connection is deleted." }, ...refusals(404) },
  }),
  putAgentToken: createRoute({
    ...operation("upsert_agent_provider_token", "post", "/v2/auth/agents/{agent_id}/providers/{provider_id}/tokens"),
    summary:
      "Store an agent-owned token and connect the agent to it. The agent's previous connections for the provider are deleted, except connections to other users' tokens",
    request: { params: agentParams.extend({ provider_id: providerId }), body: jsonBody(AgentToken) },
    responses: {
      201: jsonResponse(AgentConnection, "The connection between the agent and the new token."),
      ...refusals(404),
    },
  }),
} as const;
