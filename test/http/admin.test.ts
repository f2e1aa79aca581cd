import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ApiKey, adminRoutes, NewApiKey } from "../../src/access/contract/admin.ts";
import { DEFAULT_TENANT } from "../../src/platform/contract/caller.ts";
import { databases } from "../support/databases.ts";
import { until } from "../support/until.ts";
import { ADMIN, closedService, newCaller, newKey, newWorkspace } from "./callers.ts";
import type { Scenario, Wire } from "./scenario.ts";

describe.each(databases)("the administration on %s", (database) => {
  let api: Scenario;
  beforeAll(async () => {
    api = await closedService(database);
  });
  afterAll(() => api.stop());

  const list = (headers: Record<string, string> = ADMIN, query = ""): Promise<Wire[]> =>
    api.call("GET", `/admin/keys${query}`, undefined, headers);

  describe("keys", () => {
    it("are shown once, and listed without their secret", async () => {
      const made = await newKey(api, { user_id: "alice", scopes: ["agents", "agents", "tokens"] });
      expect(NewApiKey.parse(made)).toEqual(made);
      expect(made).toMatchObject({ name: "test", user_id: "alice", tenant_id: DEFAULT_TENANT, last_used_at: null });
      expect(made.scopes).toEqual(["agents", "tokens"]);
      expect(made.key).toMatch(/^tmk_[a-z2-7]{12}_[\w-]{43}$/);
      expect(made.key.split("_")[1]).toBe(made.id);
      const { key, ...known } = made;
      const answer = await api.send("GET", "/admin/keys", undefined, ADMIN);
      expect(answer.body[0]).toEqual(known);
      expect(ApiKey.parse(answer.body[0])).toEqual(known);
      // The secret may have a _ of its own.
      expect(answer.text).not.toContain(key.slice("tmk_".length + made.id.length + 1));
    });

    it("have the default scopes and the caller's name by default", async () => {
      expect(await newKey(api, { scopes: undefined })).toMatchObject({
        user_id: "admin",
        scopes: ["agents", "experiments", "tokens"],
      });
    });

    it("are all different", async () => {
      const keys = await Promise.all(Array.from({ length: 50 }, () => newKey(api)));
      expect(new Set(keys.map(({ id }) => id)).size).toBe(50);
      expect(new Set(keys.map(({ key }) => key.slice(17))).size).toBe(50);
    });

    it("are not stored in the database: only the response contained them", async () => {
      const { key, id } = await newKey(api);
      expect((await api.send("GET", "/app/api/session", undefined, { "X-Api-Key": key })).status).toBe(200);
      const secret = key.slice(`tmk_${id}_`.length);
      const bytes = await bytesOf(api);
      expect(bytes.includes(id)).toBe(true);
      expect(bytes.includes(secret)).toBe(false);
      expect(bytes.includes(Buffer.from(secret, "base64url"))).toBe(false);
    });

    it("end immediately and permanently when they are revoked, even repeatedly", async () => {
      const { id, key } = await newKey(api);
      const use = async () =>
        (await api.send("GET", "/app/api/session", undefined, { Authorization: `Bearer ${key}` })).status;
      expect(await use()).toBe(200);
      const revoke = () => api.send("DELETE", `/admin/keys/${id}`, undefined, ADMIN);
      expect(await revoke()).toMatchObject({ status: 204, text: "" });
      expect(await use()).toBe(401);
      const { revoked_at } = (await list()).find((known) => known.id === id);
      expect(Math.abs(Date.parse(revoked_at) - Date.now())).toBeLessThan(60_000);
      expect((await revoke()).status).toBe(204);
      expect((await list()).find((known) => known.id === id).revoked_at).toBe(revoked_at);
    });

    it("show when they were last used, to the minute", async () => {
      const { id, key } = await newKey(api);
      const lastUse = async () => (await list()).find((known) => known.id === id).last_used_at;
      expect(await lastUse()).toBeNull();
      await api.call("GET", "/app/api/session", undefined, { "X-Api-Key": key });
      const first = await until("the use was noted", lastUse);
      expect(Math.abs(Date.parse(first) - Date.now())).toBeLessThan(60_000);
      for (let i = 0; i < 5; i++) await api.call("GET", "/app/api/session", undefined, { "X-Api-Key": key });
      // A write would have been committed before this one, which came later.
      await newKey(api);
      expect(await lastUse()).toBe(first);
    });

    it.each([
      ["no such key", "abcdefghijkl"],
      ["nonsense", "%00"],
    ])("that do not exist are not revoked: %s", async (_, id) => {
      const answer = await api.send("DELETE", `/admin/keys/${id}`, undefined, ADMIN);
      expect(answer).toMatchObject({ status: 404, body: { detail: "API key not found" } });
    });

    it.each<[object, (string | number)[], string]>([
      [{}, ["body", "name"], "missing"],
      [{ name: "" }, ["body", "name"], "string_too_short"],
      [{ name: "n", scopes: [] }, ["body", "scopes"], "too_short"],
      [{ name: "n", scopes: ["everything"] }, ["body", "scopes", 0], "enum"],
      [{ name: "n", tenant_id: "x" }, ["body", "tenant_id"], "uuid_parsing"],
    ])("are not created from %j", async (body, loc, type) => {
      const answer = await api.send("POST", "/admin/keys", body, ADMIN);
      expect(answer.status).toBe(422);
      expect(answer.body.detail).toEqual([expect.objectContaining({ loc, type })]);
    });

    it("belong to an existing workspace", async () => {
      const body = { name: "n", tenant_id: randomUUID() };
      expect(await api.send("POST", "/admin/keys", body, ADMIN)).toMatchObject({
        status: 404,
        body: { detail: "Workspace not found" },
      });
    });
  });

  describe("an administrator of another workspace", () => {
    it("creates, lists and revokes only the keys of that workspace", async () => {
      const [tenant_id, elsewhere] = [await newWorkspace(api), await newWorkspace(api)];
      const caller = await newCaller(api, { tenant_id, user_id: "ada", scopes: ["admin"] });
      const foreign = await newKey(api, { tenant_id: elsewhere });
      const made = await api.call("POST", "/admin/keys", { name: "own" }, caller);
      expect(made).toMatchObject({ tenant_id, user_id: "ada" });
      expect((await list(caller)).map(({ name }) => name).sort()).toEqual(["own", "test"]);
      expect((await list(ADMIN, `?tenant_id=${tenant_id}`)).length).toBe(2);
      for (const [method, path, body] of [
        ["GET", `/admin/keys?tenant_id=${elsewhere}`],
        ["POST", "/admin/keys", { name: "n", tenant_id: elsewhere }],
        ["DELETE", `/admin/keys/${foreign.id}`],
        ["GET", `/admin/workspaces/${elsewhere}/members`],
        ["PUT", `/admin/workspaces/${elsewhere}/members/ada`],
        ["DELETE", `/admin/workspaces/${elsewhere}/members/ada`],
      ] as const)
        expect([path, (await api.send(method, path, body, caller)).status]).toEqual([path, 404]);
      expect((await api.send("GET", "/app/api/session", undefined, { "X-Api-Key": foreign.key })).status).toBe(200);
      expect((await api.send("DELETE", `/admin/keys/${made.id}`, undefined, caller)).status).toBe(204);
    });

    it("sees only that workspace, and creates no other", async () => {
      const tenant_id = await newWorkspace(api);
      const caller = await newCaller(api, { tenant_id, scopes: ["admin"] });
      expect(await api.call("GET", "/admin/workspaces", undefined, caller)).toMatchObject([{ tenant_id }]);
      const answer = await api.send("POST", "/admin/workspaces", { name: randomUUID().slice(1) }, caller);
      expect(answer).toMatchObject({ status: 403, body: { detail: expect.stringContaining("default workspace") } });
    });

    it("can also be the key from the environment, when it names a workspace", async () => {
      const tenant_id = await newWorkspace(api);
      const headers = { ...ADMIN, "X-Tenant-Id": tenant_id };
      expect(await api.call("POST", "/admin/keys", { name: "n" }, headers)).toMatchObject({ tenant_id });
      expect((await list(headers)).length).toBe(1);
    });
  });

  describe("workspaces", () => {
    it("are created with a given id or with a generated one", async () => {
      const tenant_id = randomUUID();
      const made = await api.call(
        "POST",
        "/admin/workspaces",
        { name: "one", tenant_id: tenant_id.toUpperCase() },
        ADMIN,
      );
      expect(made).toMatchObject({ tenant_id, name: "one" });
      expect(await api.call("GET", "/admin/workspaces", undefined, ADMIN)).toContainEqual(made);
      for (const body of [{ name: "one" }, { name: "two", tenant_id }])
        expect((await api.send("POST", "/admin/workspaces", body, ADMIN)).status).toBe(409);
      expect((await api.send("POST", "/admin/workspaces", { name: randomUUID() }, ADMIN)).status).toBe(422);
    });

    it("have members, whose names may have any characters", async () => {
      const tenant_id = await newWorkspace(api);
      const members = `/admin/workspaces/${tenant_id}/members`;
      for (const user of ["auth0|1", "a/b", "ä ö", "auth0|1"]) {
        const path = `${members}/${encodeURIComponent(user)}`;
        expect((await api.call("PUT", path, undefined, ADMIN)).user_id).toBe(user);
      }
      const names = async () =>
        (await api.call("GET", members, undefined, ADMIN)).map((member: Wire) => member.user_id).sort();
      expect(await names()).toEqual(["a/b", "auth0|1", "ä ö"]);
      const path = `${members}/${encodeURIComponent("a/b")}`;
      expect((await api.send("DELETE", path, undefined, ADMIN)).status).toBe(204);
      expect((await api.send("DELETE", path, undefined, ADMIN)).status).toBe(404);
      expect(await names()).toEqual(["auth0|1", "ä ö"]);
    });

    it("that do not exist have no members", async () => {
      for (const method of ["GET", "PUT"] as const) {
        const path = `/admin/workspaces/${randomUUID()}/members${method === "PUT" ? "/a" : ""}`;
        expect((await api.send(method, path, undefined, ADMIN)).status).toBe(404);
      }
      expect((await api.send("GET", "/admin/workspaces/x/members", undefined, ADMIN)).status).toBe(422);
    });
  });

  it("describes itself", async () => {
    const document = await api.call("GET", "/admin/openapi.json", undefined, ADMIN);
    const described = Object.values(document.paths as Record<string, Record<string, Wire>>).flatMap((path) =>
      Object.values(path).map(({ operationId }) => operationId),
    );
    expect(described.sort()).toEqual(Object.keys(adminRoutes).sort());
  });
});

/** Everything that is stored: the files of the folder, or a dump of the tables. */
async function bytesOf(api: Scenario): Promise<Buffer> {
  const { data_dir, url } = api.service.database;
  if (url === undefined)
    return Buffer.concat(
      readdirSync(data_dir, { withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map(({ name }) => readFileSync(join(data_dir, name))),
    );
  const pg = await import("pg");
  const client = new pg.default.Client({ connectionString: url });
  await client.connect();
  const { rows: tables } = await client.query("select tablename from pg_tables where schemaname = 'public'");
  const texts = [];
  for (const { tablename } of tables)
    texts.push(JSON.stringify((await client.query(`select t::text from ${tablename} t`)).rows));
  await client.end();
  return Buffer.from(texts.join("\n"));
}
