import { queryOptions } from "@tanstack/react-query";
import type { ApiKey, Workspace } from "../../../../src/access/contract/admin.ts";
import { api } from "../../api/request.ts";

export const keysQuery = queryOptions({
  queryKey: ["admin", "keys"],
  queryFn: ({ signal }) => api.get<ApiKey[]>("/admin/keys", { signal }),
});

/** Sent without the selected workspace, because only a caller in the default workspace can list all workspaces. */
export const workspacesQuery = queryOptions({
  queryKey: ["admin", "workspaces"],
  queryFn: ({ signal }) => api.get<Workspace[]>("/admin/workspaces", { signal, tenant_id: null }),
});
