import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Intervals } from "../../src/config/config.ts";
import { createProject, oneNodeGraph, type TestProject } from "../support/project.ts";
import { until } from "../support/until.ts";
import { Scenario, type Wire } from "./scenario.ts";

const KEY = "key-one-0123456789abcdef0123456789ab";
const KEYED = { "x-api-key": KEY };

/** An app of Hono with routes of each kind. */
const HONO = `
import { Client } from "@langchain/langgraph-sdk";
import { Hono } from "hono";
import { streamSSE } from "hono/streaming";

export const app = new Hono();
const aborted = [];
app.use("/assistants/*", async (c, next) => {
  await next();
  c.header("x-wrapped", String(c.res.status));
});
app.use("/threads/*", async (c, next) => {
  const body = c.req.method === "POST" ? await c.req.json() : {};
  return body.refuse ? c.json({ detail: "refused by the app" }, 418) : next();
});
app.get("/hello/:name", (c) => c.json({ name: c.req.param("name"), url: c.req.url, query: c.req.query("q") ?? null }));
app.get("/numbers/:id{[0-9]+}", (c) => c.text(c.req.param("id")));
app.get("/files/:path{.+}/raw", (c) => c.text(c.req.param("path")));
app.post("/echo", async (c) => c.body(await c.req.arrayBuffer(), 201, { "x-type": c.req.header("content-type") ?? "" }));
app.post("/size", async (c) => {
  let size = 0;
  for await (const chunk of c.req.raw.body) size += chunk.byteLength;
  return c.json({ size });
});
app.get("/info", (c) => c.json({ shadowed: true }));
app.get("/ok", (c) => c.json({ ok: "shadowed" }));
app.get("/events", (c) => streamSSE(c, async (stream) => {
  stream.onAbort(() => aborted.push("events"));
  for (let n = 0; !stream.aborted && n < 1e6; n++) {
    await stream.writeSSE({ data: String(n) });
    await stream.sleep(5);
  }
}));
app.get("/aborted", (c) => c.json(aborted));
app.get("/cookies", (c) => {
  c.header("set-cookie", "a=1", { append: true });
  c.header("set-cookie", "b=2", { append: true });
  return c.body(null, 204);
});
app.get("/threads-of-caller", async (c) => {
  const client = new Client(c.req.query("key") ? { apiKey: c.req.query("key") } : {});
  try {
    const { thread_id } = await client.threads.create({ metadata: { by: "route" } });
    return c.json(await client.threads.get(thread_id));
  } catch (error) {
    return c.json({ status: error.status ?? null, message: error.message }, 200);
  }
});
app.get("/admin-keys", async (c) => {
  const send = globalThis[Symbol.for("langgraph_api:fetch")];
  return c.json({ status: (await send("http://localhost/admin/keys")).status });
});
app.get("/fails", () => { throw new Error("secret of the app"); });
app.get("/exits", () => process.exit(3));
app.get("/waits", () => new Promise(() => undefined));
`;

/** A graph that sends requests to the service, through the middleware and to a route of the app. */
const CALLS = `
import { Annotation, StateGraph } from "@langchain/langgraph";
const send = (path, body) => globalThis[Symbol.for("langgraph_api:fetch")]("http://localhost" + path, {
  method: body ? "POST" : "GET",
  headers: { "content-type": "application/json" },
  body: body && JSON.stringify(body),
});
export const graph = new StateGraph(Annotation.Root({ statuses: Annotation }))
  .addNode("calls", async () => {
    const answers = await Promise.all([send("/threads/search", {}), send("/threads/search", { refuse: true }), send("/hello/graph")]);
    return { statuses: answers.map(({ status }) => status) };
  })
  .addEdge("__start__", "calls").compile();
`;

let project: TestProject;
const start = async (
  files: Record<string, string>,
  http: object,
  options: { env?: Record<string, string>; extra?: object; intervals?: Partial<Intervals>; inline?: boolean } = {},
) => {
  const langgraph = { graphs: { agent: "./agent.mjs:graph", calls: "./calls.mjs:graph" }, http, ...options.extra };
  project = createProject({
    "agent.mjs": oneNodeGraph("one"),
    "calls.mjs": CALLS,
    "langgraph.json": JSON.stringify(langgraph),
    ...files,
  });
  return Scenario.start("sqlite", options.env ?? {}, {
    config: project.config,
    inline: options.inline ?? true,
    intervals: options.intervals ?? {},
  });
};

