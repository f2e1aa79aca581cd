import { type Insertable, sql } from "kysely";
import { nowMs, type Schema, type Tx } from "../../platform/database/database.ts";
import type { PromptQuery } from "../contract/prompts.ts";

declare module "../../platform/database/database.ts" {
  interface Schema {
    prompts: WithSequence<PromptRow, "prompt_no">;
    prompt_commits: WithSequence<PromptCommitRow, "commit_no">;
    prompt_tags: PromptTagRow;
    prompt_likes: { prompt_no: number; user_id: string };
  }
}

type WithSequence<Row, Key extends keyof Row> = Omit<Row, Key> & { [K in Key]: import("kysely").Generated<Row[K]> };

export interface PromptRow {
  prompt_no: number;
  tenant_id: string;
  prompt_id: string;
  /** Unique in the workspace. */
  name: string;
  description: string | null;
  readme: string | null;
  /** JSON list. */
  tags: string;
  is_archived: number;
  created_at: number;
  updated_at: number;
}

export interface PromptCommitRow {
  /** Ascending in the order of the commits. */
  commit_no: number;
  prompt_no: number;
  commit_id: string;
  /** Unique in the prompt. */
  commit_hash: string;
  parent_no: number | null;
  /** JSON. */
  manifest: string;
  manifest_sha: string;
  description: string | null;
  created_at: number;
}

interface PromptTagRow {
  prompt_no: number;
  name: string;
  commit_no: number;
  created_at: number;
  updated_at: number;
}

export interface PromptWithCounts extends PromptRow {
  commit_count: number;
  last_commit_hash: string | null;
  like_count: number;
  /** 1 if the user who sent the query likes the prompt. */
  is_liked: number;
}

const prompts = (tx: Tx, tenant_id: string) => tx.k.selectFrom("prompts").where("tenant_id", "=", tenant_id);

const withCounts = (tx: Tx, tenant_id: string, user_id: string) =>
  prompts(tx, tenant_id)
    .selectAll()
    .select([
      sql<number>`(select count(*) from prompt_commits c where c.prompt_no = prompts.prompt_no)`.as("commit_count"),
      sql<string | null>`(select commit_hash from prompt_commits c where c.prompt_no = prompts.prompt_no
        order by commit_no desc limit 1)`.as("last_commit_hash"),
      sql<number>`(select count(*) from prompt_likes l where l.prompt_no = prompts.prompt_no)`.as("like_count"),
      sql<number>`(select count(*) from prompt_likes l where l.prompt_no = prompts.prompt_no
        and l.user_id = ${user_id})`.as("is_liked"),
    ]);

/** @returns undefined when the name is taken */
export const insertPrompt = (
  tx: Tx,
  prompt: Omit<PromptRow, "prompt_no" | "created_at" | "updated_at">,
): Promise<PromptRow | undefined> =>
  tx.first(
    tx.k
      .insertInto("prompts")
      .values({ ...prompt, created_at: nowMs, updated_at: nowMs } as Insertable<Schema["prompts"]>)
      .onConflict((conflict) => conflict.doNothing())
      .returningAll(),
  );

export const findPrompt = (
  tx: Tx,
  tenant_id: string,
  user_id: string,
  name: string,
): Promise<PromptWithCounts | undefined> => tx.first(withCounts(tx, tenant_id, user_id).where("name", "=", name));

/** Locks the prompt until the transaction ends. Required to add a commit. */
export const lockPrompt = (tx: Tx, tenant_id: string, name: string): Promise<PromptRow | undefined> =>
  tx.first(tx.dialect.forUpdate(prompts(tx, tenant_id).selectAll().where("name", "=", name)));

export async function listPrompts(
  tx: Tx,
  { tenant_id, user_id }: { tenant_id: string; user_id: string },
  { query, tags, is_archived, has_commits, sort_field, sort_direction, limit, offset }: PromptQuery,
): Promise<{ rows: PromptWithCounts[]; total: number }> {
  const contains = (column: string, text: string) => tx.dialect.containsText(sql.ref(column), text);
  const conditions = [
    ...(query ? [sql<boolean>`(${contains("name", query)} or ${contains("description", query)})`] : []),
    ...(tags ?? []).map((tag) => sql<boolean>`json_contains(tags, ${JSON.stringify([tag])})`),
    ...(is_archived === "allow" ? [] : [sql<boolean>`is_archived = ${is_archived === "true" ? 1 : 0}`]),
    ...(has_commits === undefined
      ? []
      : [
          sql<boolean>`${sql.raw(has_commits ? "" : "not ")}exists
            (select 1 from prompt_commits c where c.prompt_no = prompts.prompt_no)`,
        ]),
  ];
  const matching = conditions.length === 0 ? sql<boolean>`1 = 1` : sql.join<boolean>(conditions, sql` and `);
  const by = sort_field === "num_likes" ? "like_count" : "updated_at";
  const rows = await tx.all(
    withCounts(tx, tenant_id, user_id)
      .where(sql<boolean>`(${matching})`)
      .orderBy(sql.ref(by), sort_direction)
      .orderBy("prompt_no", sort_direction)
      .limit(limit)
      .offset(offset),
  );
  const counted = await tx.first(
    prompts(tx, tenant_id)
      .where(sql<boolean>`(${matching})`)
      .select((p) => p.fn.countAll<number>().as("total")),
  );
  return { rows, total: Number(counted?.total ?? 0) };
}

/** Updates a prompt and the time of its last change. Undefined fields are not changed. */
export const updatePrompt = (
  tx: Tx,
  prompt_no: number,
  changes: { [Name in "description" | "readme" | "tags" | "is_archived"]?: PromptRow[Name] | undefined },
): Promise<number> =>
  tx.run(
    tx.k
      .updateTable("prompts")
      .set({ ...changes, updated_at: nowMs })
      .where("prompt_no", "=", prompt_no),
  );

