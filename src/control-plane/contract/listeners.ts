import { createRoute, z } from "@hono/zod-openapi";
import { jsonBody, jsonResponse, nullable, optional, timestamp } from "../../platform/contract/fields.ts";
import { laxUuid, literal } from "../../platform/contract/lax-fields.ts";
import { operation, refusals } from "../../platform/contract/operation.ts";
import { pageOffset, pageSize } from "./fields.ts";

const tags = ["Listeners (v2)"];

const ComputeConfig = z
  .object({ k8s_namespaces: optional(z.array(z.string().max(253)).max(1000)) })
  .openapi("ListenerComputeConfig");

/** A program that deploys images to a cluster for the workspace (`threadmill listen`). */
export const Listener = z
  .object({
    id: z.string().openapi({ format: "uuid" }),
    version: nullable(z.string()),
    compute_type: z.string(),
    compute_id: z.string(),
    compute_config: z.object({ k8s_namespaces: nullable(z.array(z.string())) }),
    created_at: timestamp,
    updated_at: timestamp,
  })
  .openapi("Listener");
export type Listener = z.output<typeof Listener>;

const ListenersList = z.object({ resources: z.array(Listener), offset: z.int() }).openapi("ListenersList");
export type ListenersList = z.output<typeof ListenersList>;

const version = optional(z.string().max(255));

const ListenerCreate = z
  .object({
    compute_type: literal(["k8s"]),
    compute_id: z.string().min(1).max(255),
    compute_config: ComputeConfig,
    version,
  })
  .openapi("ListenerCreateRequest");
export type ListenerCreate = z.output<typeof ListenerCreate>;

const ListenerPatch = z.object({ version, compute_config: optional(ComputeConfig) }).openapi("ListenerPatchRequest");
export type ListenerPatch = z.output<typeof ListenerPatch>;

const listenerParams = z.object({ listener_id: laxUuid });

export const listenerRoutes = {
  listListeners: createRoute({
    ...operation("list_listeners", "get", "/v2/listeners"),
    summary: "List the listeners of the workspace, newest first",
    tags,
    request: { query: z.object({ limit: pageSize(100, 20), offset: pageOffset }) },
    responses: { 200: jsonResponse(ListenersList, "A page."), ...refusals() },
  }),

  createListener: createRoute({
    ...operation("create_listener", "post", "/v2/listeners"),
    summary: "Create a listener. Fails with 409 if the workspace already has a listener with the same compute_id",
    tags,
    request: { body: jsonBody(ListenerCreate) },
    responses: { 201: jsonResponse(Listener, "The listener."), ...refusals(409) },
  }),

  getListener: createRoute({
    ...operation("get_listener", "get", "/v2/listeners/{listener_id}"),
    summary: "Get a listener",
    tags,
    request: { params: listenerParams },
    responses: { 200: jsonResponse(Listener, "The listener."), ...refusals(404) },
  }),

  patchListener: createRoute({
    ...operation("patch_listener", "patch", "/v2/listeners/{listener_id}"),
    summary: "Update a listener",
    tags,
    request: { params: listenerParams, body: jsonBody(ListenerPatch) },
    responses: { 200: jsonResponse(Listener, "The updated listener."), ...refusals(404) },
  }),

  connectListener: createRoute({
    ...operation("connect_listener", "get", "/v2/listeners/{listener_id}/connect"),
    summary: "Open the WebSocket through which this service deploys to the cluster of the listener",
    tags,
    request: { params: listenerParams },
    responses: { 101: { description: "The WebSocket is open." }, ...refusals(404) },
  }),

  deleteListener: createRoute({
    ...operation("delete_listener", "delete", "/v2/listeners/{listener_id}"),
    summary: "Delete a listener",
    tags,
    request: { params: listenerParams },
    responses: { 204: { description: "Deleted." }, ...refusals(404) },
  }),
};
