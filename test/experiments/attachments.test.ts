import { join } from "node:path";
import { sql } from "kysely";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { signAttachmentLink } from "../../src/experiments/attachment-links.ts";
import { openPostgres } from "../../src/platform/database/postgres/postgres.ts";
import { openSqlite } from "../../src/platform/database/sqlite/sqlite.ts";
import { systemClock } from "../../src/platform/lib/clock.ts";
import { createLog } from "../../src/platform/lib/log.ts";
import { databases } from "../support/databases.ts";
import { startService, type TestService } from "../support/service.ts";
import { multipart, run, TraceClient } from "../traces/trace-client.ts";
import { type Anything, apiOf, query, unique } from "./query/api.ts";

const HOUR_MS = 60 * 60 * 1000;

/** The secret of an attachment, read beside the service. */
async function secretOf({ database: { url, data_dir } }: TestService, table: string, id: string): Promise<string> {
  const database = url
    ? openPostgres({ url, log: createLog("silent") })
    : openSqlite({ file: join(data_dir, "experiments.db"), synchronous: "normal", clock: systemClock });
  try {
    const query = sql<{ token: string }>`select token from ${sql.table(table)} where token like ${`${id}%`}`;
    const [row] = (await database.read.all(query.compile(database.read.k))) as { token: string }[];
    return row?.token as string;
  } finally {
    await database.close();
  }
}

const BYTES = Uint8Array.from({ length: 1000 }, (_, index) => (index * 7) % 256);

