import { createRoute, z } from "@hono/zod-openapi";
import {
  jsonBody,
  jsonObject,
  jsonResponse,
  nullable,
  optional,
  queryBoolean,
  queryFlag,
  withDefault,
} from "../../platform/contract/fields.ts";
import { fewTexts, paging, timeText } from "./fields.ts";
import { deletedResponse, errors } from "./responses.ts";

/** The names of prompts and tags are part of paths and of identifiers such as `name:tag`. */
const name = z
  .string()
  .max(200)
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._-]*$/,
    "must begin with a letter or digit and contain only letters, digits, dots, hyphens and underscores",
  );

const isPrivate = z
  .boolean()
  .refine((is_public) => !is_public, "must be false: prompts are visible only in their workspace");

const metadata = {
  description: nullable(z.string().max(10_000)).optional(),
  readme: nullable(z.string().max(100_000)).optional(),
  tags: optional(z.array(z.string().min(1).max(200)).max(100)),
  is_public: optional(isPrivate),
};

/** The API calls a prompt a repo. Downloads and views are not counted. */
export const Prompt = z
  .object({
    id: z.string(),
    repo_handle: z.string().openapi({ description: "The name of the prompt." }),
    repo_type: z.literal("prompt"),
    tenant_id: z.string(),
    owner: z.literal("-"),
    full_name: z.string().openapi({ example: "-/my-prompt" }),
    description: z.string().nullable(),
    readme: z.string().nullable(),
    tags: z.array(z.string()),
    is_public: z.literal(false),
    is_archived: z.boolean(),
    num_likes: z.int(),
    num_downloads: z.literal(0),
    num_views: z.literal(0),
    liked_by_auth_user: z.boolean(),
    num_commits: z.int(),
    last_commit_hash: z.string().nullable(),
    original_repo_id: z.null(),
    original_repo_full_name: z.null(),
    upstream_repo_id: z.null(),
    upstream_repo_full_name: z.null(),
    created_at: timeText,
    updated_at: timeText,
  })
  .openapi("Prompt");
export type Prompt = z.output<typeof Prompt>;

/** A version of a prompt. Its hash is computed from its manifest and the hash of its parent. */
const PromptCommit = z
  .object({
    id: z.string(),
    owner: z.literal("-"),
    repo: z.string(),
    repo_id: z.string(),
    commit_hash: z.string(),
    parent_id: z.string().nullable(),
    parent_commit_hash: z.string().nullable(),
    manifest_sha: z.string().openapi({ description: "The SHA-256 of the manifest, in base64." }),
    description: z.string().nullable(),
    example_run_ids: z.array(z.string()).max(0),
    num_downloads: z.literal(0),
    num_views: z.literal(0),
    created_at: timeText,
    updated_at: timeText,
  })
  .openapi("PromptCommit");
export type PromptCommit = z.output<typeof PromptCommit>;

const PromptManifest = z
  .object({
    commit_hash: z.string(),
    manifest: jsonObject,
    description: z.string().nullable(),
    examples: z.array(jsonObject).max(0),
  })
  .openapi("PromptManifest");
export type PromptManifest = z.output<typeof PromptManifest>;

const PromptTag = z
  .object({
    tag_name: z.string(),
    commit_id: z.string(),
    commit_hash: z.string(),
    repo_id: z.string(),
    created_at: timeText,
    updated_at: timeText,
  })
  .openapi("PromptTag");
export type PromptTag = z.output<typeof PromptTag>;

const PromptQuery = z.object({
  query: z.string().optional().describe("Text to search for in names and descriptions."),
  tags: fewTexts.optional(),
  is_public: queryBoolean.optional(),
  is_archived: z.enum(["true", "false", "allow"]).default("allow"),
  has_commits: queryBoolean.optional(),
  sort_field: z
    .enum(["num_likes", "num_downloads", "num_views", "updated_at", "relevance"])
    .default("updated_at")
    .describe("`num_likes` sorts by the number of likes; all other values sort by the time of the last change."),
  sort_direction: z.enum(["asc", "desc"]).default("desc"),
  repo_type: z.string().max(100).default("prompt"),
  ...paging,
});
export type PromptQuery = z.output<typeof PromptQuery>;

const PromptCreate = z
  .object({ ...metadata, repo_handle: name, repo_type: withDefault(z.string().max(100), "prompt") })
  .openapi("PromptCreate");
export type PromptCreate = z.output<typeof PromptCreate>;

/** Missing fields keep their values. */
const PromptUpdate = z.object({ ...metadata, is_archived: optional(z.boolean()) }).openapi("PromptUpdate");
export type PromptUpdate = z.output<typeof PromptUpdate>;

/** The manifest is the JSON of a LangChain object. The parent must be the latest commit. The first commit has no parent. */
const PromptCommitCreate = z
  .object({
    manifest: jsonObject,
    parent_commit: optional(z.string().min(1).max(200)),
    description: optional(z.string().max(1000)),
  })
  .openapi("PromptCommitCreate");
export type PromptCommitCreate = z.output<typeof PromptCommitCreate>;

const PromptTagCreate = z.object({ tag_name: name, commit_id: z.string().min(1).max(200) }).openapi("PromptTagCreate");
export type PromptTagCreate = z.output<typeof PromptTagCreate>;

const owner = z.string().openapi({ description: "`-`, or the `tenant_handle` of the caller's workspace." });
export const promptParams = z.object({ owner, repo: z.string() });
const one = z.object({ repo: Prompt });

