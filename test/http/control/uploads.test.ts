import { createHash, randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import http from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { SourceUploadRow } from "../../../src/control-plane/storage/schema.ts";
import { Uploads } from "../../../src/control-plane/uploads.ts";
import { databases } from "../../support/databases.ts";
import { startService } from "../../support/service.ts";
import { until } from "../../support/until.ts";
import { ControlApi, empty, ofImage, type User, type Wire } from "./api.ts";

const LIMIT = 300_000;

describe.each(databases)("an upload of source on %s", (database) => {
  let api: ControlApi;
  let ada: User;
  let made: Wire;
  let folder: string;
  let origin: string;
  beforeAll(async () => {
    api = await ControlApi.start(database, { THREADMILL_MAX_SOURCE: String(LIMIT) });
    ada = await api.user();
    made = await ada.call("POST", "/v2/deployments", empty(), 201);
    folder = join(api.service.config.data_dir, "control", "uploads");
    origin = await api.service.listen();
  });
  afterAll(() => api.stop());

  const begin = (of = made): Promise<Wire> => ada.call("POST", `/v2/deployments/${of.id}/upload-url`);
  /** The URL as a client on a socket reaches it. */
  const at = (url: string) => url.replace(/^http:\/\/localhost/, origin);
  const put = (url: string, body: string | Buffer, headers: Record<string, string> = {}) =>
    fetch(at(url), { method: "PUT", body: body as never, headers: { "content-type": "application/gzip", ...headers } });
  const files = () => (existsSync(folder) ? readdirSync(folder).sort() : []);
  const rowOf = ({ object_path }: Wire): Promise<SourceUploadRow> => {
    const { read } = api.storage;
    const query = read.k.selectFrom("source_uploads").selectAll().where("object_path", "=", object_path);
    return read.first(query) as Promise<SourceUploadRow>;
  };
  const fileOf = async (upload: Wire) => readFileSync(new Uploads(options()).fileOf(await rowOf(upload)));
  const options = () => ({ database: api.storage, folder, limit_bytes: LIMIT, ttl_ms: 3_600_000 });
  const expire = ({ object_path }: Wire) =>
    api.storage.write((tx) =>
      tx.run(tx.k.updateTable("source_uploads").set({ expires_at: 1 }).where("object_path", "=", object_path)),
    );

  it("is sent to the requested URL without a key, and can then be deployed", async () => {
    const upload = await begin();
    expect(Object.keys(upload)).toEqual(["upload_url", "object_path"]);
    expect(upload.object_path).toMatch(/^uploads\/[0-9a-f-]{36}\.tar\.gz$/);
    expect(upload.upload_url).toMatch(
      new RegExp(`^http://localhost/v2/${upload.object_path.replaceAll(".", "\\.")}\\?token=[\\w-]{43}$`),
    );
    const bytes = randomBytes(200_000);
    const answer = await put(upload.upload_url, bytes, { "x-goog-content-length-range": "0,209715200" });
    const sha256 = createHash("sha256").update(bytes).digest("hex");
    const { object_path } = upload;
    expect([answer.status, await answer.json()]).toEqual([200, { object_path, size_bytes: 200_000, sha256 }]);
    expect(await rowOf(upload)).toMatchObject({ size_bytes: 200_000, sha256, deployment_id: made.id });
    expect((await fileOf(upload)).equals(bytes)).toBe(true);
    const body = {
      revision_source: "internal_source",
      source_revision_config: { source_tarball_path: object_path, langgraph_config_path: "langgraph.json" },
      secrets: [],
      tracked_packages: [],
    };
    const patched = await ada.call("PATCH", `/v2/deployments/${made.id}`, body);
    expect(patched.latest_revision_id).toEqual(expect.any(String));
    expect(patched.source_revision_config).toMatchObject(body.source_revision_config);
  });

  it("may come from a page, which sends its origin", async () => {
    const { upload_url } = await begin();
    expect((await put(upload_url, "a tarball", { origin })).status).toBe(200);
  });

  it("has a URL below the mount of the request, or below the public address", async () => {
    const upload = await ada.call("POST", `/api-host/v2/deployments/${made.id}/upload-url`);
    expect(upload.upload_url).toMatch(/^http:\/\/localhost\/api-host\/v2\/uploads\//);
    expect((await put(upload.upload_url, "x")).status).toBe(200);
    const known = await startService({
      database,
      config: "test/graphs/scenarios/langgraph.json",
      env: { THREADMILL_PUBLIC_URL: "https://threadmill.example.com/base", MOUNT_PREFIX: "/base" },
    });
    const { body } = await known.request("POST", "/base/v2/deployments", empty());
    expect(body.source_config.custom_url).toMatch(/^https:\/\/threadmill\.example\.com\/base\/deployments\/empty-/);
    const { upload_url } = (await known.request("POST", `/base/api-host/v2/deployments/${body.id}/upload-url`)).body;
    expect(upload_url).toMatch(/^https:\/\/threadmill\.example\.com\/base\/api-host\/v2\/uploads\//);
    await known.stop();
  });

  it("counts once: a second one is refused, and the first one stays", async () => {
    const upload = await begin();
    expect((await put(upload.upload_url, "first")).status).toBe(200);
    for (const body of ["second", "first"]) {
      const again = await put(upload.upload_url, body);
      expect([again.status, await again.json()]).toEqual([
        403,
        { detail: expect.stringContaining("was already used") },
      ]);
    }
    expect((await fileOf(upload)).toString()).toBe("first");
  });

  it.each([["different ones"], ["the same"]])("is one of ten that arrive at once: %s", async (which) => {
    const upload = await begin();
    const before = files().length;
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, i) => put(upload.upload_url, which === "the same" ? "same" : `body ${i}`)),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(9).fill(403)]);
    const winner = (await answers.find(({ status }) => status === 200)?.json()) as Wire;
    const bytes = await fileOf(upload);
    expect(createHash("sha256").update(bytes).digest("hex")).toBe(winner.sha256);
    expect(files()).toHaveLength(before + 1);
  });

  it("is refused with another token, without a token, for an unknown upload, and after an hour", async () => {
    const [upload, other, late] = [await begin(), await begin(), await begin()];
    await expire(late);
    const before = files();
    const token = new URL(other.upload_url).searchParams.get("token");
    for (const url of [
      upload.upload_url.replace(/token=.*/, `token=${token}`),
      upload.upload_url.replace(/.$/, (last: string) => (last === "A" ? "B" : "A")),
      upload.upload_url.replace(/\?.*/, ""),
      upload.upload_url.replace(/\?.*/, "?token="),
      upload.upload_url.replace(/uploads\/[^?]+/, "uploads/nobody"),
      upload.upload_url.replace(/uploads\/[^?]+/, "uploads/..%2f..%2fthreadmill.db"),
      late.upload_url,
    ]) {
      const answer = await put(url, "x");
      expect([url, answer.status, await answer.json()]).toEqual([url, 403, { detail: expect.any(String) }]);
    }
    expect(files()).toEqual(before);
    expect((await put(upload.upload_url, "x")).status).toBe(200);
  });

  it("that is empty, or longer than allowed, leaves nothing, and may be sent again", async () => {
    const upload = await begin();
    const before = files();
    const none = await put(upload.upload_url, "");
    expect([none.status, await none.json()]).toEqual([400, { detail: expect.stringContaining("0 of") }]);
    const declared = await put(upload.upload_url, randomBytes(LIMIT + 1)).catch(() => undefined);
    if (declared) expect(declared.status).toBe(413);
    expect(await statusOf(at(upload.upload_url), { parts: 40 })).toBe(413);
    await until("nothing is left", async () => files().length === before.length);
    expect((await put(upload.upload_url, randomBytes(LIMIT))).status).toBe(200);
  });

  it("that is interrupted in the middle is discarded", async () => {
    for (const declares of [true, false]) {
      const upload = await begin();
      const before = files();
      await cutInTheMiddle(at(upload.upload_url), declares);
      await until("its part is gone", async () => files().length === before.length);
      expect(await rowOf(upload)).toMatchObject({ size_bytes: null, sha256: null });
      const body = { source_revision_config: { source_tarball_path: upload.object_path } };
      expect((await ada.send("PATCH", `/v2/deployments/${made.id}`, body)).status).toBe(400);
      expect((await put(upload.upload_url, "whole")).status).toBe(200);
    }
  });

  /** Sends a part, waits until it is there, and hangs up. */
  async function cutInTheMiddle(url: string, declares: boolean): Promise<void> {
    const before = files().length;
    const request = http.request(url, { method: "PUT", headers: declares ? { "content-length": 100_000 } : {} });
    request.on("error", () => undefined);
    request.write(randomBytes(50_000));
    await until("a part has been written", async () => files().length > before);
    request.destroy();
  }

  /** The answer to a body whose length nobody says. */
  function statusOf(url: string, { parts }: { parts: number }): Promise<number | undefined> {
    return new Promise((resolve) => {
      const request = http.request(url, { method: "PUT" }, (response) => {
        response.resume();
        resolve(response.statusCode);
      });
      request.on("error", () => undefined);
      for (let i = 0; i < parts; i++) request.write(randomBytes(10_000));
      request.end();
    });
  }

  it("is refused for a deployment with external images, and for another deployment", async () => {
    const image = await ada.call("POST", "/v2/deployments", ofImage(), 201);
    const refused = await ada.send("POST", `/v2/deployments/${image.id}/upload-url`);
    expect([refused.status, refused.body.detail]).toEqual([400, expect.stringContaining("external_docker")]);
    const upload = await begin();
    await put(upload.upload_url, "x");
    const other = await ada.call("POST", "/v2/deployments", empty(), 201);
    const body = { source_revision_config: { source_tarball_path: upload.object_path } };
    const answer = await ada.send("PATCH", `/v2/deployments/${other.id}`, body);
    expect([answer.status, answer.body.detail]).toEqual([
      400,
      expect.stringContaining("This deployment has no uploaded tarball"),
    ]);
  });

  it("is deleted when it has expired and no revision needs it, with all unknown files in the folder", async () => {
    const deployment = await ada.call("POST", "/v2/deployments", empty(), 201);
    const uploads: Wire = {};
    for (const name of ["older", "newest", "unused", "unsent"]) uploads[name] = await begin(deployment);
    for (const name of ["older", "newest", "unused"]) await put(uploads[name].upload_url, name);
    for (const name of ["older", "newest"]) {
      const source_revision_config = { source_tarball_path: uploads[name].object_path };
      const { latest_revision_id } = await ada.call("PATCH", `/v2/deployments/${deployment.id}`, {
        source_revision_config,
      });
      await api.become(latest_revision_id, "DEPLOYED");
    }
    mkdirSync(folder, { recursive: true });
    const old = new Date(Date.now() - 7_200_000);
    for (const name of ["left.part", "01a1ffcd-a589-760f-9ed3-9d1da9654eed_00.tar.gz"]) {
      writeFileSync(join(folder, name), "x");
      utimesSync(join(folder, name), old, old);
    }
    writeFileSync(join(folder, "new.part"), "x");
    for (const upload of Object.values(uploads)) await expire(upload);
    const kept = await fileOf(uploads.newest);
    await new Uploads(options()).deleteExpired();
    expect((await Promise.all(Object.values(uploads).map(rowOf))).map((row) => row !== undefined)).toEqual([
      false,
      true,
      false,
      false,
    ]);
    expect((await fileOf(uploads.newest)).equals(kept)).toBe(true);
    expect(files().filter((name) => /left|01a1ffcd-a589/.test(name))).toEqual([]);
    expect(files()).toContain("new.part");
    await new Uploads(options()).removeOf(deployment.id);
    expect(await rowOf(uploads.newest)).toBeUndefined();
    expect(files().filter((name) => name.includes(uploads.newest.object_path.slice(8, 44)))).toEqual([]);
  });
});
