import { queryOptions } from "@tanstack/react-query";
import type { ApiKey, Workspace } from "../../../../src/access/contract/admin.ts";
import { api } from "../../api/request.ts";

export const keysQuery = queryOptions({
  queryKey: ["admin", "keys"],
  queryFn: ({ signal }) => api.get<ApiKey[]>("/admin/keys", { signal }),
});

/** Sent without the selected workspace, because all workspaces can be listed only in the key's default workspace. */
export const workspacesQuery = queryOptions({
  queryKey: ["admin", "workspaces"],
  queryFn: ({ signal }) => api.get<Workspace[]>("/admin/workspaces", { signal, tenant_id: null }),
});
