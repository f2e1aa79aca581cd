import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SCOPES } from "../../../src/contract/caller.ts";
import { insertWorkspace } from "../../../src/storage/vault/workspaces.ts";
import { databases } from "../../support/databases.ts";
import { Instance } from "./instance.ts";
import { ADMIN, ROOT, World } from "./world.ts";

describe.each(databases)("who may use a deployment on %s", (database) => {
  let world: World;
  let instance: Instance;
  let path: string;
  let slug: string;
  let elsewhere: string;
  beforeAll(async () => {
    world = await World.open(database, { router_wait_ms: 100 });
    instance = await Instance.start("mine");
    ({ path, slug } = await world.deployed(instance.upstream));
    elsewhere = randomUUID();
    await world.storage.database.write((tx) => insertWorkspace(tx, { tenant_id: elsewhere, name: "elsewhere" }));
  });
  afterAll(async () => {
    await world.close();
    await instance.stop();
  });

  const ask = (headers: Record<string, string>, at = `${path}/threads`, method = "GET") =>
    world.process.send(at, { method, headers });

  it("whoever shows a key of its workspace", async () => {
    const { "x-api-key": key } = await world.key();
    for (const headers of [
      { "X-Api-Key": key },
      { Authorization: `Bearer ${key}` },
      { authorization: `bearer ${key}` },
      { "X-Api-Key": key, Authorization: "Basic other" },
      ADMIN,
    ])
      expect((await ask(headers as Record<string, string>)).text).toBe("mine");
  });

  it.each<[string, Record<string, string>]>([
    ["no key", {}],
    ["an empty key", { "X-Api-Key": "" }],
    ["an unknown key", { "X-Api-Key": "key-three-0123456789abcdef" }],
    ["a key in another scheme", { Authorization: `Basic ${ROOT}` }],
    ["a workspace's id alone", { "X-Tenant-Id": "00000000-0000-0000-0000-000000000001" }],
    ["two keys", { "X-Api-Key": `${ROOT}, ${ROOT}` }],
  ])("nobody with %s, who is told nothing of what there is", async (_, headers) => {
    const before = instance.seen.length;
    for (const at of [`${path}/threads`, path, `${path}/ok/`, `${path}/../ok`, "/deployments/nothing/threads"]) {
      for (const method of ["GET", "POST", "DELETE", "TRACE"]) {
        const answer = await ask(headers, at, method);
        expect([at, answer.status, answer.body.detail]).toEqual([at, 401, expect.stringContaining("X-Api-Key")]);
        expect(answer.headers).toMatchObject({ "www-authenticate": "Bearer", "access-control-allow-origin": "*" });
      }
    }
    expect(instance.seen.length).toBe(before);
  });

  it("the key of the instance is none of ours", async () => {
    expect((await ask({ "X-Api-Key": instance.upstream.api_key })).status).toBe(401);
  });

  it("a caller of another workspace is told what a caller of a deployment that is not there is told", async () => {
    const headers = await world.key({ tenant_id: elsewhere });
    const answer = await ask(headers);
    expect([answer.status, answer.body]).toEqual([404, { detail: `Deployment ID ${slug} not found.` }]);
    const nothing = await ask(headers, "/deployments/nothing/threads");
    expect([nothing.status, nothing.body]).toEqual([404, { detail: "Deployment ID nothing not found." }]);
    expect((await ask({ ...ADMIN, "X-Tenant-Id": elsewhere })).status).toBe(404);
    expect((await ask({ ...headers, "X-Tenant-Id": randomUUID() })).status).toBe(403);
  });

  it("a key needs the scope agents", async () => {
    for (const scope of SCOPES) {
      const { status, body } = await ask(await world.key({ scopes: [scope] }));
      if (scope === "agents" || scope === "admin") expect([scope, status]).toEqual([scope, 200]);
      else expect([scope, status, body.detail]).toEqual([scope, 403, expect.stringContaining("scope agents")]);
    }
  });

  it("everybody may ask whether it is there, and a browser what it may send; the instance's key does not go along", async () => {
    for (const [method, at] of [
      ["GET", `${path}/ok`],
      ["HEAD", `${path}/ok?check_db=1`],
      ["OPTIONS", `${path}/threads`],
    ] as const) {
      expect((await ask({}, at, method)).status).toBe(200);
      expect(instance.last.headers).not.toHaveProperty("x-api-key");
      expect((await ask({ "X-Api-Key": "wrong", "x-threadmill-user": "eve" }, at, method)).status).toBe(200);
      expect(instance.last.headers).not.toHaveProperty("x-api-key");
      expect(instance.last.headers).not.toHaveProperty("x-threadmill-user");
    }
    expect((await ask({}, "/deployments/nothing/ok")).status).toBe(404);
    for (const at of [
      `${path}/ok/`,
      `${path}//ok`,
      `${path}/ok%2f`,
      `${path}/OK`,
      `${path}/./ok`,
      `${path}/threads/ok`,
    ])
      expect([at, (await ask({}, at)).status]).toEqual([at, 401]);
    expect((await ask({}, `${path}/ok`, "POST")).status).toBe(401);
  });

  it("the instance gets its own key and the caller's name, and nothing that the caller has shown", async () => {
    const key = await world.key({ user_id: "Zoë 100%" });
    await ask({
      ...key,
      Authorization: "Bearer other",
      "X-Tenant-Id": "00000000-0000-0000-0000-000000000001",
      "X-Threadmill-User": "root",
    });
    expect(instance.last.headers).toMatchObject({
      "x-api-key": instance.upstream.api_key,
      "x-threadmill-user": "Zo%C3%AB%20100%25",
    });
    expect(decodeURIComponent(String(instance.last.headers["x-threadmill-user"]))).toBe("Zoë 100%");
    const names = instance.last.rawHeaders.map((name) => name.toLowerCase());
    expect(names.filter((name) => name === "x-api-key" || name === "x-threadmill-user")).toHaveLength(2);
    expect(names).not.toContain("authorization");
    expect(names).not.toContain("x-tenant-id");
    expect(instance.last.rawHeaders.join()).not.toContain(key["x-api-key"]);
  });

  it("the instance's key is in nothing that a caller gets", async () => {
    const { path: broken } = await world.deployed({ ...instance.upstream, address: "http://127.0.0.1:1" });
    const answers = await Promise.all([
      ask(ADMIN),
      ask(ADMIN, broken),
      ask(ADMIN, broken, "POST"),
      ask(ADMIN, `${path}/x`, "TRACE"),
      ask({}, path),
    ]);
    for (const answer of answers)
      expect(JSON.stringify([answer.headers, answer.text])).not.toContain(instance.upstream.api_key);
    expect(answers.map(({ status }) => status)).toEqual([200, 503, 503, 405, 401]);
  });
});

