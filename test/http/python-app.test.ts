import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Intervals } from "../../src/config/config.ts";
import { createProject, oneNodeGraph, type TestProject } from "../support/project.ts";
import { until } from "../support/until.ts";
import { Scenario } from "./scenario.ts";

const KEY = "key-one-0123456789abcdef0123456789ab";
const KEYED = { "x-api-key": KEY };

/** Routes of each kind. */
const FASTAPI = `
import asyncio
import gc
import os
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request, Response, WebSocket
from fastapi.responses import JSONResponse, StreamingResponse
from langgraph_sdk import get_client
from langgraph_sdk.errors import APIStatusError

aborted = []
client = get_client()

@asynccontextmanager
async def lifespan(app):
    yield {"opened": "database"}
    print("lifespan shutdown")

app = FastAPI(lifespan=lifespan, docs_url=None, openapi_url="/own.json")

@app.get("/hello/{name}")
async def hello(name: str, request: Request, q: str | None = None):
    return {"name": name, "host": request.url.hostname, "query": q, "state": request.state.opened}

@app.get("/numbers/{number:int}")
def number(number: int):
    return number

@app.get("/files/{path:path}/raw")
async def files(path: str):
    return path

@app.post("/echo", status_code=201)
async def echo(request: Request):
    return Response(await request.body(), 201, {"x-type": request.headers.get("content-type", "")})

@app.post("/size")
async def size(request: Request):
    return {"size": sum([len(chunk) async for chunk in request.stream()])}

@app.get("/info")
async def info():
    return {"shadowed": True}

@app.get("/ok")
async def ok():
    return {"ok": "shadowed"}

@app.get("/events")
async def events():
    async def stream():
        try:
            for number in range(1_000_000):
                yield f"data: {number}\\n\\n"
                await asyncio.sleep(0.005)
        finally:
            aborted.append("events")
    return StreamingResponse(stream(), media_type="text/event-stream")

@app.get("/large")
async def large():
    return Response(b"x" * 3_000_000)

@app.get("/aborted")
async def get_aborted():
    # As with uvicorn, Starlette leaves the generator of a response without a reader to the garbage collector.
    gc.collect()
    return aborted

@app.get("/cookies")
async def cookies(response: Response):
    response.set_cookie("a", "1")
    response.set_cookie("b", "2")
    return None

@app.get("/me")
async def me(request: Request):
    return {"identity": request.user.identity, "scopes": sorted(request.auth.scopes)}

@app.get("/threads-of-caller")
async def threads(key: str | None = None):
    own = get_client(api_key=key) if key else client
    try:
        thread = await own.threads.create(metadata={"by": "route"})
        events = [part.event async for part in own.runs.stream(thread["thread_id"], "js", input={})]
        return {**await own.threads.get(thread["thread_id"]), "events": events}
    except APIStatusError as error:
        return {"status": error.status_code}

@app.get("/fails")
async def fails():
    raise ValueError("secret of the app")

@app.get("/leaves")
async def leaves():
    raise SystemExit(1)

@app.get("/exits")
async def exits():
    os._exit(3)

@app.get("/waits")
async def waits():
    await asyncio.Event().wait()

@app.websocket("/socket")
async def socket(websocket: WebSocket):
    await websocket.accept()

wrapped = FastAPI()

@wrapped.middleware("http")
async def wrap(request: Request, call_next):
    if request.url.path.startswith("/threads") and request.method == "POST" and "refuse" in await request.json():
        return JSONResponse({"detail": "refused by the app"}, 418)
    response = await call_next(request)
    response.headers["x-wrapped"] = str(response.status_code)
    return response

@wrapped.get("/hello/{name}")
async def hello_wrapped(name: str):
    return name

@wrapped.get("/assistants/own/{name}")
async def assistant_wrapped(name: str):
    return name

@asynccontextmanager
async def broken(app):
    raise OSError("no database")
    yield

unstartable = FastAPI(lifespan=broken)

async def plain(scope, receive, send):
    """An application without a framework and without a lifespan."""
    assert scope["type"] == "http"
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
    if scope["path"] != "/none":
        await send({"type": "http.response.body", "body": scope["path"].encode()})
`;