export async function deletePrompt(tx: Tx, prompt_no: number): Promise<void> {
  for (const table of ["prompt_likes", "prompt_tags", "prompt_commits", "prompts"] as const)
    await tx.run(tx.k.deleteFrom(table).where("prompt_no", "=", prompt_no));
}

/** @returns the number of likes */
export async function setLike(tx: Tx, prompt_no: number, user_id: string, like: boolean): Promise<number> {
  const { k } = tx;
  await tx.run(
    like
      ? k
          .insertInto("prompt_likes")
          .values({ prompt_no, user_id })
          .onConflict((conflict) => conflict.doNothing())
      : k.deleteFrom("prompt_likes").where("prompt_no", "=", prompt_no).where("user_id", "=", user_id),
  );
  const counted = await tx.first(
    k
      .selectFrom("prompt_likes")
      .where("prompt_no", "=", prompt_no)
      .select((l) => l.fn.countAll<number>().as("likes")),
  );
  return Number(counted?.likes ?? 0);
}

/** A commit without its manifest. */
export type ListedCommit = Omit<PromptCommitRow, "manifest"> & {
  parent_id: string | null;
  parent_hash: string | null;
};

const commits = (tx: Tx, prompt_no: number) =>
  tx.k
    .selectFrom("prompt_commits as c")
    .leftJoin("prompt_commits as parent", "parent.commit_no", "c.parent_no")
    .where("c.prompt_no", "=", prompt_no)
    .select(["c.commit_no", "c.prompt_no", "c.commit_id", "c.commit_hash", "c.parent_no", "c.manifest_sha"])
    .select(["c.description", "c.created_at", "parent.commit_id as parent_id", "parent.commit_hash as parent_hash"])
    .orderBy("c.commit_no", "desc");

export const insertCommit = (tx: Tx, commit: Omit<PromptCommitRow, "commit_no" | "created_at">): Promise<number> =>
  tx.run(
    tx.k.insertInto("prompt_commits").values({ ...commit, created_at: nowMs } as Insertable<Schema["prompt_commits"]>),
  );

export async function listCommits(
  tx: Tx,
  prompt_no: number,
  { tag, limit, offset }: { tag?: string | undefined; limit: number; offset: number },
): Promise<{ rows: ListedCommit[]; total: number }> {
  const tagged = sql<boolean>`exists (select 1 from prompt_tags t
    where t.prompt_no = ${prompt_no} and t.name = ${tag ?? ""} and t.commit_no = c.commit_no)`;
  const matching = tag === undefined ? sql<boolean>`1 = 1` : tagged;
  const rows = await tx.all(commits(tx, prompt_no).where(matching).limit(limit).offset(offset));
  const counted = await tx.first(
    tx.k
      .selectFrom("prompt_commits as c")
      .where("c.prompt_no", "=", prompt_no)
      .where(matching)
      .select((c) => c.fn.countAll<number>().as("total")),
  );
  return { rows, total: Number(counted?.total ?? 0) };
}

/** Finds the latest commit, or commits by tag, id or hash prefix. Returns two commits if the prefix is ambiguous. */
export const findCommits = (
  tx: Tx,
  prompt_no: number,
  by: { latest: true } | { tag: string } | { commit_id: string } | { hash_prefix: string },
): Promise<ListedCommit[]> => {
  const query = commits(tx, prompt_no).limit(2);
  if ("latest" in by) return tx.all(query.limit(1));
  if ("commit_id" in by) return tx.all(query.where("c.commit_id", "=", by.commit_id));
  if ("hash_prefix" in by)
    return tx.all(
      query.where("c.commit_hash", ">=", by.hash_prefix).where("c.commit_hash", "<=", `${by.hash_prefix}g`),
    );
  return tx.all(
    query.where(
      sql<boolean>`c.commit_no = (select commit_no from prompt_tags where prompt_no = ${prompt_no} and name = ${by.tag})`,
    ),
  );
};

export const readManifest = async (tx: Tx, commit_no: number): Promise<string | undefined> =>
  (await tx.first(tx.k.selectFrom("prompt_commits").select("manifest").where("commit_no", "=", commit_no)))?.manifest;

export type PromptTagWithCommit = PromptTagRow & Pick<PromptCommitRow, "commit_id" | "commit_hash">;

export const listTags = (tx: Tx, prompt_no: number): Promise<PromptTagWithCommit[]> =>
  tx.all(
    tx.k
      .selectFrom("prompt_tags")
      .innerJoin("prompt_commits", "prompt_commits.commit_no", "prompt_tags.commit_no")
      .selectAll("prompt_tags")
      .select(["prompt_commits.commit_id", "prompt_commits.commit_hash"])
      .where("prompt_tags.prompt_no", "=", prompt_no)
      .orderBy("prompt_tags.name"),
  );

/** Adds a tag, or moves it to another commit. */
export const putTag = (tx: Tx, tag: Pick<PromptTagRow, "prompt_no" | "name" | "commit_no">): Promise<number> =>
  tx.run(
    tx.k
      .insertInto("prompt_tags")
      .values({ ...tag, created_at: nowMs, updated_at: nowMs })
      .onConflict((conflict) =>
        conflict.columns(["prompt_no", "name"]).doUpdateSet({ commit_no: tag.commit_no, updated_at: nowMs }),
      ),
  );

export const deleteTag = (tx: Tx, prompt_no: number, name: string): Promise<number> =>
  tx.run(tx.k.deleteFrom("prompt_tags").where("prompt_no", "=", prompt_no).where("name", "=", name));
