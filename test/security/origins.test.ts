import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { Scenario } from "../http/scenario.ts";
import { createProject, type TestProject } from "../support/project.ts";
import { type Answer, startService, type TestService } from "../support/service.ts";

/** Findings 1 and 3 of the security review: what web pages of other origins may do with a service. */

const HOST = "127.0.0.1:2024";
const KEY = "a-key-0123456789abcdef0123456789abcdef";
const RUN = { assistant_id: "chain", input: { steps: [] } };

/** What a page of another origin may use on this machine without a key, and what it may not. */
const SHARED = [
  ["POST", "/threads"],
  ["POST", "/runs/wait"],
  ["POST", "/assistants/search"],
  ["GET", "/info"],
  ["GET", "/ok"],
  ["GET", "/api/v1/datasets"],
  ["POST", "/api/v1/datasets"],
] as const;
const REPLACED_HEADERS = [
  ["POST", "/v2/deployments"],
  ["GET", "/api-host/v2/deployments"],
  ["DELETE", "/v2/auth/tokens"],
  ["POST", "/v2/auth/providers"],
  ["POST", "/admin/keys"],
  ["GET", "/admin/workspaces"],
  ["GET", "/app/api/session"],
  ["POST", "/app/api/threads/search"],
  ["POST", "/app/api/threads/count"],
  ["GET", "/app/assets/index.js"],
  ["PUT", "/v2/uploads/x"],
] as const;

const FOREIGN = [
  "https://app.example",
  "http://localhost.evil.example",
  "http://127.0.0.1.evil.example:2024",
  "http://mine.localhost:2024",
  "http://127.0.0.1@evil.example",
  "null",
];
const LOOPBACK = ["http://localhost:3000", "https://127.0.0.1:8443", "http://[::1]:5173", "http://localhost"];

/** Whether it was refused for where it comes from; what another reason refuses was let in. */
const isRefused = ({ status, body }: Answer): boolean => status === 403 && body.detail.startsWith("Web pages from");
const statusOf = ({ status, headers }: Answer) => [status, headers.get("access-control-allow-origin")];

