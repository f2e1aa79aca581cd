import { createRoute, z } from "@hono/zod-openapi";
import { ROLES, SCOPES } from "../../platform/contract/caller.ts";
import { errorResponses, jsonBody, jsonResponse, optional, timestamp, uuid } from "../../platform/contract/fields.ts";
import { invalidResponse } from "../../platform/contract/validation-error.ts";

const tags = ["Administration"];

const userId = z.string().min(1).max(256).openapi({ description: "A user: the `sub` of a JWT, or the owner of keys." });

const scopes = z.array(z.enum(SCOPES)).min(1);

/** A key as it can be listed. The key itself is not kept. */
export const ApiKey = z
  .object({
    id: z.string().openapi({ description: "The part of the key between `tmk_` and the next `_`." }),
    tenant_id: uuid,
    user_id: userId,
    name: z.string(),
    scopes,
    created_at: timestamp,
    last_used_at: timestamp.nullable().openapi({ description: "To the minute." }),
    revoked_at: timestamp.nullable(),
  })
  .openapi("ApiKey");
export type ApiKey = z.infer<typeof ApiKey>;

export const NewApiKey = ApiKey.extend({
  key: z.string().openapi({ description: "The key. This is the only answer that has it." }),
}).openapi("NewApiKey");
export type NewApiKey = z.infer<typeof NewApiKey>;

export const ApiKeyCreate = z
  .object({
    name: z.string().min(1).max(256).openapi({ description: "For people." }),
    user_id: optional(userId).openapi({ description: "Its owner; the caller when it is left out." }),
    scopes: optional(scopes).openapi({
      description: "Left out: `agents`, `experiments` and `tokens`.",
    }),
    tenant_id: optional(uuid).openapi({ description: "Its workspace; the caller's when it is left out." }),
  })
  .openapi("ApiKeyCreate");
export type ApiKeyCreate = z.output<typeof ApiKeyCreate>;

export const Workspace = z.object({ tenant_id: uuid, name: z.string(), created_at: timestamp }).openapi("Workspace");
export type Workspace = z.infer<typeof Workspace>;

/** A UUID always means the workspace of that id, so no other is called by one. */
const workspaceName = z
  .string()
  .min(1)
  .max(256)
  .refine((name) => !z.guid().safeParse(name).success, "the name of a workspace must not be a UUID");

export const WorkspaceCreate = z
  .object({
    name: workspaceName,
    tenant_id: optional(uuid).openapi({ description: "Its id, when one was chosen elsewhere." }),
  })
  .openapi("WorkspaceCreate");
export type WorkspaceCreate = z.output<typeof WorkspaceCreate>;

const role = z
  .enum(ROLES)
  .openapi({ description: "What they may do with a JWT: an `admin` everything in the workspace." });

export const Member = z.object({ user_id: userId, role, created_at: timestamp }).openapi("Member");
export type Member = z.infer<typeof Member>;

const MemberPut = z
  .object({ role: optional(role).openapi({ description: "Left out: as it is, and `member` for a new one." }) })
  .openapi("MemberPut");

const workspacePath = z.object({ tenant_id: uuid });
const memberPath = workspacePath.extend({ user_id: userId });

const listApiKeys = createRoute({
  method: "get",
  path: "/admin/keys",
  operationId: "listApiKeys",
  summary: "The keys of a workspace, the newest first",
  tags,
  request: { query: z.object({ tenant_id: uuid.optional() }) },
  responses: {
    200: jsonResponse(z.array(ApiKey), "Also those that are revoked."),
    ...errorResponses(404),
    422: invalidResponse,
  },
});

const createApiKey = createRoute({
  method: "post",
  path: "/admin/keys",
  operationId: "createApiKey",
  summary: "Make a key",
  tags,
  request: { body: jsonBody(ApiKeyCreate) },
  responses: { 201: jsonResponse(NewApiKey, "The key, this once."), ...errorResponses(404), 422: invalidResponse },
});

const revokeApiKey = createRoute({
  method: "delete",
  path: "/admin/keys/{key_id}",
  operationId: "revokeApiKey",
  summary: "Revoke a key",
  description: "From the answer on no request with it is let in. Streams that are open already go on to their end.",
  tags,
  request: { params: z.object({ key_id: z.string() }) },
  responses: { 204: { description: "It is revoked, now or before." }, ...errorResponses(404) },
});

const listWorkspaces = createRoute({
  method: "get",
  path: "/admin/workspaces",
  operationId: "listWorkspaces",
  summary: "Workspaces",
  tags,
  responses: {
    200: jsonResponse(z.array(Workspace), "For an administrator of the default workspace all, else the caller's own."),
  },
});

const createWorkspace = createRoute({
  method: "post",
  path: "/admin/workspaces",
  operationId: "createWorkspace",
  summary: "Make a workspace",
  tags,
  request: { body: jsonBody(WorkspaceCreate) },
  responses: { 201: jsonResponse(Workspace, "The workspace."), ...errorResponses(409), 422: invalidResponse },
});

const listMembers = createRoute({
  method: "get",
  path: "/admin/workspaces/{tenant_id}/members",
  operationId: "listMembers",
  summary: "Who may name a workspace with a JWT",
  tags,
  request: { params: workspacePath },
  responses: { 200: jsonResponse(z.array(Member), "By their names."), ...errorResponses(404), 422: invalidResponse },
});

const putMember = createRoute({
  method: "put",
  path: "/admin/workspaces/{tenant_id}/members/{user_id}",
  operationId: "putMember",
  summary: "Make somebody a member",
  tags,
  request: { params: memberPath, body: jsonBody(MemberPut) },
  responses: { 200: jsonResponse(Member, "The member."), ...errorResponses(404), 422: invalidResponse },
});

const deleteMember = createRoute({
  method: "delete",
  path: "/admin/workspaces/{tenant_id}/members/{user_id}",
  operationId: "deleteMember",
  summary: "End a membership",
  tags,
  request: { params: memberPath },
  responses: {
    204: { description: "It has ended. Keys of the user are not touched." },
    ...errorResponses(404),
    422: invalidResponse,
  },
});

/** Keys, workspaces and their members. */
export const adminRoutes = {
  listApiKeys, // GET /admin/keys
  createApiKey, // POST /admin/keys
  revokeApiKey, // DELETE /admin/keys/{key_id}
  listWorkspaces, // GET /admin/workspaces
  createWorkspace, // POST /admin/workspaces
  listMembers, // GET /admin/workspaces/{tenant_id}/members
  putMember, // PUT /admin/workspaces/{tenant_id}/members/{user_id}
  deleteMember, // DELETE /admin/workspaces/{tenant_id}/members/{user_id}
} as const;

/** Head of the OpenAPI document of the administration. */
export const adminDocument = {
  openapi: "3.1.0",
  info: {
    title: "Threadmill administration",
    version: "0.1.0",
    description:
      "Keys, workspaces and their members, for callers with the scope `admin`. Those of the default workspace reach all " +
      "workspaces, others their own alone. A 422 lists every reason with its place; other errors have the body `{detail}`.",
  },
};
