import { createRoute, z } from "@hono/zod-openapi";
import { ROLES, SCOPES } from "../../platform/contract/caller.ts";
import { errorResponses, jsonBody, jsonResponse, optional, timestamp, uuid } from "../../platform/contract/fields.ts";
import { refusals } from "../../platform/contract/operation.ts";

const operation = <M extends "get" | "post" | "put" | "delete", P extends string>(
  operationId: string,
  method: M,
  path: P,
) => ({ operationId, method, path, tags: ["Administration"] });

const userId = z
  .string()
  .min(1)
  .max(256)
  .openapi({ description: "User ID: the `sub` claim of a JWT, or the owner of an API key." });

const scopes = z.array(z.enum(SCOPES)).min(1);

export const ApiKey = z
  .object({
    id: z.string().openapi({ description: "Public part of the key: the characters between `tmk_` and the next `_`." }),
    tenant_id: uuid,
    user_id: userId,
    name: z.string(),
    scopes,
    created_at: timestamp,
    last_used_at: timestamp.nullable().openapi({ description: "Time of last use, accurate to one minute." }),
    revoked_at: timestamp.nullable(),
  })
  .openapi("ApiKey");
export type ApiKey = z.infer<typeof ApiKey>;

export const NewApiKey = ApiKey.extend({
  key: z.string().openapi({ description: "The API key. It is returned only once, in this response." }),
}).openapi("NewApiKey");
export type NewApiKey = z.infer<typeof NewApiKey>;

export const ApiKeyCreate = z
  .object({
    name: z.string().min(1).max(256).openapi({ description: "Display name." }),
    user_id: optional(userId).openapi({ description: "Owner of the key. Default: the caller." }),
    scopes: optional(scopes).openapi({ description: "Default: `agents`, `experiments` and `tokens`." }),
    tenant_id: optional(uuid).openapi({ description: "Workspace of the key. Default: the workspace of the caller." }),
  })
  .openapi("ApiKeyCreate");
export type ApiKeyCreate = z.output<typeof ApiKeyCreate>;

export const Workspace = z.object({ tenant_id: uuid, name: z.string(), created_at: timestamp }).openapi("Workspace");
export type Workspace = z.infer<typeof Workspace>;

/** Clients cannot choose a UUID as a name, because a UUID is always interpreted as a workspace ID. */
const workspaceName = z
  .string()
  .min(1)
  .max(256)
  .refine((name) => !z.guid().safeParse(name).success, "a workspace name must not be a UUID");

export const WorkspaceCreate = z
  .object({
    name: workspaceName,
    tenant_id: optional(uuid).openapi({ description: "Workspace ID. Default: a new UUID." }),
  })
  .openapi("WorkspaceCreate");
export type WorkspaceCreate = z.output<typeof WorkspaceCreate>;

const role = z.enum(ROLES).openapi({
  description: "Role of the user in requests authenticated with a JWT. An `admin` has all scopes in the workspace.",
});

export const Member = z.object({ user_id: userId, role, created_at: timestamp }).openapi("Member");
export type Member = z.infer<typeof Member>;

const MemberPut = z
  .object({ role: optional(role).openapi({ description: "Default: the current role, or `member` for a new member." }) })
  .openapi("MemberPut");

const workspacePath = z.object({ tenant_id: uuid });
const memberPath = workspacePath.extend({ user_id: userId });

/** Operation ids are the keys of this table. */
export const adminRoutes = {
  listApiKeys: createRoute({
    ...operation("listApiKeys", "get", "/admin/keys"),
    summary: "List API keys",
    request: { query: z.object({ tenant_id: uuid.optional() }) },
    responses: {
      200: jsonResponse(z.array(ApiKey), "API keys of the workspace, newest first, including revoked keys."),
      ...refusals(404),
    },
  }),
  createApiKey: createRoute({
    ...operation("createApiKey", "post", "/admin/keys"),
    summary: "Create an API key",
    request: { body: jsonBody(ApiKeyCreate) },
    responses: { 201: jsonResponse(NewApiKey, "The new API key, including its secret."), ...refusals(404) },
  }),
  revokeApiKey: createRoute({
    ...operation("revokeApiKey", "delete", "/admin/keys/{key_id}"),
    summary: "Revoke an API key",
    description:
      "New requests with the key are rejected immediately. Open streams that use the key are closed within one second.",
    request: { params: z.object({ key_id: z.string() }) },
    responses: { 204: { description: "The key is revoked." }, ...errorResponses(404) },
  }),
  listWorkspaces: createRoute({
    ...operation("listWorkspaces", "get", "/admin/workspaces"),
    summary: "List workspaces",
    responses: {
      200: jsonResponse(
        z.array(Workspace),
        "All workspaces if the caller is an administrator of the default workspace, otherwise only the caller's workspace.",
      ),
    },
  }),
  createWorkspace: createRoute({
    ...operation("createWorkspace", "post", "/admin/workspaces"),
    summary: "Create a workspace",
    request: { body: jsonBody(WorkspaceCreate) },
    responses: { 201: jsonResponse(Workspace, "The new workspace."), ...refusals(409) },
  }),
  listMembers: createRoute({
    ...operation("listMembers", "get", "/admin/workspaces/{tenant_id}/members"),
    summary: "List the members of a workspace",
    request: { params: workspacePath },
    responses: { 200: jsonResponse(z.array(Member), "Workspace members, ordered by user ID."), ...refusals(404) },
  }),
  putMember: createRoute({
    ...operation("putMember", "put", "/admin/workspaces/{tenant_id}/members/{user_id}"),
    summary: "Add or update a member",
    request: { params: memberPath, body: jsonBody(MemberPut) },
    responses: { 200: jsonResponse(Member, "The member."), ...refusals(404) },
  }),
  deleteMember: createRoute({
    ...operation("deleteMember", "delete", "/admin/workspaces/{tenant_id}/members/{user_id}"),
    summary: "Remove a member",
    request: { params: memberPath },
    responses: {
      204: { description: "The member is removed. The user's API keys stay valid." },
      ...refusals(404),
    },
  }),
} as const;

/** The OpenAPI document without its paths and schemas. */
export const adminDocument = {
  openapi: "3.1.0",
  tags: [{ name: "Administration", description: "API keys, workspaces and members." }],
  info: {
    title: "Threadmill administration",
    version: "0.1.0",
    description:
      "API keys, workspaces and members. Requires the scope `admin`. Administrators of the default workspace manage all " +
      "workspaces; other administrators manage only their own. Errors have the body `{detail}`. In a 422 response, " +
      "`detail` is a list of the invalid fields; otherwise, it is a message.",
  },
};