describe("an open service", () => {
  let api: Scenario;
  beforeAll(async () => {
    api = await Scenario.start("sqlite");
  });
  afterAll(() => api.stop());

  const send = (method: string, path: string, headers: Record<string, string>) =>
    api.send(method as "GET", path, ["POST", "PUT"].includes(method) ? {} : undefined, { host: HOST, ...headers });

  it("runs the code of evaluators in a document that has no access to anything", async () => {
    const { status, headers } = await send("GET", "/app/evaluator", {});
    expect(status).toBe(200);
    expect(headers.get("content-security-policy")?.split("; ")).toEqual([
      "sandbox allow-scripts",
      "default-src 'none'",
      expect.stringMatching(/^script-src 'sha256-[^']+' 'unsafe-eval'$/),
      "worker-src blob:",
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'self'",
    ]);
  });

  it.each(FOREIGN)("refuses pages of %s, whatever they ask for", async (origin) => {
    for (const [method, path] of [...SHARED, ...REPLACED_HEADERS])
      for (const asked of [method, "OPTIONS"])
        expect([asked, path, ...statusOf(await send(asked, path, { origin }))]).toEqual([asked, path, 403, null]);
    expect((await api.send("POST", "/threads/search", {})).body).toEqual([]);
  });

  it("states how to allow it", async () => {
    const { body } = await send("POST", "/threads", { origin: "https://app.example" });
    expect(body.detail).toContain("https://app.example");
    expect(body.detail).toContain("CORS_ALLOW_ORIGINS");
  });

  it.each(LOOPBACK)("lets pages of %s use the agent server and the experiments, and nothing else", async (origin) => {
    for (const [method, path] of SHARED) {
      const answer = await send(method, path, { origin, "sec-fetch-site": "cross-site" });
      expect([path, answer.status === 403, answer.headers.get("access-control-allow-origin")]).toEqual([
        path,
        false,
        origin,
      ]);
      expect(answer.headers.get("vary")).toContain("Origin");
      expect(answer.headers.get("access-control-allow-credentials")).toBeNull();
    }
    for (const [method, path] of REPLACED_HEADERS)
      for (const asked of [method, "OPTIONS"])
        expect([asked, path, ...statusOf(await send(asked, path, { origin }))]).toEqual([asked, path, 403, null]);
  });

  it("lets pages of this machine access an address of this machine", async () => {
    const asked = { origin: "http://localhost:3000", "access-control-request-method": "POST" };
    const { headers } = await send("OPTIONS", "/threads", {
      ...asked,
      "access-control-request-private-network": "true",
    });
    expect(headers.get("access-control-allow-private-network")).toBe("true");
    expect((await send("OPTIONS", "/threads", asked)).headers.get("access-control-allow-private-network")).toBeNull();
  });

  it.each(["cross-site", "same-site"])("refuses what a %s page loads without saying who it is", async (site) => {
    for (const [method, path] of [...SHARED, ...REPLACED_HEADERS])
      expect([path, (await send(method, path, { "sec-fetch-site": site })).status]).toEqual([path, 403]);
  });

  it.each<[string, Record<string, string>]>([
    ["programs", {}],
    ["addresses that somebody types", { "sec-fetch-site": "none" }],
    ["its own pages", { "sec-fetch-site": "same-origin" }],
    ["its own pages, which say who they are", { origin: `http://${HOST}`, "sec-fetch-site": "same-origin" }],
    ["its own pages in browsers that say no more", { origin: `http://${HOST}` }],
  ])("serves %s everything", async (_, headers) => {
    for (const [method, path] of [...SHARED, ...REPLACED_HEADERS])
      expect([path, isRefused(await send(method, path, headers))]).toEqual([path, false]);
  });

  it("refuses the page of a deployment, whose host name resolves to the service after the deployment was deleted", async () => {
    const headers = { host: "mine.localhost:2024", "sec-fetch-site": "same-origin" };
    for (const [method, path] of REPLACED_HEADERS)
      expect([path, (await send(method, path, headers)).status]).toEqual([path, 403]);
    expect((await send("POST", "/threads", headers)).status).toBe(200);
  });

  it("may be visited by a link, and is not put into a frame", async () => {
    const link = { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate" };
    for (const path of ["/", "/app", "/app/threads", "/docs", "/v2/auth/callback/acme?state=x", "/ok"]) {
      expect([path, (await send("GET", path, { ...link, "sec-fetch-dest": "document" })).status === 403]).toEqual([
        path,
        false,
      ]);
      expect([path, (await send("GET", path, { ...link, "sec-fetch-dest": "iframe" })).status]).toEqual([path, 403]);
    }
    for (const path of ["/threads/search", "/app/api/session", "/v2/deployments"])
      expect([path, (await send("GET", path, { ...link, "sec-fetch-dest": "document" })).status]).toEqual([path, 403]);
  });

  it("accepts JSON as text/plain, as the hosted Studio sends it, from a page that sent a preflight request", async () => {
    const page = { origin: "http://localhost:3000", "content-type": "text/plain;charset=UTF-8" };
    expect((await api.send("POST", "/runs/wait", RUN, { host: HOST, ...page })).status).toBe(415);
    for (const asked of [{ "x-auth-scheme": "langsmith" }, { "x-api-key": "" }] as Record<string, string>[])
      expect((await api.send("POST", "/runs/wait", RUN, { host: HOST, ...page, ...asked })).status).toBe(200);
    const form = { ...page, "content-type": "application/x-www-form-urlencoded" };
    expect((await api.send("POST", "/runs/wait", "assistant_id=chain", { host: HOST, ...form })).status).toBe(415);
  });
});

describe("listed origins", () => {
  let service: TestService | undefined;
  let project: TestProject | undefined;
  afterEach(async () => {
    await service?.stop();
    project?.drop();
    [service, project] = [undefined, undefined];
  });
  const readerOf = async (origin: string, path = "/ok") => statusOf(await ask("GET", path, { host: HOST, origin }));
  const ask = (method: string, path: string, headers: Record<string, string>) =>
    (service as TestService).request(method, path, undefined, headers);
  const start = async (env: Record<string, string>, cors?: object) => {
    project = createProject({
      "graph.mjs": "export const graph = {};",
      "langgraph.json": JSON.stringify({ graphs: { a: "./graph.mjs:graph" }, http: { cors } }),
    });
    service = await startService({ database: "sqlite", config: project.config, env });
  };

  it("of CORS_ALLOW_ORIGINS and langgraph.json use an open service's agent server and experiments", async () => {
    await start(
      { CORS_ALLOW_ORIGINS: "https://a.example" },
      { allow_origins: ["https://b.example"], allow_origin_regex: "https://[a-z]+\\.c\\.example" },
    );
    for (const origin of ["https://a.example", "https://b.example", "https://x.c.example", "http://localhost:3000"]) {
      expect([origin, ...(await readerOf(origin))]).toEqual([origin, 200, origin]);
      expect([origin, ...(await readerOf(origin, "/admin/workspaces"))]).toEqual([origin, 403, null]);
    }
    for (const origin of [
      "https://d.example",
      "https://x.c.example.evil.example",
      "https://evil.example/https://x.c.example",
    ])
      expect([origin, ...(await readerOf(origin))]).toEqual([origin, 403, null]);
  });

  it("can be all origins for the agent server of an open service, but none for the other routes", async () => {
    await start({ CORS_ALLOW_ORIGINS: "*" });
    expect(await readerOf("https://any.example")).toEqual([200, "https://any.example"]);
    expect(await readerOf("https://any.example", "/admin/workspaces")).toEqual([403, null]);
  });

  it("are the only ones that may use a service with keys, as far as their key permits", async () => {
    await start({ API_KEYS: KEY, CORS_ALLOW_ORIGINS: "https://a.example" });
    expect(await readerOf("https://a.example")).toEqual([200, "https://a.example"]);
    expect(await readerOf("https://a.example", "/admin/workspaces")).toEqual([401, "https://a.example"]);
    expect(await readerOf("https://b.example")).toEqual([403, null]);
    expect(await readerOf("http://localhost:3000")).toEqual([403, null]);
    expect(await readerOf(`http://${HOST}`)).toEqual([200, `http://${HOST}`]);
  });

  it("are all for a service with keys that lists none", async () => {
    await start({ API_KEYS: KEY });
    expect(await readerOf("https://any.example")).toEqual([200, "*"]);
    expect(await readerOf("https://any.example", "/v2/deployments")).toEqual([401, "*"]);
  });

  it("get the methods, headers and max_age of langgraph.json", async () => {
    await start(
      {},
      {
        allow_origins: ["https://b.example"],
        allow_methods: ["GET", "POST"],
        allow_headers: ["x-mine"],
        expose_headers: ["x-seen"],
        max_age: 600,
      },
    );
    const asked = { host: HOST, origin: "https://b.example", "access-control-request-headers": "x-other" };
    const { headers } = await ask("OPTIONS", "/threads", asked);
    expect(headers.get("access-control-allow-methods")).toBe("GET,POST");
    expect(headers.get("access-control-allow-headers")).toBe("x-mine");
    expect(headers.get("access-control-expose-headers")).toMatch(/Content-Location.*x-seen/);
    expect(headers.get("access-control-max-age")).toBe("600");
  });

  it.each<[string, object, RegExp]>([
    ["credentials", { allow_credentials: true }, /http\.cors\.allow_credentials must be false/],
    ["a text for a list", { allow_origins: "https://a.example" }, /http\.cors\.allow_origins must be a list/],
    ["an address for an origin", { allow_origins: ["https://a.example/path"] }, /must contain only origins/],
    ["no regular expression", { allow_origin_regex: "(" }, /http\.cors\.allow_origin_regex/],
    ["a field that nobody knows", { allow_all: true }, /http\.cors\.allow_all is not supported/],
    ["a time of words", { max_age: "long" }, /http\.cors\.max_age/],
  ])("cannot be %s", async (_, cors, message) => {
    await expect(start({}, cors)).rejects.toThrow(message);
  });
});
