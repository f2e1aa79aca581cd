import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { OidcIssuer } from "../../../src/access/oidc-issuer.ts";
import { insertMember, insertWorkspace } from "../../../src/access/storage/workspaces.ts";
import { SCOPES } from "../../../src/platform/contract/caller.ts";
import { databases } from "../../support/databases.ts";
import { AUDIENCE, Issuer } from "../../support/issuer.ts";
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

  it("callers with a key of its workspace", async () => {
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
  ])("not a caller with %s, whose response has no details", async (_, headers) => {
    const before = instance.seen.length;
    for (const at of [`${path}/threads`, path, `${path}/ok/`, `${path}/../ok`, "/deployments/nothing/threads"]) {
      for (const method of ["GET", "POST", "DELETE", "TRACE"]) {
        const answer = await ask({ ...headers, origin: "https://app.example" }, at, method);
        expect([at, answer.status, answer.body.detail]).toEqual([at, 401, expect.stringContaining("X-Api-Key")]);
        expect(answer.headers).toMatchObject({ "www-authenticate": "Bearer", "access-control-allow-origin": "*" });
      }
    }
    expect(instance.seen.length).toBe(before);
  });

  it("any client can load files of UI components, for which the instance gets no key", async () => {
    const file = `${path}/ui/agent/entrypoint.js`;
    expect((await ask({}, file)).text).toBe("mine");
    expect((await ask({ "X-Api-Key": "unknown" }, file)).text).toBe("mine");
    for (const { headers } of instance.seen.slice(-2)) {
      expect(headers).not.toHaveProperty("x-api-key");
      expect(headers).not.toHaveProperty("x-threadmill-user");
    }
    for (const at of [`${path}/ui/agent`, `${path}/ui/agent/a/b`, `${path}/x/ui/agent/entrypoint.js`])
      expect([at, (await ask({}, at)).status]).toEqual([at, 401]);
    expect((await ask({}, file, "POST")).status).toBe(401);
    expect((await ask({}, "/deployments/nothing/ui/agent/entrypoint.js")).status).toBe(404);
  });

  it("the key of the instance is not a key of the service", async () => {
    expect((await ask({ "X-Api-Key": instance.upstream.api_key })).status).toBe(401);
  });

  it("a caller of another workspace gets the same response as for a deployment that does not exist", async () => {
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

  it("readiness is answered by the router itself, and only to callers with a key", async () => {
    const before = instance.seen.length;
    expect(await ask(ADMIN, `${path}/ok`)).toMatchObject({ status: 200, body: { ok: true } });
    expect((await world.process.open(`${path}/ok?check_db=1`, { method: "HEAD", headers: ADMIN })).statusCode).toBe(
      200,
    );
    const { path: empty } = await world.deployed();
    expect(await ask(ADMIN, `${empty}/ok`)).toMatchObject({ status: 503, body: { ok: false } });
    for (const at of [`${path}/ok`, `${empty}/ok`, "/deployments/nothing/ok", `${path}/ok/`, `${path}/OK`])
      expect([at, (await ask({}, at)).status]).toEqual([at, 401]);
    expect(instance.seen.length).toBe(before);
  });

  it("a preflight request needs no key, and its response does not reveal which deployments exist", async () => {
    const before = instance.seen.length;
    const asked = {
      origin: "https://app.example",
      "access-control-request-method": "POST",
      "access-control-request-headers": "x-api-key,content-type",
    };
    for (const at of [`${path}/threads`, "/deployments/nothing/threads"]) {
      const { status, headers } = await ask(asked, at, "OPTIONS");
      expect([at, status]).toEqual([at, 204]);
      expect(headers).toMatchObject({
        "access-control-allow-origin": "*",
        "access-control-allow-headers": "x-api-key,content-type",
        "access-control-allow-methods": expect.stringContaining("PATCH"),
      });
      expect([at, (await ask({}, at, "OPTIONS")).status]).toEqual([at, 401]);
    }
    expect(instance.seen.length).toBe(before);
  });

  it("a deployment below a path has an origin of its own in a browser, and cannot affect the origin of the service", async () => {
    const harmful = {
      "set-cookie": "a=b",
      "service-worker-allowed": "/",
      "clear-site-data": '"storage"',
      "strict-transport-security": "max-age=1",
      "alt-svc": 'h3=":443"',
      nel: "{}",
      "report-to": "{}",
    };
    const page = await Instance.start("page", (_, response) => {
      response
        .writeHead(200, { ...harmful, "content-type": "text/html", "x-other": "stays" })
        .end("<script>1</script>");
    });
    const { path: at, slug: named } = await world.deployed(page.upstream);
    const { headers } = await ask(ADMIN, at);
    expect(headers).toMatchObject({
      "content-security-policy": "sandbox",
      "x-content-type-options": "nosniff",
      "x-other": "stays",
    });
    for (const name of Object.keys(harmful)) expect(headers).not.toHaveProperty(name);
    // A host name of its own is an origin of its own.
    const own = await world.process.send("/", { headers: { ...ADMIN, host: `${named}.localhost` } });
    expect(own.headers).toMatchObject({ "service-worker-allowed": "/" });
    expect(own.headers).not.toHaveProperty("content-security-policy");

    const worker = { ...ADMIN, "service-worker": "script" };
    const refused = await ask(worker, `${at}/worker.js`);
    expect([refused.status, refused.text]).toEqual([403, expect.stringContaining(`${named}.localhost`)]);
    expect(
      (await world.process.send("/worker.js", { headers: { ...worker, host: `${named}.localhost` } })).status,
    ).toBe(200);
    await page.stop();
  });

  it("the instance gets its own key and the caller's name, but not the caller's credentials", async () => {
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

  it("the instance's key is in no response to a caller", async () => {
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
    world = await World.open("sqlite", { api_keys: [], cors_origins: "https://app.example" });
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

  it("accepts all callers", async () => {
    expect((await world.process.send(path, { headers: { "x-api-key": "whatever" } })).text).toBe("mine");
    expect(instance.last.headers).toMatchObject({ "x-threadmill-user": "local" });
  });

  it("responds to loopback names only", async () => {
    for (const host of ["evil.example", "localhost.evil.example", "192.168.0.7"])
      for (const at of [path, `${path}/ok`])
        expect([host, (await world.process.send(at, { headers: { host } })).status]).toEqual([host, 403]);
    expect((await world.process.send(path, { headers: { host: "localhost:2024" } })).status).toBe(200);
  });

  it("refuses a body that a web page could send without a preflight request", async () => {
    const headers = { origin: "https://app.example", "content-type": "text/plain" };
    const simple = await world.process.send(path, { method: "POST", headers, body: "{}" });
    expect(simple.status).toBe(415);
    const json = { ...headers, "content-type": "application/json" };
    expect((await world.process.send(path, { method: "POST", headers: json, body: "{}" })).status).toBe(200);
    const shown = { ...headers, "x-api-key": "whatever" };
    expect((await world.process.send(path, { method: "POST", headers: shown, body: "{}" })).status).toBe(200);
  });

  it("responds only to pages of listed origins, including responses of instances", async () => {
    const asPage = async (origin: string, at = path) => {
      const { status, headers } = await world.process.send(at, { headers: { origin } });
      return [status, headers["access-control-allow-origin"]];
    };
    const nothing = "/deployments/nothing/x";
    for (const origin of ["https://app.example", "http://localhost:3000"]) {
      expect(await asPage(origin)).toEqual([200, "*"]);
      expect(await asPage(origin, nothing)).toEqual([404, origin]);
    }
    const before = instance.seen.length;
    for (const at of [path, `${path}/threads`, nothing]) {
      expect(await asPage("https://evil.example", at)).toEqual([403, undefined]);
      const loaded = await world.process.send(at, { headers: { "sec-fetch-site": "cross-site" } });
      expect(loaded.status).toBe(403);
    }
    expect(instance.seen.length).toBe(before);
  });

  it("never gets the JWT of a member of several workspaces, who must name one, if its instances authenticate users", async () => {
    const issuer = await Issuer.start();
    const settings = { issuer: issuer.url, audience: AUDIENCE, scopes: {}, allow_loopback: true };
    const own = await World.open("sqlite", { issuer: new OidcIssuer(settings as never) });
    await own.storage.database.write(async (tx) => {
      for (const name of ["one", "two"]) {
        const tenant_id = randomUUID();
        await insertWorkspace(tx, { tenant_id, name });
        await insertMember(tx, { tenant_id, user_id: "alice", role: "member" });
      }
    });
    const { path: at } = await own.deployed({ ...instance.upstream, custom_auth: true });
    const before = instance.seen.length;
    const headers = { Authorization: `Bearer ${await issuer.token()}` };
    expect((await own.process.send(`${at}/threads`, { headers })).status).toBe(403);
    expect(instance.seen.length).toBe(before);
    const stranger = { Authorization: `Bearer ${await issuer.token({ sub: "stranger" })}` };
    expect((await own.process.send(`${at}/threads`, { headers: stranger })).text).toBe("mine");
    await own.close();
    await issuer.stop();
  });
});
