import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import type {
  Prompt,
  PromptCommit,
  PromptManifest,
  PromptQuery,
  PromptTag,
} from "../../../../src/experiments/contract/prompts.ts";
import { api } from "../../api/request.ts";

const PROMPTS = ["prompts"] as const;
const PAGE = 100;

interface PromptsPage {
  repos: Prompt[];
  total: number;
}

export const findPrompts = (query: Partial<PromptQuery>, signal: AbortSignal) =>
  api.get<PromptsPage>("/api/v1/repos", { query, signal });

export const promptsQuery = (query: string | undefined) =>
  infiniteQueryOptions({
    queryKey: [...PROMPTS, "list", query],
    queryFn: ({ pageParam, signal }) => findPrompts({ query, limit: PAGE, offset: pageParam }, signal),
    initialPageParam: 0,
    getNextPageParam: ({ total }, pages) => (pages.length * PAGE < total ? pages.length * PAGE : undefined),
    placeholderData: keepPreviousData,
  });

const pathOf = (resource: "repos" | "commits", name: string) => `/api/v1/${resource}/-/${encodeURIComponent(name)}`;

export const promptQuery = (name: string) =>
  queryOptions({
    queryKey: [...PROMPTS, "prompt", name],
    queryFn: async ({ signal }) => (await api.get<{ repo: Prompt }>(pathOf("repos", name), { signal })).repo,
  });

export const tagsQuery = (name: string) =>
  queryOptions({
    queryKey: [...PROMPTS, "tags", name],
    queryFn: ({ signal }) => api.get<PromptTag[]>(`${pathOf("repos", name)}/tags`, { signal }),
  });

export const commitsQuery = (name: string) =>
  infiniteQueryOptions({
    queryKey: [...PROMPTS, "commits", name],
    queryFn: ({ pageParam, signal }) =>
      api.get<{ commits: PromptCommit[]; total: number }>(pathOf("commits", name), {
        query: { limit: PAGE, offset: pageParam },
        signal,
      }),
    initialPageParam: 0,
    getNextPageParam: ({ total }, pages) => (pages.length * PAGE < total ? pages.length * PAGE : undefined),
  });

/** @param version a hash, the beginning of a hash, or a tag; undefined if the latest commit is unknown or there are no commits */
export const manifestQuery = (name: string, version: string | undefined) =>
  queryOptions({
    queryKey: [...PROMPTS, "manifest", name, version],
    queryFn: ({ signal }) =>
      api.get<PromptManifest>(`${pathOf("commits", name)}/${encodeURIComponent(version ?? "")}`, {
        query: { include_model: true },
        signal,
      }),
    enabled: version !== undefined,
  });