describe.each(databases)("attachments of examples on %s", (database) => {
  let service: TestService;
  beforeAll(async () => {
    service = await startService({ database, config: "examples/langgraph.json" });
  });
  afterAll(() => service.stop());
  const api = apiOf(() => service);

  const newDataset = async () => (await api.ok("POST", "/datasets", { name: unique() })).id as string;
  const send = async (method: string, path: string, parts: Record<string, unknown>) => {
    const headers = { "content-type": "multipart/form-data; boundary=----boundary" };
    const request = new Request(`http://localhost/v1/platform${path}`, {
      method,
      headers,
      body: new Uint8Array(multipart(parts)),
    });
    const response = await service.threadmill.fetch(request);
    return { status: response.status, body: (await response.json()) as Anything };
  };
  const newExample = async (attachments: Record<string, [Uint8Array, string]>, dataset?: string) => {
    const [dataset_id, id] = [dataset ?? (await newDataset()), unique()];
    const parts = Object.entries(attachments).map(([name, part]) => [`${id}.attachment.${name}`, part]);
    const all = { [id]: {}, [`${id}.inputs`]: { a: 1 }, ...Object.fromEntries(parts) };
    const answer = await send("POST", `/datasets/${dataset_id}/examples`, all);
    return { dataset_id, id, path: `/datasets/${dataset_id}/examples`, ...answer };
  };
  const namesOf = async (id: string, as_of = "latest") =>
    Object.keys((await api.get(`/examples/${id}${query({ as_of })}`)).attachment_urls ?? {}).map((name) =>
      name.slice(11),
    );
  const download = async (url: string) => {
    const response = await service.threadmill.fetch(new Request(url));
    return {
      status: response.status,
      type: response.headers.get("content-type"),
      bytes: new Uint8Array(await response.arrayBuffer()),
    };
  };

  it("come back byte by byte, under an address that needs no key", async () => {
    const { id, status, body } = await newExample({
      "a picture.png": [BYTES, "image/png"],
      empty: [new Uint8Array(), "text/plain"],
    });
    expect([status, body]).toEqual([201, { count: 1, example_ids: [id], as_of: expect.any(String) }]);
    const { attachment_urls } = await api.get(`/examples/${id}`);
    const picture = attachment_urls["attachment.a picture.png"];
    expect(picture).toEqual({
      mime_type: "image/png",
      presigned_url: expect.stringMatching(/\/public\/attachments\/[0-9a-f]{16}\.\d+\.[0-9a-f]{32}$/),
    });
    expect(await download(picture.presigned_url)).toEqual({ status: 200, type: "image/png", bytes: BYTES });
    expect((await download(attachment_urls["attachment.empty"].presigned_url)).bytes).toHaveLength(0);
    expect((await download(picture.presigned_url.slice(0, -1))).status).toBe(404);
  });

  it("can be downloaded for a day with a link that cannot be changed", async () => {
    const { id } = await newExample({ a: [BYTES, "image/png"] });
    const traced = run();
    await new TraceClient(service).sendParts({
      [`post.${traced.id}`]: traced,
      [`attachment.${traced.id}.a`]: [BYTES, "image/png"],
    });
    const urls = [
      (await api.get(`/examples/${id}`)).attachment_urls["attachment.a"].presigned_url as string,
      (await api.get(`/runs/${traced.id}`)).s3_urls["attachment.a"].presigned_url as string,
    ];
    for (const [index, url] of urls.entries()) {
      const link = url.split("/").at(-1) as string;
      const [secret_id = "", expires_s = ""] = link.split(".");
      const left_s = Number(expires_s) - Date.now() / 1000;
      expect([left_s > 24 * 3600 - 60, left_s <= 25 * 3600]).toEqual([true, true]);
      const open = async (other: string) => (await download(url.replace(link, other))).status;
      expect(await open(link.replace(expires_s, String(Number(expires_s) + 3600)))).toBe(404);
      expect(await open(link.replace(/.$/, (last) => (last === "0" ? "1" : "0")))).toBe(404);
      expect(await open(secret_id)).toBe(404);
      const secret = await secretOf(service, index === 0 ? "example_attachments" : "trace_attachments", secret_id);
      expect(await open(signAttachmentLink(secret, Date.now() - 23 * HOUR_MS))).toBe(200);
      const expired = await service.request(
        "GET",
        `/public/attachments/${signAttachmentLink(secret, Date.now() - 25 * HOUR_MS)}`,
      );
      expect(expired).toMatchObject({ status: 410, body: { detail: expect.stringContaining("has expired") } });
    }
    expect((await download(urls[1] as string)).bytes).toEqual(BYTES);
  });

  it("may have a name or a type with any character", async () => {
    const { id, status } = await newExample({ "a\0b": [BYTES, "text/\0plain"] });
    expect([status, await namesOf(id)]).toEqual([201, ["a\ufffdb"]]);
  });

  it("are in a list when they are selected", async () => {
    const { dataset_id } = await newExample({ one: [BYTES, "image/png"] });
    await newExample({ two: [BYTES, "image/png"] }, dataset_id);
    const names = async (select: string[]) =>
      (await api.get(`/examples${query({ dataset: dataset_id, select })}`)).map((example: Anything) =>
        Object.keys(example.attachment_urls ?? {}),
      );
    expect((await names(["attachment_urls"])).sort()).toEqual([["attachment.one"], ["attachment.two"]]);
    expect(await names(["outputs"])).toEqual([[], []]);
    const [bare] = await api.get(
      `/examples${query({ dataset: dataset_id, select: ["outputs"], exclude_default_fields: true })}`,
    );
    expect(Object.keys(bare).sort()).toEqual(["id", "outputs"]);
  });

  it("are kept, renamed, replaced and removed by updates, and stay in older versions", async () => {
    const { id, path, body } = await newExample({
      a: [BYTES, "image/png"],
      b: [BYTES, "image/png"],
      c: [BYTES, "image/png"],
    });
    const patch = (parts: Record<string, unknown>) => send("PATCH", path, { [id]: {}, ...parts });
    await patch({ [`${id}.outputs`]: { done: true } });
    expect(await namesOf(id)).toEqual(["a", "b", "c"]);
    const operations = { retain: ["a"], rename: { b: "renamed" } };
    expect(
      (
        await patch({
          [`${id}.attachments_operations`]: operations,
          [`${id}.attachment.new`]: [BYTES.slice(1), "text/plain"],
        })
      ).status,
    ).toBe(200);
    expect(await namesOf(id)).toEqual(["a", "new", "renamed"]);
    expect(await namesOf(id, body.as_of)).toEqual(["a", "b", "c"]);
    const { attachment_urls } = await api.get(`/examples/${id}`);
    expect((await download(attachment_urls["attachment.renamed"].presigned_url)).bytes).toEqual(BYTES);
    await patch({ [`${id}.attachment.a`]: [Uint8Array.of(1), "text/plain"] });
    const replaced = (await api.get(`/examples/${id}`)).attachment_urls["attachment.a"];
    expect(await download(replaced.presigned_url)).toEqual({
      status: 200,
      type: "text/plain",
      bytes: Uint8Array.of(1),
    });
    expect(await namesOf(id)).toEqual(["a", "new", "renamed"]);
  });

  it("are not renamed or kept when they do not exist, or when two would have one name", async () => {
    const { id, path } = await newExample({ a: [BYTES, "image/png"], b: [BYTES, "image/png"] });
    const refusals = [
      { retain: ["x"] },
      { rename: { x: "y" } },
      { retain: ["a"], rename: { b: "a" } },
      { rename: { a: "" } },
    ];
    for (const operations of refusals) {
      const { status, body } = await send("PATCH", path, { [id]: {}, [`${id}.attachments_operations`]: operations });
      expect([operations, status, body.detail[0].loc.slice(0, 3)]).toEqual([
        operations,
        422,
        ["body", id, "attachments_operations"],
      ]);
    }
    const bad = await send("PATCH", path, { [id]: {}, [`${id}.attachment.`]: [BYTES, "image/png"] });
    expect([bad.status, bad.body.detail[0].loc]).toEqual([422, ["body", `${id}.attachment.`]]);
    expect(await namesOf(id)).toEqual(["a", "b"]);
  });

  it("are at most 100, and are not those of an example that was deleted before", async () => {
    const hundred = Object.fromEntries(
      Array.from({ length: 100 }, (_, n) => [`a${n}`, [BYTES, "image/png"] as [Uint8Array, string]]),
    );
    const { id, path, dataset_id, status } = await newExample(hundred);
    expect(status).toBe(201);
    const more = await send("PATCH", path, { [id]: {}, [`${id}.attachment.more`]: [BYTES, "image/png"] });
    expect([more.status, more.body.detail[0].msg]).toEqual([422, expect.stringContaining("at most 100 attachments")]);
    expect((await send("PATCH", path, { [id]: {}, [`${id}.attachment.a0`]: [BYTES, "image/png"] })).status).toBe(200);
    await api.ok("DELETE", `/examples/${id}`);
    await api.ok("POST", "/examples", { dataset_id, id, inputs: { again: 1 } });
    expect(await namesOf(id)).toEqual([]);
  });

  it("are deleted with their dataset, and when their example is erased", async () => {
    const one = await newExample({ a: [BYTES, "image/png"] });
    const two = await newExample({ a: [BYTES, "image/png"] });
    const urls = [];
    for (const { id } of [one, two])
      urls.push((await api.get(`/examples/${id}`)).attachment_urls["attachment.a"].presigned_url);
    await api.ok("DELETE", `/datasets/${one.dataset_id}`);
    await service.request("POST", "/v1/platform/datasets/examples/delete", {
      example_ids: [two.id],
      hard_delete: true,
    });
    for (const url of urls) expect((await download(url)).status).toBe(404);
  });

  it("and inputs and outputs are copied from the run that an example names", async () => {
    const traces = new TraceClient(service);
    const source = run({ inputs: { q: 1 }, outputs: { a: 2 } });
    await traces.sendParts({
      [`post.${source.id}`]: source,
      [`attachment.${source.id}.pic`]: [BYTES, "image/png"],
      [`attachment.${source.id}.other`]: [BYTES, "text/plain"],
    });
    const dataset_id = await newDataset();
    const create = (body: object) => api.send("POST", "/examples", { dataset_id, source_run_id: source.id, ...body });
    const whole = (await create({ use_source_run_io: true })).body;
    expect(whole).toMatchObject({ inputs: { q: 1 }, outputs: { a: 2 }, source_run_id: source.id });
    expect(await namesOf(whole.id)).toEqual(["other", "pic"]);
    expect((await download(whole.attachment_urls["attachment.pic"].presigned_url)).bytes).toEqual(BYTES);
    const own = (await create({ inputs: { own: 1 }, use_source_run_attachments: ["pic"] })).body;
    expect([own.inputs, own.outputs, await namesOf(own.id)]).toEqual([{ own: 1 }, null, ["pic"]]);
    const refusals: [object, number][] = [
      [{ inputs: {}, use_source_run_attachments: ["missing"] }, 422],
      [{ use_source_run_io: true, source_run_id: unique() }, 404],
      [{ use_source_run_io: true, source_run_id: null }, 422],
      [{ inputs: {}, use_legacy_message_format: true }, 422],
      [{}, 422],
    ];
    for (const [body, status] of refusals) expect([body, (await create(body)).status]).toEqual([body, status]);
    expect((await create({ inputs: {}, use_legacy_message_format: false, use_source_run_io: false })).status).toBe(200);
  });

  it("are added and changed in one request, for new and known examples", async () => {
    const known = await newExample({ a: [BYTES, "image/png"] });
    const fresh = unique();
    const answer = await send("POST", "/examples/multipart", {
      [known.id]: { dataset_id: known.dataset_id },
      [`${known.id}.inputs`]: { a: 2 },
      [fresh]: { dataset_id: known.dataset_id, split: "new" },
      [`${fresh}.inputs`]: { b: 1 },
      [`${fresh}.attachment.b`]: [BYTES, "image/png"],
    });
    expect([answer.status, answer.body]).toEqual([
      201,
      { count: 2, example_ids: [known.id, fresh], as_of: expect.any(String) },
    ]);
    expect([(await api.get(`/examples/${known.id}`)).inputs, await namesOf(known.id), await namesOf(fresh)]).toEqual([
      { a: 2 },
      ["a"],
      ["b"],
    ]);
    const without = await send("POST", "/examples/multipart", { [unique()]: {} });
    expect([without.status, without.body.detail[0].loc[2]]).toEqual([422, "dataset_id"]);
  });
});