describe("an app of Hono", () => {
  let api: Scenario;
  let url: string;
  beforeAll(async () => {
    api = await start(
      { "app.mjs": HONO },
      { app: "./app.mjs:app" },
      {
        inline: false,
        env: { API_KEYS: KEY, HTTP_MAX_REQUEST_BODY_BYTES: "300000" },
        intervals: { sse_heartbeat_ms: 100 },
      },
    );
    url = await api.service.listen();
  });
  afterAll(async () => {
    await api.stop();
    project.drop();
  });

  it("serves its routes without a key, with parameters, queries and its own URL", async () => {
    const answer = await fetch(`${url}/hello/a%20b?q=1`);
    expect(await answer.json()).toEqual({ name: "a b", url: `${url}/hello/a%20b?q=1`, query: "1" });
    expect((await (await fetch(`${url}/hello/a%252Fb`)).json()) as object).toMatchObject({ name: "a%2Fb" });
    expect(await (await fetch(`${url}/numbers/12`)).text()).toBe("12");
    expect(await (await fetch(`${url}/files/a/b/raw`)).text()).toBe("a/b");
    expect((await fetch(`${url}/hello/x`, { method: "HEAD" })).status).toBe(200);
    expect((await fetch(`${url}/cookies`)).headers.getSetCookie()).toEqual(["a=1", "b=2"]);
  });

  it("shadows routes of the service except /ok, and leaves the others as they are", async () => {
    expect((await api.send("GET", "/info")).body).toEqual({ shadowed: true });
    expect((await api.send("GET", "/ok")).body).toEqual({ ok: true });
    expect((await api.send("POST", "/store/items/search", {})).status).toBe(401);
    expect((await api.send("GET", "/numbers/x", undefined, KEYED)).status).toBe(404);
    expect((await api.send("GET", "/nowhere")).status).toBe(401);
  });

  it("has its middleware around routes of the service, which still need a key", async () => {
    const denied = await api.send("GET", "/assistants/agent");
    expect([denied.status, denied.headers.get("x-wrapped")]).toEqual([401, "401"]);
    const answer = await api.send("GET", "/assistants/agent", undefined, KEYED);
    expect([answer.body.name, answer.headers.get("x-wrapped")]).toEqual(["agent", "200"]);
    expect((await api.send("POST", "/threads/search", { refuse: true }, KEYED)).status).toBe(418);
    // The middleware has read the body, and the service gets it, too.
    const { thread_id } = (await api.send("POST", "/threads", { metadata: { a: 1 } }, KEYED)).body;
    expect((await api.send("POST", "/threads/search", { metadata: { a: 1 } }, KEYED)).body).toMatchObject([
      { thread_id },
    ]);
    const events = await api.send(
      "POST",
      `/threads/${thread_id}/runs/stream`,
      { assistant_id: "agent", input: {} },
      KEYED,
    );
    expect(events.text).toContain('"answer":"one"');
  });

  it("keeps an idle stream behind its middleware open with heartbeats", async () => {
    const { thread_id } = (await api.send("POST", "/threads", {}, KEYED)).body;
    const controller = new AbortController();
    const { body } = await fetch(`${url}/threads/${thread_id}/stream`, { headers: KEYED, signal: controller.signal });
    let text = "";
    for await (const chunk of body as ReadableStream<Uint8Array>) {
      text += new TextDecoder().decode(chunk);
      if (text.split(": heartbeat").length > 3) break;
    }
    controller.abort();
  });

  it("gets bodies of any type and size up to the limit, and no larger ones", async () => {
    const bytes = new Uint8Array(250_000).map((_, n) => n);
    const echo = await fetch(`${url}/echo`, { method: "POST", body: bytes, headers: { "content-type": "image/png" } });
    expect([echo.status, echo.headers.get("x-type")]).toEqual([201, "image/png"]);
    expect(new Uint8Array(await echo.arrayBuffer())).toEqual(bytes);
    for (const headers of [{}, { "content-length": "400000" }]) {
      const large = new Request("http://localhost/size", { method: "POST", body: new Uint8Array(400_000), headers });
      expect((await api.service.threadmill.fetch(large)).status).toBe(413);
    }
  });

  it("streams responses, and is notified when the client disconnects", async () => {
    const controller = new AbortController();
    const answer = await fetch(`${url}/events`, { signal: controller.signal });
    const reader = answer.body?.getReader();
    expect(new TextDecoder().decode((await reader?.read())?.value)).toContain("data: 0");
    controller.abort();
    await until("the app is notified", async () => (await (await fetch(`${url}/aborted`)).text()) === '["events"]');
  });

  it("calls the service as the caller of the request, for the agent server only", async () => {
    const own = await api.send("GET", "/threads-of-caller", undefined, KEYED);
    expect(own.body.metadata).toEqual({ by: "route" });
    expect((await api.send("GET", "/threads-of-caller")).body.status).toBe(401);
    expect((await api.send("GET", `/threads-of-caller?key=${KEY}`)).body.metadata).toEqual({ by: "route" });
    expect((await api.send("GET", "/admin-keys", undefined, KEYED)).body.status).toBe(403);
    expect((await api.send("GET", "/admin/keys", undefined, KEYED)).status).toBe(200);
  });

  it("gets the requests of graphs, which keep their caller behind a middleware", async () => {
    const { statuses } = (await api.send("POST", "/runs/wait", { assistant_id: "calls", input: {} }, KEYED)).body;
    expect(statuses).toEqual([200, 418, 200]);
  });

  it("answers pages of permitted origins only, with CORS headers", async () => {
    const answer = await fetch(`${url}/hello/x`, { headers: { origin: "https://page.example" } });
    expect([answer.status, answer.headers.get("access-control-allow-origin")]).toEqual([200, "*"]);
    expect((await api.send("GET", "/hello/x", undefined, { host: "rebound.example" })).status).toBe(403);
  });

  it("fails with 500 for its errors, and with 502 for open requests when it ends; the next request starts it again", async () => {
    const failed = await api.send("GET", "/fails");
    expect([failed.status, failed.text]).toEqual([500, "Internal Server Error"]);
    const waiting = api.send("GET", "/waits");
    const [exited, waited] = await Promise.all([api.send("GET", "/exits"), waiting]);
    for (const answer of [exited, waited])
      expect([answer.status, answer.body.detail]).toEqual([
        502,
        expect.stringContaining("The HTTP app of the project failed."),
      ]);
    expect((await api.send("GET", "/hello/again")).body.name).toBe("again");
  });
});