const commitQuery = z.object({
  tag: z.string().optional().describe("Returns only the commit with this tag."),
  ...paging,
});
export type CommitQuery = z.output<typeof commitQuery>;

export const promptRoutes = {
  listPrompts: createRoute({
    method: "get",
    path: "/repos",
    operationId: "list_prompts",
    summary: "List prompts",
    request: { query: PromptQuery },
    responses: {
      200: jsonResponse(z.object({ repos: z.array(Prompt), total: z.int() }), "A page of prompts."),
      ...errors(404),
    },
  }),

  createPrompt: createRoute({
    method: "post",
    path: "/repos",
    operationId: "create_prompt",
    summary: "Create a prompt without commits",
    request: { body: jsonBody(PromptCreate) },
    responses: { 200: jsonResponse(one, "The prompt."), ...errors(404, 409) },
  }),

  readPrompt: createRoute({
    method: "get",
    path: "/repos/{owner}/{repo}",
    operationId: "read_prompt",
    summary: "Get a prompt",
    request: { params: promptParams },
    responses: { 200: jsonResponse(one, "The prompt."), ...errors(404) },
  }),

  updatePrompt: createRoute({
    method: "patch",
    path: "/repos/{owner}/{repo}",
    operationId: "update_prompt",
    summary: "Update the metadata of a prompt",
    request: { params: promptParams, body: jsonBody(PromptUpdate) },
    responses: { 200: jsonResponse(one, "The updated prompt."), ...errors(404) },
  }),

  deletePrompt: createRoute({
    method: "delete",
    path: "/repos/{owner}/{repo}",
    operationId: "delete_prompt",
    summary: "Delete a prompt and its commits",
    request: { params: promptParams },
    responses: { 200: deletedResponse("The prompt was deleted."), ...errors(404) },
  }),

  likePrompt: createRoute({
    method: "post",
    path: "/likes/{owner}/{repo}",
    operationId: "like_prompt",
    summary: "Like a prompt, or remove the like",
    request: { params: promptParams, body: jsonBody(z.object({ like: z.boolean() })) },
    responses: { 200: jsonResponse(z.object({ likes: z.int() }), "The number of likes."), ...errors(404) },
  }),

  listPromptTags: createRoute({
    method: "get",
    path: "/repos/{owner}/{repo}/tags",
    operationId: "list_prompt_tags",
    summary: "List the tags of a prompt with their commits",
    request: { params: promptParams },
    responses: { 200: jsonResponse(z.array(PromptTag), "The tags, sorted by name."), ...errors(404) },
  }),

  tagPromptCommit: createRoute({
    method: "post",
    path: "/repos/{owner}/{repo}/tags",
    operationId: "tag_prompt_commit",
    summary: "Add a tag to a commit, or move an existing tag to it",
    request: { params: promptParams, body: jsonBody(PromptTagCreate) },
    responses: { 200: jsonResponse(PromptTag, "The tag."), ...errors(404) },
  }),

  deletePromptTag: createRoute({
    method: "delete",
    path: "/repos/{owner}/{repo}/tags/{tag_name}",
    operationId: "delete_prompt_tag",
    summary: "Remove a tag. The commit is not deleted.",
    request: { params: promptParams.extend({ tag_name: z.string() }) },
    responses: { 200: deletedResponse("The tag was removed."), ...errors(404) },
  }),

  listPromptCommits: createRoute({
    method: "get",
    path: "/commits/{owner}/{repo}",
    operationId: "list_prompt_commits",
    summary: "List the commits of a prompt, newest first, without their manifests",
    request: { params: promptParams, query: commitQuery },
    responses: {
      200: jsonResponse(z.object({ commits: z.array(PromptCommit), total: z.int() }), "A page of commits."),
      ...errors(404),
    },
  }),

  createPromptCommit: createRoute({
    method: "post",
    path: "/commits/{owner}/{repo}",
    operationId: "create_prompt_commit",
    summary: "Create a commit. Returns 409 if the parent is not the latest commit, or if the manifest did not change.",
    request: { params: promptParams, body: jsonBody(PromptCommitCreate) },
    responses: { 200: jsonResponse(z.object({ commit: PromptCommit }), "The commit."), ...errors(404, 409) },
  }),

  pullPromptCommit: createRoute({
    method: "get",
    path: "/commits/{owner}/{repo}/{commit}",
    operationId: "pull_prompt_commit",
    summary: "Get the manifest of a commit",
    request: {
      params: promptParams.extend({
        commit: z.string().openapi({
          description: "`latest`, a tag, the commit ID, or the commit hash (at least its first 4 characters).",
        }),
      }),
      query: z.object({
        include_model: queryFlag(
          "Whether to include the model in the manifest, if the prompt was committed with a model.",
        ),
      }),
    },
    responses: { 200: jsonResponse(PromptManifest, "The manifest."), ...errors(404) },
  }),
};

const Settings = z
  .object({
    id: z.string().openapi({ description: "The ID of the workspace." }),
    display_name: z.string(),
    tenant_handle: z.string().openapi({ description: "Can be used as `owner` in paths, instead of `-`." }),
    created_at: timeText,
  })
  .openapi("WorkspaceSettings");

export const settingsRoutes = {
  readSettings: createRoute({
    method: "get",
    path: "/settings",
    operationId: "read_settings",
    summary: "Get the workspace of the caller",
    responses: { 200: jsonResponse(Settings, "The workspace."), ...errors(404) },
  }),
};