describe("an open service", () => {
  let world: World;
  let instance: Instance;
  let path: string;
  beforeAll(async () => {
    world = await World.open("sqlite", { api_keys: [], cors_origins: ["https://app.example"] });
    instance = await Instance.start("mine", (request, response) => {
      request.resume();
      response.setHeader("access-control-allow-origin", "*");
      response.end("mine");
    });
    ({ path } = await world.deployed(instance.upstream));
  });
  afterAll(async () => {
    await world.close();
    await instance.stop();
  });

  it("lets everybody in", async () => {
    expect((await world.process.send(path, { headers: { "x-api-key": "whatever" } })).text).toBe("mine");
    expect(instance.last.headers).toMatchObject({ "x-threadmill-user": "local" });
  });

  it("answers loopback names alone", async () => {
    for (const host of ["evil.example", "localhost.evil.example", "192.168.0.7"])
      for (const at of [path, `${path}/ok`])
        expect([host, (await world.process.send(at, { headers: { host } })).status]).toEqual([host, 403]);
    expect((await world.process.send(path, { headers: { host: "localhost:2024" } })).status).toBe(200);
  });

  it("takes no body from a web page that the page could send without asking", async () => {
    const headers = { origin: "https://app.example", "content-type": "text/plain" };
    const simple = await world.process.send(path, { method: "POST", headers, body: "{}" });
    expect(simple.status).toBe(415);
    const json = { ...headers, "content-type": "application/json" };
    expect((await world.process.send(path, { method: "POST", headers: json, body: "{}" })).status).toBe(200);
    const shown = { ...headers, "x-api-key": "whatever" };
    expect((await world.process.send(path, { method: "POST", headers: shown, body: "{}" })).status).toBe(200);
  });

  it("lets pages of listed origins alone read what an instance answers", async () => {
    const readable = async (origin: string | undefined, at = path) =>
      (await world.process.send(at, { headers: origin === undefined ? {} : { origin } })).headers[
        "access-control-allow-origin"
      ];
    expect(await readable("https://app.example")).toBe("*");
    expect(await readable(undefined)).toBe("*");
    expect(await readable("https://evil.example")).toBeUndefined();
    expect(await readable("https://app.example", "/deployments/nothing/x")).toBe("https://app.example");
    expect(await readable("https://evil.example", "/deployments/nothing/x")).toBeUndefined();
  });
});
