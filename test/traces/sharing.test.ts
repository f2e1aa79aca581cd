import { randomUUID } from "node:crypto";
import { Client } from "langsmith";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { experimentOf } from "../experiments/experiment.ts";
import { closedService, newCaller, newWorkspace } from "../http/callers.ts";
import type { Scenario } from "../http/scenario.ts";
import { databases } from "../support/databases.ts";
import { partsOf, run, type TestRun, TraceClient } from "./trace-client.ts";

describe.each(databases)("a shared run on %s", (database) => {
  let api: Scenario;
  let key: { "X-Api-Key": string };
  let own: TraceClient;
  let stranger: TraceClient;
  let visitor: TraceClient;
  let client: Client;
  beforeAll(async () => {
    api = await closedService(database);
    const tenant_id = await newWorkspace(api);
    key = await newCaller(api, { tenant_id });
    own = new TraceClient(api.service, key);
    stranger = new TraceClient(api.service, await newCaller(api, { tenant_id: await newWorkspace(api) }));
    visitor = new TraceClient(api.service);
    client = new Client({
      apiUrl: `${await api.service.listen()}/api/v1`,
      apiKey: key["X-Api-Key"],
      webUrl: "https://w",
    });
  });
  afterAll(() => api.stop());

  /** A root with two children, the first of which has a child and an attachment; and a run of another trace. */
  async function trace() {
    const root = run({ name: "root", session_name: randomUUID() });
    const rest = { session_name: root.session_name };
    const first = run({ ...rest, at: 1, name: "first", parent: root });
    const leaf = run({ ...rest, at: 2, name: "leaf", parent: first });
    const second = run({ ...rest, at: 3, name: "second", parent: root });
    const other = run({ ...rest, at: 4, name: "other" });
    const attachment = { [`attachment.${first.id}.a file`]: [Buffer.from("<b>"), "text/html"] };
    const all = [root, first, leaf, second, other];
    expect((await own.sendParts({ ...partsOf("post", all), ...attachment })).status).toBe(202);
    return { root, first, leaf, second, other };
  }

  const share = async ({ id }: TestRun, token = randomUUID()): Promise<string> => {
    const body = JSON.stringify({ run_id: id, share_token: token });
    const answer = await own.send("PUT", `/api/v1/runs/${id}/share`, body, { "content-type": "text/plain" });
    expect(answer).toMatchObject({ status: 200, body: { run_id: id, share_token: token } });
    return token;
  };
  const idsOf = (runs: { id: string }[]) => runs.map(({ id }) => id).sort();
  const queried = async (token: string, body = {}) =>
    idsOf((await visitor.json("POST", `/api/v1/public/${token}/runs/query`, body)).body.runs);

  it("is read without a key: of a root the whole trace, of another run those below it", async () => {
    const { root, first, leaf, second, other } = await trace();
    const [whole, part] = [await share(root), await share(first)];
    expect((await visitor.get(`/public/${whole}/run`)).body).toMatchObject({
      id: root.id,
      inputs: root.inputs,
      outputs: root.outputs,
      share_token: whole,
      child_run_ids: [first.id, leaf.id, second.id],
      app_path: `/public/${whole}/r`,
    });
    expect((await visitor.get(`/public/${part}/run`)).body).toMatchObject({ id: first.id, child_run_ids: [leaf.id] });
    expect(await queried(whole)).toEqual(idsOf([root, first, leaf, second]));
    expect(await queried(part)).toEqual(idsOf([first, leaf]));
    expect((await visitor.get(`/public/${whole}/run/${leaf.id}`)).body).toMatchObject({
      name: "leaf",
      share_token: null,
    });
    expect((await visitor.get(`/public/${part}/run/${leaf.id}`)).status).toBe(200);
    for (const [token, hidden] of [
      [whole, other],
      [part, root],
      [part, second],
    ] as const) {
      expect((await visitor.get(`/public/${token}/run/${hidden.id}`)).status).toBe(404);
      expect(await queried(token, { id: [hidden.id] })).toEqual([]);
      expect(await queried(token, { trace: other.id })).toEqual([]);
    }
    expect(await own.read(root.id)).toMatchObject({ share_token: whole });
    expect((await own.query({ trace: root.id, filter: 'eq(name, "first")' }))[0].share_token).toBe(part);
  });

  it("is filtered and read in pages as other runs are", async () => {
    const { root, first, leaf } = await trace();
    const token = await share(root);
    expect(await queried(token, { filter: 'eq(name, "leaf")' })).toEqual([leaf.id]);
    const page = async (body: object) =>
      (await visitor.json("POST", `/public/${token}/runs/query`, { order: "asc", limit: 2, ...body })).body;
    const { runs, cursors } = await page({ select: ["name"] });
    expect(runs).toMatchObject([{ id: root.id }, { id: first.id }]);
    expect(runs[0].inputs).toBeUndefined();
    expect((await page({ cursor: cursors.next })).runs[0].id).toBe(leaf.id);
  });

  it("answers no question about the rest of its trace", async () => {
    const { root, first, leaf } = await trace();
    const [whole, part] = [await share(root), await share(first)];
    const tree_filter = 'eq(name, "second")';
    expect(await queried(whole, { filter: 'eq(name, "leaf")', tree_filter })).toEqual([leaf.id]);
    expect(await queried(part, { tree_filter })).toEqual([]);
    expect(await queried(part, { trace_filter: 'eq(name, "root")' })).toEqual([]);
    expect(await queried(part, { tree_filter: 'eq(name, "leaf")' })).toEqual(idsOf([first, leaf]));
  });

  it("shows its attachments as downloads until it is not shared any more", async () => {
    const { root, first, second } = await trace();
    const token = await share(root);
    const { s3_urls } = (await visitor.get(`/public/${token}/run/${first.id}`)).body;
    const { presigned_url, mime_type } = s3_urls["attachment.a file"];
    expect(mime_type).toBe("text/html");
    const { pathname } = new URL(presigned_url);
    const answer = await api.service.request("GET", pathname);
    expect([
      answer.text,
      answer.headers.get("content-disposition"),
      answer.headers.get("content-security-policy"),
    ]).toEqual(["<b>", "attachment; filename*=UTF-8''a%20file", "sandbox"]);
    expect((await api.service.request("GET", pathname.replace(first.id, second.id))).status).toBe(404);

    expect((await own.send("DELETE", `/api/v1/runs/${root.id}/share`, "")).status).toBe(200);
    expect((await api.service.request("GET", pathname)).status).toBe(404);
    expect((await visitor.get(`/public/${token}/run`)).status).toBe(404);
    expect((await visitor.json("POST", `/public/${token}/runs/query`, {})).status).toBe(404);
    expect((await own.get(`/runs/${root.id}/share`)).body).toEqual({});
    expect((await own.read(root.id)).share_token).toBeNull();
  });

  it("keeps its first token, and no two runs have the same", async () => {
    const { root, other } = await trace();
    const token = await share(root);
    const again = await own.json("PUT", `/runs/${root.id}/share`, { share_token: randomUUID() });
    expect(again.body).toEqual({ run_id: root.id, share_token: token });
    expect((await own.get(`/runs/${root.id}/share`)).body).toEqual({ run_id: root.id, share_token: token });
    expect((await own.json("PUT", `/runs/${other.id}/share`, { share_token: token })).status).toBe(409);
    expect((await own.json("PUT", `/runs/${other.id}/share`, { share_token: "guessable" })).status).toBe(422);
    const made = (await own.json("PUT", `/runs/${other.id}/share`, {})).body.share_token;
    expect((await visitor.get(`/public/${made}/run`)).body.id).toBe(other.id);
  });

  it("is not shared in another workspace that has a run with the same id", async () => {
    const { root } = await trace();
    const token = await share(root);
    await stranger.post(run({ id: root.id, name: "theirs" }), run({ name: "unseen" }));
    expect((await stranger.get(`/runs/${root.id}/share`)).body).toEqual({});
    expect((await visitor.get(`/public/${token}/run`)).body.name).toBe("root");
    const unknown = run();
    await own.post(unknown);
    for (const [method, body] of [
      ["PUT", "{}"],
      ["DELETE", ""],
    ] as const)
      expect((await stranger.send(method, `/runs/${unknown.id}/share`, body)).status).toBe(404);
    expect((await stranger.get(`/runs/${unknown.id}/share`)).status).toBe(404);
    for (const path of ["run", "run/x", "runs"])
      expect((await visitor.get(`/public/${randomUUID()}/${path}`)).status).toBe(path === "run/x" ? 422 : 404);
  });

  it("is closed with its session", async () => {
    const { root } = await trace();
    const token = await share(root);
    const { session_id } = await own.read(root.id);
    expect((await own.send("DELETE", `/sessions/${session_id}`, "")).status).toBe(200);
    await own.post(root);
    expect((await visitor.get(`/public/${token}/run`)).status).toBe(404);
    expect((await own.get(`/runs/${root.id}/share`)).body).toEqual({});
  });

  it("may be the row of an uploaded experiment", async () => {
    const upload = { ...experimentOf(2, () => []), dataset_id: undefined, dataset_name: randomUUID() };
    const { experiment } = (await own.json("POST", "/datasets/upload-experiment", upload)).body;
    const [first, second] = await own.query({ session: [experiment.id] });
    const token = await share(first);
    expect((await visitor.get(`/public/${token}/run`)).body).toMatchObject({ id: first.id, share_token: token });
    expect(await queried(token)).toEqual([first.id]);
    expect((await visitor.get(`/public/${token}/run/${second.id}`)).status).toBe(404);
    await own.send("DELETE", `/sessions/${experiment.id}`, "");
    expect((await visitor.get(`/public/${token}/run`)).status).toBe(404);
  });

  it("is shared, read and closed with the JavaScript client", async () => {
    const { root, first, leaf } = await trace();
    const { session_id } = await own.read(root.id);
    const link = await client.shareRun(root.id);
    const [, token] = /^https:\/\/w\/public\/([0-9a-f-]{36})\/r$/.exec(link) as unknown as [string, string];
    expect(await client.readRunSharedLink(root.id)).toBe(link);
    expect(idsOf(await client.listSharedRuns(token))).toHaveLength(4);
    expect(idsOf(await client.listSharedRuns(token, { runIds: [first.id, leaf.id] }))).toEqual(idsOf([first, leaf]));
    await client.unshareRun(root.id);
    expect(await client.readRunSharedLink(root.id)).toBeUndefined();

    const created = await client.runs.share.create(leaf.id, { session_id, trace_id: root.id });
    const share_token = created.share_token as string;
    const { items = [] } = await client.public.runs.query(share_token, { selects: ["NAME", "PARENT_RUN_IDS"] });
    expect(items.map(({ name }) => name)).toEqual(["root", "first", "leaf", "second"]);
    expect(items[2]).toEqual({ id: leaf.id, name: "leaf", parent_run_ids: [root.id, first.id] });
    const read = { share_token, start_time: leaf.start_time, selects: ["NAME", "INPUTS"] };
    expect(await client.public.runs.retrieve(leaf.id, read)).toEqual({ id: leaf.id, name: "leaf" });
    const selected = await client.runs.retrieve(root.id, { project_id: session_id, selects: ["SHARE_URL"] });
    expect(selected.share_url).toMatch(new RegExp(`^http://.*/public/${share_token}/r$`));
    await client.runs.share.delete(root.id, { session_id });
    await expect(client.public.runs.query(share_token, {})).rejects.toThrow("404");
  });
});
