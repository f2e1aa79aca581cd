import { createHash } from "node:crypto";
import type { Caller } from "../../platform/contract/caller.ts";
import { type Database, type Tx, writeUnique } from "../../platform/database/database.ts";
import { ApiError } from "../../platform/errors.ts";
import { isUuid, newId } from "../../platform/lib/ids.ts";
import { isObject, type JsonObject } from "../../platform/lib/json/json.ts";
import { isoOfMilliseconds } from "../../platform/lib/times.ts";
import type {
  CommitQuery,
  Prompt,
  PromptCommit,
  PromptCommitCreate,
  PromptCreate,
  PromptManifest,
  PromptQuery,
  PromptTag,
  PromptTagCreate,
  PromptUpdate,
} from "../contract/prompts.ts";
import {
  deletePrompt,
  deleteTag,
  findCommits,
  findPrompt,
  insertCommit,
  insertPrompt,
  type ListedCommit,
  listCommits,
  listPrompts,
  listTags,
  lockPrompt,
  type PromptRow,
  type PromptTagWithCommit,
  type PromptWithCounts,
  putTag,
  readManifest,
  setLike,
  updatePrompt,
} from "../storage/prompts.ts";

/** A prompt of 100 messages with examples has less than 200 KB. */
const MAX_MANIFEST_BYTES = 2 * 1024 * 1024;

