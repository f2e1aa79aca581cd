import { afterEach, describe, expect, it } from "vitest";
import { createProject, type TestProject } from "../support/project.ts";
import { Scenario, type Wire } from "./scenario.ts";

/** A graph that returns the user of its run. */
const PYTHON_GRAPH = `
from typing import Any, TypedDict
from langgraph.graph import START, StateGraph

class State(TypedDict, total=False):
    user: Any

def look(state: State, config):
    return {"user": dict(config["configurable"]["langgraph_auth_user"])}

graph = StateGraph(State).add_node(look).add_edge(START, "look").compile()
`;

const JS_GRAPH = `
import { Annotation, StateGraph } from "@langchain/langgraph";
export const graph = new StateGraph(Annotation.Root({ user: Annotation() }))
  .addNode("look", (_, { configurable }) => ({ user: configurable.langgraph_auth_user }))
  .addEdge("__start__", "look").addEdge("look", "__end__").compile();
`;

const PYTHON_AUTH = `
import itertools
from dataclasses import dataclass, field
from langgraph_sdk import Auth
from helper import name_of

calls = itertools.count(1)
auth, open_, unfinished, blind, unknown = Auth(), Auth(), Auth(), Auth(), Auth()
broken = {"nonsense": True}

@auth.authenticate
def authenticate(authorization, request, path_params, query_params, headers, method):
    name = name_of(authorization)
    if name == "spins":
        while True:
            pass
    seen = [method, request.url.path, path_params, query_params, headers[b"authorization"].decode()]
    return {"identity": name, "calls": next(calls), "seen": seen}

@auth.on.threads
async def own(ctx, value):
    value["metadata"] = {**(value.get("metadata") or {}), "owner": ctx.user.identity}
    return {"owner": ctx.user.identity}

@dataclass
class User:
    identity: str
    permissions: list[str] = field(default_factory=lambda: ["read"])

@open_.authenticate
async def as_object(authorization):
    return User(name_of(authorization))

@blind.authenticate
async def anybody(authorization):
    return "anybody"

@blind.on
async def unclear(ctx, value):
    return "yes"

@unknown.authenticate
async def with_body(body):
    return "anybody"
`;

const SLOW_AUTH = `
import asyncio, time
from langgraph_sdk import Auth

time.sleep(1)
auth = Auth()

@auth.authenticate
async def authenticate(authorization):
    await asyncio.sleep(3)
    return "ada"
`;

const JS_AUTH = `
import { Auth } from "@langchain/langgraph-sdk/auth";
export const auth = new Auth().authenticate((request) => request.headers.get("authorization") ?? "anonymous");
`;

describe("an authentication module in Python", () => {
  let api: Scenario | undefined;
  let project: TestProject | undefined;
  afterEach(async () => {
    await api?.stop();
    project?.drop();
    api = undefined;
  });

  async function start(auth: object, intervals = {}): Promise<Scenario> {
    const config = { graphs: { python: "./agent.py:graph", js: "./agent.mjs:graph" }, auth };
    project = createProject({
      "langgraph.json": JSON.stringify(config),
      "agent.py": PYTHON_GRAPH,
      "agent.mjs": JS_GRAPH,
      "auth.py": PYTHON_AUTH,
      "auth.mjs": JS_AUTH,
      "slow_auth.py": SLOW_AUTH,
      "helper.py": "def name_of(authorization): return authorization or 'anonymous'",
    });
    api = await Scenario.start("sqlite", {}, { config: project.config, intervals });
    return api;
  }

  const run = (api: Scenario, assistant_id: string, name: string): Promise<Wire> =>
    api.call("POST", "/runs/wait", { assistant_id, input: {} }, { authorization: name });

  it("is called once per user with a cache, in a project with graphs of both languages", async () => {
    const cache = { cache_keys: ["authorization"], ttl_seconds: 60, max_size: 2 };
    const api = await start({ path: "./auth.py:auth", cache });
    for (const graph of ["python", "js"])
      expect((await run(api, graph, "ada")).user).toMatchObject({ identity: "ada", permissions: [], calls: 1 });
    expect((await run(api, "js", "bob")).user.calls).toBe(2);
    // The third user takes the place of the oldest.
    expect((await run(api, "js", "eve")).user.calls).toBe(3);
    expect((await run(api, "js", "ada")).user.calls).toBe(4);
  });

  it("gets the parts of the request that its parameters name", async () => {
    const api = await start({ path: "./auth.py:auth" });
    const { thread_id } = await api.call("POST", "/threads", {}, { authorization: "ada" });
    const path = `/threads/${thread_id}/runs/wait`;
    const body = { assistant_id: "js", input: {} };
    const { user } = await api.call("POST", `${path}?a=1&b=%20`, body, { authorization: "ada" });
    expect(user.seen).toEqual(["POST", path, { thread_id }, { a: "1", b: " " }, "ada"]);
    expect((await api.send("GET", `/threads/${thread_id}`, undefined, { authorization: "bob" })).status).toBe(404);
  });

  it("permits everything without handlers for events, and may return an object", async () => {
    const api = await start({ path: "./auth.py:open_" });
    await api.call("POST", "/threads", {}, { authorization: "ada" });
    expect(await api.call("POST", "/threads/search", {}, { authorization: "bob" })).toHaveLength(1);
    expect((await run(api, "python", "ada")).user).toMatchObject({ identity: "ada", permissions: ["read"] });
  });

  it("with a synchronous handler that never ends fails its request only, and is replaced", async () => {
    const api = await start({ path: "./auth.py:auth" }, { auth_timeout_ms: 3_000, host_silent_ms: 2_000 });
    await api.call("POST", "/threads", {}, { authorization: "ada" });
    const failing = api.send("POST", "/threads", {}, { authorization: "spins" });
    expect((await api.send("POST", "/threads", {}, { authorization: "ada" })).status).toBe(200);
    expect((await failing).status).toBe(500);
    expect((await run(api, "js", "ada")).user.calls).toBe(1);
  });

  it("has all of its time for a request that came while the module was loading", async () => {
    const api = await start({ path: "./slow_auth.py:auth" }, { auth_timeout_ms: 4_000 });
    await api.call("POST", "/threads", {});
  });

  it.each(["unfinished", "broken", "missing", "blind", "unknown"])(
    "that cannot decide (%s) permits nothing",
    async (name) => {
      const api = await start({ path: `./auth.py:${name}` });
      expect((await api.send("POST", "/threads", {})).status).toBe(500);
      expect((await api.send("GET", "/store/items?namespace=a&key=k")).status).toBe(500);
      expect((await api.send("GET", "/ok")).status).toBe(200);
    },
  );

  it("may be one in JavaScript for graphs in Python", async () => {
    const api = await start({ path: "./auth.mjs:auth" });
    expect((await run(api, "python", "ada")).user).toMatchObject({ identity: "ada" });
  });
});