/** A graph whose node calls the service with a client without a URL. */
const PYTHON_GRAPH = `
from typing import Any, TypedDict
from langgraph.graph import START, StateGraph
from langgraph_sdk import get_client

class State(TypedDict, total=False):
    found: Any

async def call(state: State):
    client = get_client()
    thread = await client.threads.create(metadata={"by": "graph"})
    events = [part.event async for part in client.runs.stream(thread["thread_id"], "js", input={})]
    return {"found": [events, (await client.threads.get(thread["thread_id"]))["metadata"]]}

graph = StateGraph(State).add_node(call).add_edge(START, "call").compile()
`;

let project: TestProject;
const start = async (
  http: object,
  options: { env?: Record<string, string>; files?: Record<string, string>; intervals?: Partial<Intervals> } = {},
) => {
  const langgraph = { graphs: { js: "./agent.mjs:graph", python: "./agent.py:graph" }, http };
  project = createProject({
    "agent.mjs": oneNodeGraph("one"),
    "agent.py": PYTHON_GRAPH,
    "app.py": FASTAPI,
    "langgraph.json": JSON.stringify(langgraph),
    ...options.files,
  });
  const { env = {}, intervals = {} } = options;
  return Scenario.start("sqlite", env, { config: project.config, intervals });
};

describe("an app of FastAPI", () => {
  let api: Scenario;
  let url: string;
  beforeAll(async () => {
    api = await start({ app: "./app.py:app" }, { env: { API_KEYS: KEY, HTTP_MAX_REQUEST_BODY_BYTES: "300000" } });
    url = await api.service.listen();
  });
  afterAll(async () => {
    await api.stop();
    project.drop();
  });

  it("serves its routes without a key, with parameters, queries and the state of its lifespan", async () => {
    const answer = await fetch(`${url}/hello/a%20b?q=1`);
    const host = new URL(url).hostname;
    expect(await answer.json()).toEqual({ name: "a b", host, query: "1", state: "database" });
    expect(await (await fetch(`${url}/numbers/12`)).text()).toBe("12");
    expect(await (await fetch(`${url}/files/a/b/raw`)).json()).toBe("a/b");
    expect((await fetch(`${url}/cookies`)).headers.getSetCookie()).toHaveLength(2);
    expect((await (await fetch(`${url}/own.json`)).json()) as object).toMatchObject({ info: { title: "FastAPI" } });
    expect((await (await fetch(`${url}/large`)).arrayBuffer()).byteLength).toBe(3_000_000);
  });

  it("shadows routes of the service except /ok, and leaves the others as they are", async () => {
    expect((await api.send("GET", "/info")).body).toEqual({ shadowed: true });
    expect((await api.send("GET", "/ok")).body).toEqual({ ok: true });
    expect((await api.send("POST", "/store/items/search", {})).status).toBe(401);
    expect((await api.send("GET", "/numbers/x", undefined, KEYED)).status).toBe(404);
    expect((await api.send("GET", "/socket", undefined, KEYED)).status).toBe(404);
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

  it("calls the service as the caller of the request, with streams", async () => {
    const own = await api.send("GET", "/threads-of-caller", undefined, KEYED);
    expect(own.body).toMatchObject({
      metadata: { by: "route" },
      events: expect.arrayContaining(["metadata", "values"]),
    });
    expect((await api.send("GET", "/threads-of-caller")).body).toEqual({ status: 401 });
    expect((await api.send("GET", `/threads-of-caller?key=${KEY}`)).body).toMatchObject({ metadata: { by: "route" } });
  });

  it("a client without a URL works in graphs, too", async () => {
    const { found } = (await api.send("POST", "/runs/wait", { assistant_id: "python", input: {} }, KEYED)).body;
    expect(found).toEqual([expect.arrayContaining(["metadata", "values"]), expect.objectContaining({ by: "graph" })]);
  });

  it("fails with 500 for its errors, and with 502 for open requests when it ends; the next request starts it again", async () => {
    for (const path of ["/fails", "/leaves"]) {
      const failed = await api.send("GET", path);
      expect([failed.status, failed.text]).toEqual([500, "Internal Server Error"]);
    }
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

describe("other ASGI applications and settings", () => {
  let api: Scenario | undefined;
  afterEach(async () => {
    await api?.stop();
    api = undefined;
    project.drop();
  });

  it("a middleware is around routes of the service, which still need a key", async () => {
    api = await start({ app: "./app.py:wrapped" }, { env: { API_KEYS: KEY } });
    const denied = await api.send("GET", "/assistants/js");
    expect([denied.status, denied.headers.get("x-wrapped")]).toEqual([401, "401"]);
    const answer = await api.send("GET", "/assistants/js", undefined, KEYED);
    expect([answer.body.name, answer.headers.get("x-wrapped")]).toEqual(["js", "200"]);
    expect((await api.send("POST", "/threads/search", { refuse: true }, KEYED)).status).toBe(418);
    // The middleware has read the body, and the service gets it, too.
    const { thread_id } = (await api.send("POST", "/threads", { metadata: { a: 1 } }, KEYED)).body;
    const path = `/threads/${thread_id}/runs/stream`;
    const events = await api.send("POST", path, { assistant_id: "js", input: {} }, KEYED);
    expect(events.text).toContain('"answer":"one"');
    expect((await api.send("GET", "/hello/x")).body).toBe("x");
  });

  it("middleware_order auth_first authenticates before the middleware, for routes of the service only", async () => {
    api = await start({ app: "./app.py:wrapped", middleware_order: "auth_first" }, { env: { API_KEYS: KEY } });
    const denied = await api.send("GET", "/assistants/js");
    expect([denied.status, denied.headers.get("x-wrapped")]).toEqual([401, null]);
    expect((await api.send("GET", "/assistants/js", undefined, KEYED)).headers.get("x-wrapped")).toBe("200");
    expect((await api.send("GET", "/hello/x")).status).toBe(200);
  });

  it("enable_custom_route_auth requires a key, and the app gets the user", async () => {
    api = await start({ app: "./app.py:app", enable_custom_route_auth: true }, { env: { API_KEYS: KEY } });
    expect((await api.send("GET", "/me")).status).toBe(401);
    const { body } = await api.send("GET", "/me", undefined, KEYED);
    expect(body).toEqual({ identity: "admin", scopes: expect.arrayContaining(["admin"]) });
  });

  it("enable_custom_route_auth also requires a key for encoded paths of an app with a middleware", async () => {
    api = await start({ app: "./app.py:wrapped", enable_custom_route_auth: true }, { env: { API_KEYS: KEY } });
    const paths = ["/hello/x", "/hello%2Fx", "/assistants%2Fx", "/assistants/own%2Fx", "/hello/x%0A", "/none"];
    for (const path of paths) expect([path, (await api.send("GET", path)).status]).toEqual([path, 401]);
    expect((await api.send("GET", "/hello%2Fx", undefined, KEYED)).body).toBe("x");
    expect((await api.send("OPTIONS", "/hello/x")).status).not.toBe(401);
  });

  it("an application without routes gets the requests that no route of the service matches, below the mount prefix", async () => {
    api = await start({ app: "./app.py:plain", mount_prefix: "/base" });
    expect((await api.send("GET", "/base/own/route")).text).toBe("/own/route");
    expect((await api.send("GET", "/base/assistants/js")).body.name).toBe("js");
    expect((await api.send("GET", "/own/route")).status).toBe(404);
    expect((await api.send("GET", "/base/none")).status).toBe(500);
  });

  it("reload replaces the app; one that cannot be loaded is reported", async () => {
    api = await start({ app: "./app.py:app" });
    expect((await api.send("GET", "/hello/x")).body.state).toBe("database");
    project.write("app.py", FASTAPI.replace('"opened": "database"', '"opened": "new"'));
    await api.service.threadmill.reload(api.service.config);
    expect((await api.send("GET", "/hello/x")).body.state).toBe("new");
    project.write("app.py", "app = 1");
    const failures = await api.service.threadmill.reload(api.service.config);
    expect(failures["http.app"]).toContain("the export is not an ASGI app");
    expect((await api.send("GET", "/hello/x")).status).toBe(502);
    expect((await api.send("GET", "/assistants/js")).status).toBe(200);
  });

  it("a startup that fails is a failure to load", async () => {
    api = await start({ app: "./app.py:unstartable" });
    expect((await api.service.threadmill.loaded)["http.app"]).toContain("OSError: no database");
    expect((await api.send("GET", "/own")).status).toBe(502);
  });
});