/** Operations on prompts and their commits. A `name` is the name of the repo in the path, without the owner. */
export const promptOperations = (database: Database) => ({
  async list(caller: Caller, query: PromptQuery): Promise<{ repos: Prompt[]; total: number }> {
    assertPrompt(query.repo_type);
    if (query.is_public === true) return { repos: [], total: 0 };
    const { rows, total } = await listPrompts(database.read, caller, query);
    return { repos: rows.map(toPrompt), total };
  },

  async create(caller: Caller, body: PromptCreate): Promise<{ repo: Prompt }> {
    assertPrompt(body.repo_type);
    return database.write(async (tx) => {
      const created = await insertPrompt(tx, {
        tenant_id: caller.tenant_id,
        prompt_id: newId(),
        name: body.repo_handle,
        description: body.description ?? null,
        readme: body.readme ?? null,
        tags: JSON.stringify(body.tags ?? []),
        is_archived: 0,
      });
      if (!created) throw new ApiError("prompt_exists", { name: body.repo_handle });
      return promptRecord(tx, caller, created.name);
    });
  },

  read: (caller: Caller, name: string): Promise<{ repo: Prompt }> => promptRecord(database.read, caller, name),

  async update(caller: Caller, name: string, body: PromptUpdate): Promise<{ repo: Prompt }> {
    const { description, readme, tags, is_archived } = body;
    return database.write(async (tx) => {
      await updatePrompt(tx, (await getPrompt(tx, caller, name)).prompt_no, {
        description,
        readme,
        tags: tags && JSON.stringify(tags),
        is_archived: is_archived === undefined ? undefined : Number(is_archived),
      });
      return promptRecord(tx, caller, name);
    });
  },

  async delete(caller: Caller, name: string): Promise<void> {
    await database.write(async (tx) => deletePrompt(tx, (await getLocked(tx, caller, name)).prompt_no));
  },

  like: (caller: Caller, name: string, like: boolean): Promise<{ likes: number }> =>
    database.write(async (tx) => {
      const { prompt_no } = await getPrompt(tx, caller, name);
      return { likes: await setLike(tx, prompt_no, caller.user_id, like) };
    }),

  async listCommits(caller: Caller, name: string, query: CommitQuery) {
    const prompt = await getPrompt(database.read, caller, name);
    const { rows, total } = await listCommits(database.read, prompt.prompt_no, query);
    return { commits: rows.map((row) => toCommit(prompt, row)), total };
  },

  /** @throws ApiError when the parent is not the latest commit, or the manifest is too large or that of the latest commit */
  commit(caller: Caller, name: string, body: PromptCommitCreate): Promise<{ commit: PromptCommit }> {
    const manifest = JSON.stringify(body.manifest);
    if (Buffer.byteLength(manifest) > MAX_MANIFEST_BYTES)
      throw new ApiError("invalid_request", {
        reason: `The JSON text of the manifest is larger than ${MAX_MANIFEST_BYTES} bytes.`,
      });
    const manifest_sha = sha256(canonical(body.manifest)).toString("base64");
    return writeUnique(database, async (tx) => {
      const prompt = await getLocked(tx, caller, name);
      const [latest] = await findCommits(tx, prompt.prompt_no, { latest: true });
      const parent = body.parent_commit && (await getCommit(tx, prompt, body.parent_commit));
      if ((parent || undefined)?.commit_no !== latest?.commit_no)
        throw new ApiError("parent_not_latest", {
          parent: body.parent_commit ?? "null",
          latest: latest?.commit_hash ?? "null",
          name,
        });
      if (latest?.manifest_sha === manifest_sha) throw new ApiError("nothing_to_commit");
      const commit_hash = sha256(`${latest?.commit_hash ?? ""}\n${manifest_sha}`).toString("hex");
      await insertCommit(tx, {
        prompt_no: prompt.prompt_no,
        commit_id: newId(),
        commit_hash,
        parent_no: latest?.commit_no ?? null,
        manifest,
        manifest_sha,
        description: body.description ?? null,
      });
      await updatePrompt(tx, prompt.prompt_no, {});
      return { commit: toCommit(prompt, await getCommit(tx, prompt, commit_hash)) };
    });
  },

  async pull(caller: Caller, name: string, commit: string, include_model: boolean): Promise<PromptManifest> {
    const { read } = database;
    const found = await getCommit(read, await getPrompt(read, caller, name), commit);
    const stored = await readManifest(read, found.commit_no);
    if (stored === undefined) throw new ApiError("commit_not_found", { commit, name });
    const manifest = JSON.parse(stored) as JsonObject;
    return {
      commit_hash: found.commit_hash,
      manifest: include_model ? manifest : withoutModel(manifest),
      description: found.description,
      examples: [],
    };
  },

  async listTags(caller: Caller, name: string): Promise<PromptTag[]> {
    const prompt = await getPrompt(database.read, caller, name);
    return (await listTags(database.read, prompt.prompt_no)).map((tag) => toTag(prompt, tag));
  },

  tag: (caller: Caller, name: string, { tag_name, commit_id }: PromptTagCreate): Promise<PromptTag> =>
    database.write(async (tx) => {
      if (tag_name === LATEST)
        throw new ApiError("invalid_request", { reason: 'The tag "latest" is reserved for the latest commit.' });
      const prompt = await getLocked(tx, caller, name);
      const { commit_no } = await getCommit(tx, prompt, commit_id);
      await putTag(tx, { prompt_no: prompt.prompt_no, name: tag_name, commit_no });
      const stored = (await listTags(tx, prompt.prompt_no)).find((tag) => tag.name === tag_name);
      return toTag(prompt, stored as PromptTagWithCommit);
    }),

  async deleteTag(caller: Caller, name: string, tag_name: string): Promise<void> {
    const count = await database.write(async (tx) =>
      deleteTag(tx, (await getPrompt(tx, caller, name)).prompt_no, tag_name),
    );
    if (count === 0) throw new ApiError("prompt_tag_not_found", { tag: tag_name });
  },
});

const LATEST = "latest";

/** Rejects other repo types: clients also use these routes for agents and skills, which are directories of files. */
function assertPrompt(repo_type: string): void {
  if (repo_type !== "prompt")
    throw new ApiError("not_offered", {
      feature: `The repo type ${repo_type}`,
      instead: "Only prompts can be stored: keep the files of agents and skills in a Git repository.",
    });
}

async function getPrompt(tx: Tx, { tenant_id, user_id }: Caller, name: string): Promise<PromptWithCounts> {
  const prompt = await findPrompt(tx, tenant_id, user_id, name);
  if (!prompt) throw new ApiError("prompt_not_found");
  return prompt;
}

