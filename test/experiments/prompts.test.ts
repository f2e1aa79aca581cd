import { load } from "@langchain/core/load";
import { AIMessagePromptTemplate, ChatPromptTemplate } from "@langchain/core/prompts";
import { Client } from "langsmith";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { unique } from "../compat/langsmith/support.ts";
import { Scenario, type Wire } from "../http/scenario.ts";
import { databases } from "../support/databases.ts";

const manifest = (text: string): Wire =>
  JSON.parse(JSON.stringify(ChatPromptTemplate.fromMessages([["human", `${text} {input}`]])));

const nameOf = (base: string) => `${base}-${unique()}`;

describe.each(databases)("prompts on %s", (database) => {
  let api: Scenario;
  let client: Client;
  beforeAll(async () => {
    api = await Scenario.start(database);
    client = new Client({
      apiUrl: `${await api.service.listen()}/api/v1`,
      apiKey: "any",
      callerOptions: { maxRetries: 0 },
    });
  });
  afterAll(async () => {
    client.cleanup();
    await api.stop();
  });

  const commit = (name: string, text: string, parent_commit: string | null = null) =>
    api.send("POST", `/api/v1/commits/-/${name}`, { manifest: manifest(text), parent_commit });
  const pull = (name: string, version: string) => api.send("GET", `/api/v1/commits/-/${name}/${version}`);

  it("return what was pushed, by latest commit, tag, hash and the beginning of the hash", async () => {
    const name = nameOf("greeting");
    const template = ChatPromptTemplate.fromMessages([
      ["system", "You speak {language}."],
      ["human", "{input}"],
      AIMessagePromptTemplate.fromTemplate("{answer}"),
    ]);
    const url = await client.pushPrompt(name, {
      object: template,
      description: "Greets",
      tags: ["demo"],
      commitTags: ["prod"],
    });
    expect(url).toContain(`/prompts/${name}/`);
    await client.pushPrompt(name, { object: manifest("second"), commitDescription: "shorter" });

    const first = await client.pullPromptCommit(`${name}:prod`, { skipCache: true });
    expect(first.manifest).toEqual(JSON.parse(JSON.stringify(template)));
    const loaded = await load<ChatPromptTemplate>(JSON.stringify(first.manifest));
    const values = { language: "Dutch", input: "Hello", answer: "Hallo" };
    expect(await loaded.invoke(values)).toEqual(await template.invoke(values));
    const latest = await client.pullPromptCommit(name, { skipCache: true });
    expect(latest.manifest).toEqual(manifest("second"));
    for (const version of [latest.commit_hash, latest.commit_hash.slice(0, 8), "latest"])
      expect((await pull(name, version)).body).toMatchObject({
        commit_hash: latest.commit_hash,
        description: "shorter",
      });
    expect(await client.getPrompt(name)).toMatchObject({
      repo_handle: name,
      full_name: `-/${name}`,
      description: "Greets",
      tags: ["demo"],
      num_commits: 2,
      last_commit_hash: latest.commit_hash,
      is_public: false,
    });
    const commits = [];
    for await (const each of client.listCommits(name)) commits.push(each);
    expect(commits).toMatchObject([
      { commit_hash: latest.commit_hash, parent_commit_hash: first.commit_hash },
      { commit_hash: first.commit_hash, parent_commit_hash: null },
    ]);
  });

  it("have a hash that depends on the manifest and the parent, and not on the order of keys", async () => {
    const [one, two] = [nameOf("one"), nameOf("two")];
    for (const name of [one, two]) await client.createPrompt(name);
    const first = (await commit(one, "a")).body.commit;
    const { lc, ...rest } = manifest("a");
    const reordered = await api.send("POST", `/api/v1/commits/-/${two}`, { manifest: { ...rest, lc } });
    expect(first.commit_hash).toMatch(/^[0-9a-f]{64}$/);
    expect(reordered.body.commit.commit_hash).toBe(first.commit_hash);
    const second = (await commit(one, "b", first.commit_hash)).body.commit;
    const third = (await commit(one, "a", second.commit_hash)).body.commit;
    expect(third.manifest_sha).toBe(first.manifest_sha);
    expect(third.commit_hash).not.toBe(first.commit_hash);
  });

  it("accept a commit only on the latest commit: of concurrent commits one is stored", async () => {
    const name = nameOf("raced");
    await client.createPrompt(name);
    const first = await Promise.all(["a", "b", "c"].map((text) => commit(name, text)));
    expect(first.map(({ status }) => status).sort()).toEqual([200, 409, 409]);
    const parent = first.find(({ status }) => status === 200)?.body.commit.commit_hash;
    const next = await Promise.all(["d", "e"].map((text) => commit(name, text, parent)));
    expect(next.map(({ status }) => status).sort()).toEqual([200, 409]);
    const late = await commit(name, "f", parent);
    expect(late).toMatchObject({
      status: 409,
      body: { detail: expect.stringContaining(`the latest commit of the prompt "${name}", but is ${parent}.`) },
    });
    expect((await commit(name, "f", "0".repeat(64))).status).toBe(404);
    const latest = (await pull(name, "latest")).body;
    const same = await api.send("POST", `/api/v1/commits/-/${name}`, {
      manifest: latest.manifest,
      parent_commit: latest.commit_hash,
    });
    expect(same).toMatchObject({ status: 409, body: { detail: expect.stringContaining("Nothing to commit") } });
  });

  it("are returned without the model that they were committed with, unless it is requested", async () => {
    const name = nameOf("with-model");
    const prompt = manifest("ask");
    const sequence = {
      lc: 1,
      type: "constructor",
      id: ["langchain", "schema", "runnable", "RunnableSequence"],
      kwargs: {
        first: prompt,
        last: { lc: 1, type: "constructor", id: ["x", "ChatModel"], kwargs: { temperature: 0 } },
      },
    };
    await client.pushPrompt(name, { object: sequence });
    expect((await client.pullPromptCommit(name, { skipCache: true })).manifest).toEqual(prompt);
    const whole = await client.pullPromptCommit(name, { includeModel: true, skipCache: true });
    expect(whole.manifest).toEqual(sequence);
  });

  it("have tags that move", async () => {
    const name = nameOf("tagged");
    await client.createPrompt(name);
    const first = (await commit(name, "a")).body.commit;
    const second = (await commit(name, "b", first.commit_hash)).body.commit;
    const tags = `/api/v1/repos/-/${name}/tags`;
    await api.post(tags, { tag_name: "prod", commit_id: first.id });
    expect(await api.post(tags, { tag_name: "prod", commit_id: second.id })).toMatchObject({
      commit_hash: second.commit_hash,
    });
    expect(await api.get(tags)).toMatchObject([{ tag_name: "prod", commit_id: second.id }]);
    expect((await pull(name, "prod")).body.commit_hash).toBe(second.commit_hash);
    expect((await api.get(`/api/v1/commits/-/${name}?tag=prod`)).commits).toMatchObject([{ id: second.id }]);
    expect((await api.send("POST", tags, { tag_name: "latest", commit_id: first.id })).status).toBe(422);
    await api.call("DELETE", `${tags}/prod`);
    expect((await pull(name, "prod")).status).toBe(404);
    expect((await api.send("DELETE", `${tags}/prod`)).status).toBe(404);
  });

  it("are searched, archived, liked, updated and deleted", async () => {
    const word = unique();
    const [one, two] = [`one-${word}`, `two-${unique()}`];
    await client.createPrompt(one, { tags: ["red", "blue"] });
    await client.createPrompt(two, { description: `about ${word.toUpperCase()}`, tags: ["red"] });
    const found = async (query = "") =>
      (await api.get(`/api/v1/repos/?query=${word}&sort_direction=asc${query}`)).repos.map(
        (repo: Wire) => repo.repo_handle,
      );
    expect(await found()).toEqual([one, two]);
    expect(await found("&tags=red&tags=blue")).toEqual([one]);
    expect(await found("&has_commits=true")).toEqual([]);
    expect(await found("&is_public=true")).toEqual([]);
    expect(await found("&limit=1&offset=1")).toEqual([two]);

    expect(await client.likePrompt(two)).toEqual({ likes: 1 });
    expect(await client.likePrompt(two)).toEqual({ likes: 1 });
    expect(await found("&sort_field=num_likes")).toEqual([one, two]);
    expect(await client.getPrompt(two)).toMatchObject({ num_likes: 1, liked_by_auth_user: true });
    expect(await client.unlikePrompt(two)).toEqual({ likes: 0 });

    await client.updatePrompt(one, { isArchived: true, readme: "# One" });
    expect(await client.getPrompt(one)).toMatchObject({ is_archived: true, readme: "# One", tags: ["red", "blue"] });
    expect(await found("&is_archived=false")).toEqual([two]);
    expect(await found("&is_archived=true")).toEqual([one]);

    await client.pushPrompt(one, { object: manifest("x"), commitTags: "t" });
    await client.deletePrompt(one);
    expect(await client.promptExists(one)).toBe(false);
    await client.createPrompt(one);
    expect((await pull(one, "latest")).status).toBe(404);
  });

  it("are refused with a reason if they are public, too large, misnamed, or exist", async () => {
    const name = nameOf("refused");
    await expect(client.createPrompt(name, { isPublic: true })).rejects.toThrow(
      /prompts are visible only in their workspace/,
    );
    await client.createPrompt(name);
    await expect(client.createPrompt(name)).rejects.toThrow(/already exists/);
    await expect(client.updatePrompt(name, { isPublic: true })).rejects.toThrow(
      /prompts are visible only in their workspace/,
    );
    for (const repo_handle of ["", "a b", "a:b", "a/b", "-", "é"])
      expect([repo_handle, (await api.send("POST", "/repos/", { repo_handle })).status]).toEqual([repo_handle, 422]);
    const large = { manifest: { text: "x".repeat(2_100_000) } };
    const answer = await api.send("POST", `/commits/-/${name}`, large);
    expect(answer).toMatchObject({
      status: 422,
      body: { detail: expect.stringContaining("The JSON text of the manifest is larger") },
    });
    expect((await api.send("POST", `/commits/-/${name}`, { manifest: [] })).status).toBe(422);
    expect((await api.send("GET", `/commits/-/${name}/%00`)).status).toBe(404);
    expect((await api.send("POST", `/repos/-/${name}/tags`, { tag_name: "a:b", commit_id: "x" })).status).toBe(422);
  });
});