describe("other apps and settings", () => {
  let api: Scenario | undefined;
  afterEach(async () => {
    await api?.stop();
    api = undefined;
    project.drop();
  });

  const FUNCTION = `
export const app = async (request) =>
  new URL(request.url).pathname === "/none" ? "no response" : Response.json({ path: new URL(request.url).pathname });
export const object = { fetch: app };
`;

  it("a function gets the requests that no route of the service matches, below the mount prefix", async () => {
    api = await start({ "app.mjs": FUNCTION }, { app: "./app.mjs:app", mount_prefix: "/base" });
    expect((await api.send("GET", "/base/own/route")).body).toEqual({ path: "/own/route" });
    expect((await api.send("GET", "/base/assistants/agent")).body.name).toBe("agent");
    expect((await api.send("GET", "/own/route")).status).toBe(404);
    expect((await api.send("GET", "/base/none")).status).toBe(500);
  });

  it("enable_custom_route_auth requires a key for routes of the app", async () => {
    const http = { app: "./app.mjs:object", enable_custom_route_auth: true };
    api = await start({ "app.mjs": FUNCTION }, http, { env: { API_KEYS: KEY } });
    // The service has public routes below /public.
    for (const path of ["/own", "/public/own"]) {
      expect((await api.send("GET", path)).status).toBe(401);
      expect((await api.send("GET", path, undefined, { "x-api-key": "wrong" })).status).toBe(401);
      expect((await api.send("GET", path, undefined, KEYED)).body).toEqual({ path });
    }
  });

  it("middleware_order auth_first authenticates before the middleware, for routes of the service only", async () => {
    const http = { app: "./app.mjs:app", middleware_order: "auth_first" };
    api = await start({ "app.mjs": HONO }, http, { env: { API_KEYS: KEY } });
    const denied = await api.send("GET", "/assistants/agent");
    expect([denied.status, denied.headers.get("x-wrapped")]).toEqual([401, null]);
    expect((await api.send("GET", "/assistants/agent", undefined, KEYED)).headers.get("x-wrapped")).toBe("200");
    expect((await api.send("GET", "/hello/x")).status).toBe(200);
  });

  it("enable_custom_route_auth requires a key for an app that is mounted into the app, too", async () => {
    const mounted = `
import { Hono } from "hono";
export const app = new Hono();
app.use("*", (c, next) => next());
app.mount("/tickets", () => Response.json({ secret: 1 }));
`;
    const http = { app: "./app.mjs:app", enable_custom_route_auth: true };
    api = await start({ "app.mjs": mounted }, http, { env: { API_KEYS: KEY } });
    expect((await api.send("GET", "/tickets/1")).status).toBe(401);
    expect((await api.send("GET", "/tickets/1", undefined, KEYED)).body).toEqual({ secret: 1 });
    expect((await api.send("GET", "/assistants/agent", undefined, KEYED)).status).toBe(200);
  });

  it("gets the end of a response to HEAD, whose body is not read", async () => {
    const counts = `
let ended = 0;
export const app = (request) => {
  request.signal.addEventListener("abort", () => { ended += 1; });
  return new Response(String(ended));
};`;
    api = await start({ "app.mjs": counts }, { app: "./app.mjs:app" });
    expect((await api.service.threadmill.fetch(new Request("http://localhost/x", { method: "HEAD" }))).status).toBe(
      200,
    );
    await until("the response has ended", async () => (await api?.send("GET", "/x"))?.text === "1");
  });

  it("gets webhooks of runs whose URL is a path, without a key, and routes of the service get none", async () => {
    const hooks = `
import { Hono } from "hono";
export const app = new Hono();
const received = [];
app.use("*", (c, next) => next());
app.post("/hooks/:name", async (c) => {
  const { run_id, status, values } = await c.req.json();
  received.push({ name: c.req.param("name"), run_id, status, values, id: c.req.header("webhook-id") });
  return c.text("", received.length === 1 ? 500 : 200);
});
app.get("/received", (c) => c.json(received));
`;
    const http = { app: "./app.mjs:app", enable_custom_route_auth: true };
    const webhooks = { url: { disable_loopback: false } };
    api = await start({ "app.mjs": hooks }, http, {
      env: { API_KEYS: KEY },
      extra: { webhooks },
      intervals: { webhook_retry_ms: 20 },
    });
    const send = async (path: string, body?: object) =>
      (await api?.send(body ? "POST" : "GET", path, body, KEYED))?.body;
    const { run_id } = await send("/runs", { assistant_id: "agent", input: {}, webhook: "/hooks/a?x=1" });
    const deliveries = (status: string) => send(`/webhooks/deliveries?status=${status}`);
    await until("the webhook is delivered", async () => (await deliveries("delivered")).length === 1);
    const webhook = { name: "a", run_id, status: "success", values: { answer: "one" }, id: run_id };
    expect(await send("/received")).toEqual([webhook, webhook]);
    await send("/runs", { assistant_id: "agent", input: {}, webhook: "/threads" });
    await until("the service has refused it", async () =>
      (await deliveries("pending")).some(({ response_status }: Wire) => response_status === 404),
    );
    expect(await send("/threads/search", {})).toEqual([]);
  });

  it("gets no webhooks by default", async () => {
    api = await start({ "app.mjs": FUNCTION }, { app: "./app.mjs:app" });
    const answer = await api.send("POST", "/runs", { assistant_id: "agent", webhook: "/hooks/a" });
    expect([answer.status, answer.body.detail]).toEqual([
      422,
      expect.stringContaining("only if webhooks.url.disable_loopback is false"),
    ]);
  });

  it("reload replaces the app, and requests complete in the old one", async () => {
    const source = (text: string) => `
export const app = () => {
  let chunks = 0;
  return new Response(new ReadableStream({
    pull(controller) {
      controller.enqueue(new TextEncoder().encode("${text} "));
      if (++chunks === 3) controller.close();
    },
  }));
};`;
    api = await start({ "app.mjs": source("old") }, { app: "./app.mjs:app" }, { inline: false });
    const open = await api.service.threadmill.fetch(new Request("http://localhost/x"));
    project.write("app.mjs", source("new"));
    await api.service.threadmill.reload(api.service.config);
    expect((await api.send("GET", "/x")).text).toBe("new new new ");
    expect(await open.text()).toBe("old old old ");
    project.write("app.mjs", "export const app = 1;");
    const failures = await api.service.threadmill.reload(api.service.config);
    expect(failures["http.app"]).toContain("the export is neither a Hono app");
    expect((await api.send("GET", "/x")).status).toBe(502);
    expect((await api.send("GET", "/assistants/agent")).status).toBe(200);
  });

  it.each([
    [{ app: "./app.rb:app" }, /http\.app must be "\.\/file\.ts:exportName"/],
    [{ app: 1 }, /http\.app must be/],
    [{ middleware_order: "last" }, /http\.middleware_order must be "middleware_first" or "auth_first", but is "last"/],
    [{ enable_custom_route_auth: "yes" }, /http\.enable_custom_route_auth must be true or false/],
  ])("%j is refused", async (http, message) => {
    await expect(start({}, http)).rejects.toThrow(message);
  });
});
