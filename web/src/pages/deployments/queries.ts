import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import type { Assistant, GraphSchemas } from "../../../../src/agent-server/contract/records.ts";
import type {
  Deployment,
  DeploymentsList,
  Revision,
  RevisionsList,
  Secret,
} from "../../../../src/control-plane/contract/records.ts";
import { API_URL, api } from "../../api/request.ts";
import { isInProgress } from "./revision-status.tsx";

/** Poll intervals: shorter while a revision is in progress. */
const ACTIVE_POLL_MS = 1_000;
const IDLE_POLL_MS = 10_000;
const PAGE = 50;

export const deploymentsKey = ["deployments"] as const;

const pathOf = (id: string) => `/v2/deployments/${id}`;

/**
 * The first assistant of a live deployment, with its input schema.
 *
 * @param address begins with {@link API_URL}
 */
export const servedQuery = (address: string, revision_id: string) =>
  queryOptions({
    queryKey: [...deploymentsKey, "served", address, revision_id],
    queryFn: async ({ signal }) => {
      const root = address.slice(API_URL.length);
      const body = { limit: 1, sort_by: "name", sort_order: "asc" };
      const [assistant] = await api.post<Assistant[]>(`${root}/assistants/search`, body, { signal });
      if (!assistant) return null;
      const path = `${root}/assistants/${assistant.assistant_id}/schemas`;
      // Without a schema, the command has a message as its example input.
      const schemas = await api.get<GraphSchemas>(path, { signal }).catch(() => undefined);
      return { assistant, schema: schemas?.input_schema };
    },
    retry: 2,
    staleTime: Number.POSITIVE_INFINITY,
  });

export const deploymentsQuery = (name: string | undefined) =>
  infiniteQueryOptions({
    queryKey: [...deploymentsKey, "list", name],
    queryFn: ({ signal, pageParam }) =>
      api.get<DeploymentsList>("/v2/deployments", {
        signal,
        query: { name_contains: name, limit: PAGE, offset: pageParam },
      }),
    initialPageParam: 0,
    getNextPageParam: ({ resources, offset }) => (resources.length === PAGE ? offset : undefined),
    refetchInterval: IDLE_POLL_MS,
    placeholderData: keepPreviousData,
  });

export const deploymentQuery = (id: string) =>
  queryOptions({
    queryKey: [...deploymentsKey, "one", id],
    queryFn: ({ signal }) => api.get<Deployment>(pathOf(id), { signal }),
    refetchInterval: 2 * ACTIVE_POLL_MS,
  });

export const revisionsQuery = (id: string) =>
  infiniteQueryOptions({
    queryKey: [...deploymentsKey, "revisions", id],
    queryFn: ({ signal, pageParam }) =>
      api.get<RevisionsList>(`${pathOf(id)}/revisions`, { signal, query: { limit: PAGE, offset: pageParam } }),
    initialPageParam: 0,
    getNextPageParam: ({ resources, offset }) => (resources.length === PAGE ? offset : undefined),
    refetchInterval: ({ state }) =>
      state.data?.pages.some(({ resources }) => resources.some(isInProgress)) ? ACTIVE_POLL_MS : IDLE_POLL_MS,
  });

export const revisionQuery = (id: string, revision_id: string) =>
  queryOptions({
    queryKey: [...deploymentsKey, "revision", id, revision_id],
    queryFn: ({ signal }) => api.get<Revision>(`${pathOf(id)}/revisions/${revision_id}`, { signal }),
    refetchInterval: ({ state }) => (state.data && isInProgress(state.data) ? ACTIVE_POLL_MS : IDLE_POLL_MS),
  });

/** Creates a revision. Omitted fields are copied from the previous revision. */
export const newRevision = (id: string, source_revision_config: object): Promise<Revision> =>
  api.post(`${pathOf(id)}/revisions`, { source_revision_config });

export const redeploy = (id: string, revision_id: string): Promise<Deployment> =>
  api.post(`${pathOf(id)}/revisions/${revision_id}/redeploy`);

export const interrupt = (id: string, revision_id: string): Promise<Revision> =>
  api.post(`${pathOf(id)}/revisions/${revision_id}/interrupt`);

export const replaceSecrets = (id: string, secrets: readonly Secret[]): Promise<Deployment> =>
  api.patch(pathOf(id), { secrets });

export const removeDeployment = (id: string): Promise<void> => api.delete(pathOf(id));
