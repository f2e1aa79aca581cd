import { queryOptions, useQuery } from "@tanstack/react-query";
import type { ServerInfo } from "../../../src/agent-server/contract/system.ts";
import type { Session } from "../../../src/app/contract/web-app.ts";
import { mayUse, type Scope } from "../../../src/platform/contract/caller.ts";
import { chooseWorkspace, credentials } from "./credentials.ts";
import { api, RequestError } from "./request.ts";

export const sessionQuery = queryOptions({
  queryKey: ["session"],
  queryFn: async ({ signal }) => {
    try {
      return await api.get<Session>("/app/api/session", { signal });
    } catch (error) {
      // A 403 means that the selected workspace was deleted or that the key lost access to the workspace.
      if (!(error instanceof RequestError && error.status === 403 && credentials().tenant_id)) throw error;
      chooseWorkspace(undefined);
      return await api.get<Session>("/app/api/session", { signal });
    }
  },
  staleTime: 60_000,
});

/** Threadmill version and API level of the server. */
export const serverQuery = queryOptions({
  queryKey: ["info"],
  queryFn: ({ signal }) => api.get<ServerInfo>("/info", { signal }),
});

/** Whether the credentials include a scope. Undefined while the session is loading. */
export function useMay(scope: Scope): boolean | undefined {
  const { data } = useQuery(sessionQuery);
  return data && mayUse(data, scope);
}
