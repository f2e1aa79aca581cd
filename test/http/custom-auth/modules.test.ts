import { afterEach, describe, expect, it } from "vitest";
import { createProject, type TestProject } from "../../support/project.ts";
import { Scenario, type Wire } from "../scenario.ts";

/** A graph that returns the user of its run, and the threads that its client without a URL finds. */
const GRAPH = `
import { Annotation, StateGraph } from "@langchain/langgraph";
const fetch = globalThis[Symbol.for("langgraph_api:fetch")];
const json = { method: "POST", body: "{}", headers: { "content-type": "application/json" } };
export const graph = new StateGraph(Annotation.Root({ user: Annotation(), found: Annotation() }))
  .addNode("look", async (_, { configurable }) => {
    const response = await fetch("http://localhost/threads/search", json);
    return { user: configurable.langgraph_auth_user, found: await response.json() };
  })
  .addEdge("__start__", "look").addEdge("look", "__end__").compile();
`;

const AUTH = `
import { Auth } from "@langchain/langgraph-sdk/auth";
let calls = 0;
const name = (request) => request.headers.get("authorization") ?? "anonymous";
export const auth = new Auth()
  .authenticate((request) => ({ identity: name(request), calls: ++calls }))
  .on("threads", ({ value, user }) => {
    value.metadata = { ...value.metadata, owner: user.identity };
    return { owner: user.identity };
  });
export const open = new Auth().authenticate(name);
export const unfinished = new Auth();
export const broken = { nonsense: true };
export const blind = new Auth().authenticate(name).on("*", () => "yes");
`;

describe("an authentication module", () => {
  let api: Scenario | undefined;
  let project: TestProject | undefined;
  afterEach(async () => {
    await api?.stop();
    project?.drop();
    api = undefined;
  });

  async function start(auth: object): Promise<Scenario> {
    const config = { graphs: { agent: "./agent.mjs:graph" }, auth };
    project = createProject({ "langgraph.json": JSON.stringify(config), "agent.mjs": GRAPH, "auth.mjs": AUTH });
    api = await Scenario.start("sqlite", {}, { config: project.config });
    return api;
  }

  const run = (api: Scenario, name: string): Promise<Wire> =>
    api.call("POST", "/runs/wait", { assistant_id: "agent", input: {} }, { authorization: name });

  it("is called once per user with a cache, and decides about the requests of graphs", async () => {
    const cache = { cache_keys: ["authorization"], ttl_seconds: 60, max_size: 2 };
    const api = await start({ path: "./auth.mjs:auth", cache });
    const { thread_id } = await api.call("POST", "/threads", {}, { authorization: "ada" });
    expect((await run(api, "ada")).found).toEqual([expect.objectContaining({ thread_id })]);
    expect((await run(api, "bob")).found).toEqual([]);
    expect((await run(api, "ada")).user.calls).toBe(1);
    // The third user takes the place of the oldest.
    expect((await run(api, "eve")).user).toMatchObject({ identity: "eve", permissions: [], calls: 3 });
    expect((await run(api, "bob")).user.calls).toBe(2);
    expect((await run(api, "ada")).user.calls).toBe(4);
  });

  it("permits everything without handlers for events", async () => {
    const api = await start({ path: "./auth.mjs:open" });
    const { thread_id } = await api.call("POST", "/threads", {}, { authorization: "ada" });
    expect((await run(api, "bob")).found).toEqual([expect.objectContaining({ thread_id })]);
    await api.call("PUT", "/store/items", { namespace: ["a"], key: "k", value: {} }, { authorization: "ada" });
  });

  it.each(["unfinished", "broken", "missing", "blind"])("that cannot decide (%s) permits nothing", async (name) => {
    const api = await start({ path: `./auth.mjs:${name}` });
    expect((await api.send("POST", "/threads", {})).status).toBe(500);
    expect((await api.send("GET", "/store/items?namespace=a&key=k")).status).toBe(500);
    expect((await api.send("GET", "/ok")).status).toBe(200);
  });
});