async function getLocked(tx: Tx, { tenant_id }: Caller, name: string): Promise<PromptRow> {
  const prompt = await lockPrompt(tx, tenant_id, name);
  if (!prompt) throw new ApiError("prompt_not_found");
  return prompt;
}

const HASH_PREFIX = /^[0-9a-f]{4,64}$/;

/** @param commit `latest`, a tag, an id, or a hash prefix; tags take precedence over ids and hashes */
async function getCommit(tx: Tx, { prompt_no, name }: PromptRow, commit: string): Promise<ListedCommit> {
  const [first] = await findCommits(tx, prompt_no, commit === LATEST ? { latest: true } : { tag: commit });
  if (first) return first;
  if (isUuid(commit)) {
    const [found] = await findCommits(tx, prompt_no, { commit_id: commit.toLowerCase() });
    if (found) return found;
  }
  const [found, other] = HASH_PREFIX.test(commit) ? await findCommits(tx, prompt_no, { hash_prefix: commit }) : [];
  if (!found || other) throw new ApiError("commit_not_found", { commit, name });
  return found;
}

const promptRecord = async (tx: Tx, caller: Caller, name: string): Promise<{ repo: Prompt }> => ({
  repo: toPrompt(await getPrompt(tx, caller, name)),
});

const sha256 = (text: string): Buffer => createHash("sha256").update(text).digest();

/** JSON with sorted keys: the order of keys does not change the hash. */
const canonical = (value: unknown): string =>
  JSON.stringify(value, (_, member) =>
    isObject(member) ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1))) : member,
  );

/** Removes the model from a manifest: clients commit a prompt and its model as a `RunnableSequence`, whose `first` is the prompt. */
function withoutModel(manifest: JsonObject): JsonObject {
  const { id, kwargs } = manifest as { id?: unknown; kwargs?: { first?: unknown } };
  const isSequence = Array.isArray(id) && id.at(-1) === "RunnableSequence";
  return isSequence && isObject(kwargs) && isObject(kwargs.first) ? (kwargs.first as JsonObject) : manifest;
}

const toPrompt = (row: PromptWithCounts): Prompt => ({
  id: row.prompt_id,
  repo_handle: row.name,
  repo_type: "prompt",
  tenant_id: row.tenant_id,
  owner: "-",
  full_name: `-/${row.name}`,
  description: row.description,
  readme: row.readme,
  tags: JSON.parse(row.tags),
  is_public: false,
  is_archived: row.is_archived === 1,
  num_likes: Number(row.like_count),
  num_downloads: 0,
  num_views: 0,
  liked_by_auth_user: Number(row.is_liked) > 0,
  num_commits: Number(row.commit_count),
  last_commit_hash: row.last_commit_hash,
  original_repo_id: null,
  original_repo_full_name: null,
  upstream_repo_id: null,
  upstream_repo_full_name: null,
  created_at: isoOfMilliseconds(row.created_at),
  updated_at: isoOfMilliseconds(row.updated_at),
});

const toCommit = ({ name, prompt_id }: PromptRow, row: ListedCommit): PromptCommit => ({
  id: row.commit_id,
  owner: "-",
  repo: name,
  repo_id: prompt_id,
  commit_hash: row.commit_hash,
  parent_id: row.parent_id,
  parent_commit_hash: row.parent_hash,
  manifest_sha: row.manifest_sha,
  description: row.description,
  example_run_ids: [],
  num_downloads: 0,
  num_views: 0,
  created_at: isoOfMilliseconds(row.created_at),
  updated_at: isoOfMilliseconds(row.created_at),
});

const toTag = ({ prompt_id }: PromptRow, tag: PromptTagWithCommit): PromptTag => ({
  tag_name: tag.name,
  commit_id: tag.commit_id,
  commit_hash: tag.commit_hash,
  repo_id: prompt_id,
  created_at: isoOfMilliseconds(tag.created_at),
  updated_at: isoOfMilliseconds(tag.updated_at),
});
