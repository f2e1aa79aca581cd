import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isUiFile } from "../../src/access/http/scopes.ts";
import { agentServerRoutes } from "../../src/agent-server/contract/routes.ts";
import { experimentRoutes } from "../../src/experiments/contract/routes.ts";
import { experimentRoutesV2 } from "../../src/experiments/contract/v2/routes.ts";
import { databases } from "../support/databases.ts";
import { Scenario, UNKNOWN_ID } from "./scenario.ts";

const ONE = "key-one-0123456789abcdef";
const TWO = "key-two-0123456789abcdef";

type Route = { method: string; path: string };
const routesOf = (groups: Record<string, object>, prefix = "") =>
  Object.values(groups)
    .flatMap((group) => Object.values(group) as Route[])
    .map(({ method, path }) => [method.toUpperCase(), prefix + path.replaceAll(/\{\w+\}/g, UNKNOWN_ID)] as const);

/** Every route of the contracts, with ids that nothing has. */
const ROUTES = [
  ...routesOf(agentServerRoutes),
  ...routesOf(experimentRoutes, "/api/v1"),
  ...routesOf({ v2: experimentRoutesV2 }, "/api/v2"),
];

/** The token in the path authenticates, except for `/ok` and `/info`. */
const OPEN = /^\/(ok$|info$|api\/v[12]\/public\/|api\/v1\/feedback\/tokens\/)/;
const CLOSED = ROUTES.filter(([method, path]) => !OPEN.test(path) && !isUiFile(method, path));

describe.each(databases)("with API keys on %s", (database) => {
  let api: Scenario;
  beforeAll(async () => {
    api = await Scenario.start(database, { API_KEYS: `${ONE}, ${TWO}` });
  });
  afterAll(() => api.stop());

  const send = (method: string, path: string, headers: Record<string, string> = {}) =>
    api.send(method as "GET", path, method === "GET" ? undefined : {}, headers);

  it("the whole route table is tested", () => {
    expect(CLOSED.length).toBeGreaterThan(80);
  });

  describe.each<[string, Record<string, string>]>([
    ["no key", {}],
    ["an unknown key", { "X-Api-Key": "key-three-0123456789abcdef" }],
    ["an unknown bearer token", { Authorization: "Bearer key-three" }],
    ["an empty key", { "X-Api-Key": "" }],
    ["the start of a key", { "X-Api-Key": ONE.slice(0, -1) }],
    ["both keys at once", { "X-Api-Key": `${ONE}, ${TWO}` }],
    ["a key in another scheme", { Authorization: `Basic ${ONE}` }],
    ["a workspace's id alone", { "X-Tenant-Id": "00000000-0000-0000-0000-000000000001" }],
  ])("%s", (_, headers) => {
    it.each(CLOSED)("opens no %s %s", async (method, path) => {
      const answer = await send(method, path, headers);
      expect(answer).toMatchObject({ status: 401, body: { detail: expect.stringContaining("X-Api-Key") } });
      expect(answer.headers.get("www-authenticate")).toBe("Bearer");
    });
  });

  it.each<[string, Record<string, string>]>([
    ["the first key as X-Api-Key", { "X-Api-Key": ONE }],
    ["the second key as X-Api-Key", { "x-api-key": TWO }],
    ["the first key as bearer token", { Authorization: `Bearer ${ONE}` }],
    ["the second key as bearer token in lower case", { authorization: `bearer ${TWO}` }],
    ["a key and a workspace's id", { "X-Api-Key": ONE, "X-Tenant-Id": "00000000-0000-0000-0000-000000000001" }],
  ])("%s opens every route", async (_, headers) => {
    for (const [method, path] of ROUTES)
      expect([path, (await send(method, path, headers)).status]).not.toEqual([path, 401]);
    expect(await api.call("POST", "/runs/wait", { assistant_id: "chain", input: { steps: [] } }, headers)).toEqual({
      steps: ["a", "b", "c"],
    });
  });

  it("/ok and the redirect to the app need no key, but the documents and unknown routes do", async () => {
    expect(await send("GET", "/ok")).toMatchObject({ status: 200, body: { ok: true } });
    expect((await send("GET", "/ok?check_db=1")).status).toBe(200);
    // It only leads to the page that asks for a key.
    expect((await send("GET", "/")).status).toBe(302);
    for (const path of ["/openapi.json", "/docs", "/nowhere", "/ok/", "//ok", "/ok%2f"]) {
      const { status } = await send("GET", path);
      expect([path, status]).toEqual([path, 401]);
    }
  });

  it("a caller without a key gets 401 before every other error", async () => {
    for (const [path, body] of [
      ["/threads", "{"],
      ["/threads/not-a-uuid/runs", "{}"],
      ["/assistants", '{"graph_id": "nope"}'],
      ["/threads", "x".repeat(100_000)],
    ] as const) {
      expect((await api.send("POST", path, body)).status).toBe(401);
    }
  });

  it("the caller with a key is the user admin, and all keys see the same data", async () => {
    const { seen } = await api.call("POST", "/runs/wait", { assistant_id: "inspect", input: {} }, { "X-Api-Key": ONE });
    expect(seen.configurable.user_id).toBe("admin");
    expect(JSON.stringify(seen)).not.toContain(ONE);
    const { thread_id } = await api.call("POST", "/threads", {}, { "X-Api-Key": ONE });
    expect((await send("GET", `/threads/${thread_id}`, { "X-Api-Key": TWO })).status).toBe(200);
  });

  it("a browser's preflight needs no key, the request after it does", async () => {
    const preflight = {
      Origin: "https://app.example",
      "Access-Control-Request-Method": "POST",
      "Access-Control-Request-Headers": "x-api-key,content-type",
    };
    const answer = await api.send("OPTIONS", "/threads", undefined, preflight);
    expect(answer.status).toBe(204);
    expect(answer.headers.get("access-control-allow-origin")).toBe("*");
    expect(answer.headers.get("access-control-allow-headers")?.toLowerCase()).toContain("x-api-key");
    expect(answer.headers.get("access-control-allow-methods")).toContain("PATCH");
    const refused = await send("POST", "/threads", { Origin: "https://app.example" });
    expect(refused.status).toBe(401);
    // Without this header a page could not even read that it was refused.
    expect(refused.headers.get("access-control-allow-origin")).toBe("*");
  });
});

