import type { RouteConfig } from "@hono/zod-openapi";
import type { Caller } from "../../platform/contract/caller.ts";
import { ApiError } from "../../platform/errors.ts";
import type { Checked } from "../../platform/http/route.ts";
import { isoOfMilliseconds } from "../../platform/lib/times.ts";
import { promptRoutes, settingsRoutes } from "../contract/prompts.ts";
import type { ExperimentsService } from "../worker/experiments-service.ts";
import type { Routes } from "./route.ts";

/** The name and the time of creation (milliseconds) of a workspace; undefined if it was deleted. */
export type ReadWorkspace = (tenant_id: string) => Promise<{ name: string; created_at: number } | undefined>;

export function servePrompts(v1: Routes, { prompts }: ExperimentsService, readWorkspace: ReadWorkspace): void {
  const routes = promptRoutes;

  const settingsOf = async ({ tenant_id }: Caller) => {
    const workspace = await readWorkspace(tenant_id);
    if (!workspace) throw new ApiError("workspace_not_found");
    return {
      id: tenant_id,
      display_name: workspace.name,
      tenant_handle: handleOf(workspace.name) || tenant_id,
      created_at: isoOfMilliseconds(workspace.created_at),
    };
  };

  /** Returns the name of the prompt. Prompts of other owners are reported as not found. */
  const own = async (caller: Caller, { owner, repo }: { owner: string; repo: string }): Promise<string> => {
    if (owner !== "-" && owner !== (await settingsOf(caller)).tenant_handle) throw new ApiError("prompt_not_found");
    return repo;
  };

  v1.serve(settingsRoutes.readSettings, async ({ caller, context }) => context.json(await settingsOf(caller)));

  // Clients call these routes with and without a trailing slash.
  const withSlash = <R extends RouteConfig>(route: R, run: (request: Checked<R>) => Promise<{ json: string }>) => {
    v1.json(route, run);
    v1.json({ ...route, path: `${route.path}/` }, run as never);
  };
  withSlash(routes.listPrompts, ({ caller, query }) => prompts.list(caller, query));
  withSlash(routes.createPrompt, ({ caller, body }) => prompts.create(caller, body));
  withSlash(routes.listPromptCommits, async ({ caller, params, query }) =>
    prompts.listCommits(caller, await own(caller, params), query),
  );

  v1.json(routes.readPrompt, async ({ caller, params }) => prompts.read(caller, await own(caller, params)));
  v1.json(routes.updatePrompt, async ({ caller, params, body }) =>
    prompts.update(caller, await own(caller, params), body),
  );
  v1.deletion(routes.deletePrompt, "Prompt", async ({ caller, params }) =>
    prompts.delete(caller, await own(caller, params)),
  );
  v1.json(routes.likePrompt, async ({ caller, params, body }) =>
    prompts.like(caller, await own(caller, params), body.like),
  );

  v1.json(routes.listPromptTags, async ({ caller, params }) => prompts.listTags(caller, await own(caller, params)));
  v1.json(routes.tagPromptCommit, async ({ caller, params, body }) =>
    prompts.tag(caller, await own(caller, params), body),
  );
  v1.deletion(routes.deletePromptTag, "Tag", async ({ caller, params }) =>
    prompts.deleteTag(caller, await own(caller, params), params.tag_name),
  );

  v1.json(routes.createPromptCommit, async ({ caller, params, body }) =>
    prompts.commit(caller, await own(caller, params), body),
  );
  v1.json(routes.pullPromptCommit, async ({ caller, params, query }) =>
    prompts.pull(caller, await own(caller, params), params.commit, query.include_model),
  );
}

/** Converts the name of a workspace to lower-case letters and digits, joined by hyphens. */
const handleOf = (name: string): string =>
  name
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter(Boolean)
    .join("-");
