import { createRoute, z } from "@hono/zod-openapi";
import { jsonBody, jsonResponse } from "../../platform/contract/fields.ts";
import { operation, refusals } from "../../platform/contract/operation.ts";
import { agentId, label, perhaps, providerId } from "./fields.ts";
import { AgentConnection } from "./records.ts";
import { givenToken } from "./tokens.ts";

const tags = ["Agent Connections (v2)"];

const agentParams = z.object({ agent_id: agentId });

const Connections = z.object({ data: z.array(AgentConnection) }).openapi("AgentConnectionListResponse");

export const listConnections = createRoute({
  ...operation("list_connections", "get", "/v2/auth/agents/{agent_id}/connections"),
  summary: "The tokens that an agent may use: the caller's, and the agent's own",
  tags,
  request: { params: agentParams },
  responses: { 200: jsonResponse(Connections, "The newest first."), ...refusals() },
});

const ConnectionCreate = z.object({ oauth_token_id: z.string() }).openapi("CreateAgentConnectionRequest");

export const createConnection = createRoute({
  ...operation("create_connection", "post", "/v2/auth/agents/{agent_id}/connections"),
  summary: "Let an agent use one of the caller's tokens",
  tags,
  request: { params: agentParams, body: jsonBody(ConnectionCreate) },
  responses: {
    201: jsonResponse(AgentConnection, "The connection, also when it was there already."),
    ...refusals(404),
  },
});

export const removeConnection = createRoute({
  ...operation("remove_connection", "delete", "/v2/auth/agents/{agent_id}/connections/{connection_id}"),
  summary: "Let an agent use a token no more; the token stays, unless it is the agent's own",
  tags,
  request: { params: agentParams.extend({ connection_id: z.string() }) },
  responses: { 204: { description: "Removed." }, ...refusals(404) },
});

const AgentToken = z
  .object({ ...givenToken, provider_account_label: perhaps(label) })
  .openapi("UpsertAgentProviderTokenRequest");
export type AgentToken = z.output<typeof AgentToken>;

export const putAgentToken = createRoute({
  ...operation("upsert_agent_provider_token", "post", "/v2/auth/agents/{agent_id}/providers/{provider_id}/tokens"),
  summary: "Give an agent a token of its own, in the place of the one it used at the provider",
  tags,
  request: { params: agentParams.extend({ provider_id: providerId }), body: jsonBody(AgentToken) },
  responses: { 201: jsonResponse(AgentConnection, "The connection to the new token."), ...refusals(404) },
});