describe.each(databases)("without API keys on a loopback address on %s", (database) => {
  let api: Scenario;
  beforeAll(async () => {
    api = await Scenario.start(database, { ALLOWED_HOSTS: "agents.internal" });
  });
  afterAll(() => api.stop());

  it("all requests are accepted, even with an unknown key", async () => {
    const all: Record<string, string>[] = [{}, { "X-Api-Key": "whatever" }, { Authorization: "Bearer whatever" }];
    for (const headers of all) {
      expect((await api.send("POST", "/threads", {}, headers)).status).toBe(200);
    }
  });

  it.each([
    "localhost",
    "localhost:2024",
    "127.0.0.1:2024",
    "127.8.0.1",
    "[::1]:2024",
    "app.localhost",
    "agents.internal",
    "agents.internal:80",
    "LOCALHOST",
  ])("the Host %s is served", async (host) => {
    expect((await api.send("POST", "/threads", {}, { Host: host })).status).toBe(200);
  });

  it.each([
    "evil.example",
    "evil.example:2024",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "notlocalhost",
    "192.168.0.7",
    "0.0.0.0",
    "x.agents.internal",
    "[::2]",
  ])("the Host %s is refused on every route: it may be a rebound name", async (host) => {
    for (const [method, path] of ROUTES) {
      const answer = await api.send(method as "GET", path, method === "GET" ? undefined : {}, { Host: host });
      expect([path, answer.status, typeof answer.body.detail]).toEqual([path, 403, "string"]);
    }
  });

  it("a request from a web page needs JSON's content type", async () => {
    const origin = { Origin: "http://localhost:3000" };
    for (const type of [
      "text/plain",
      "text/plain;charset=UTF-8",
      "application/x-www-form-urlencoded",
      "multipart/form-data; boundary=x",
      "application/jsonx",
    ]) {
      const answer = await api.send("POST", "/threads", "{}", { ...origin, "content-type": type });
      expect([type, answer.status, answer.body]).toEqual([
        type,
        415,
        { detail: expect.stringContaining("application/json") },
      ]);
    }
    for (const type of ["application/json", "application/json; charset=utf-8", "Application/JSON"]) {
      expect((await api.send("POST", "/threads", "{}", { ...origin, "content-type": type })).status).toBe(200);
    }
    expect((await api.send("POST", "/threads", "{}", { "content-type": "text/plain" })).status).toBe(200);
    expect((await api.send("GET", "/assistants/chain", undefined, origin)).status).toBe(200);
  });

  it("a page may read the headers that clients need", async () => {
    const answer = await api.send(
      "POST",
      "/runs/wait",
      { assistant_id: "chain", input: { steps: [] } },
      { Origin: "http://localhost:3000" },
    );
    expect(answer.headers.get("access-control-allow-origin")).toBe("http://localhost:3000");
    expect(answer.headers.get("access-control-allow-credentials")).toBeNull();
    const exposed = answer.headers.get("access-control-expose-headers")?.toLowerCase().split(/, ?/);
    expect(exposed).toEqual(
      expect.arrayContaining(["content-location", "location", "x-pagination-total", "x-pagination-next"]),
    );
  });
});
