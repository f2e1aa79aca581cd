import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createProject, oneNodeGraph, type TestProject } from "../../support/project.ts";
import { ADMIN, closedService, newCaller } from "../callers.ts";
import type { Scenario, Wire } from "../scenario.ts";

type Headers = Record<string, string>;

const AUTH = `
import { Auth, HTTPException } from "@langchain/langgraph-sdk/auth";
export const auth = new Auth()
  .authenticate((request) => {
    const [, identity] = /^Bearer (\\w+)$/.exec(request.headers.get("authorization") ?? "") ?? [];
    if (!identity) throw new HTTPException(401, { message: "Who are you?" });
    return { identity };
  })
  .on("*", ({ value, user }) => {
    value.metadata = { ...value.metadata, owner: user.identity };
    return { owner: user.identity };
  });
`;

/** Routes at paths of the app, of a public path and of a scope of the service. */
const APP = `
import { Client } from "@langchain/langgraph-sdk";
import { Hono } from "hono";
export const app = new Hono();
app.use("/assistants/*", (c, next) => next());
const find = async (c) => {
  const key = c.req.query("key");
  try {
    const client = new Client(key ? { apiKey: key } : {});
    return c.json((await client.threads.search()).map(({ metadata }) => metadata.owner));
  } catch (error) {
    return c.json({ status: error.status ?? null, message: error.message });
  }
};
app.get("/found", find);
app.get("/public/found", find);
app.get("/datasets/found", find);
app.get("/new", async (c) => c.json(await new Client().threads.create()));
`;

const GRAPH = `
import { Annotation, StateGraph } from "@langchain/langgraph";
const fetch = globalThis[Symbol.for("langgraph_api:fetch")];
export const graph = new StateGraph(Annotation.Root({ found: Annotation() }))
  .addNode("look", async () => ({ found: await (await fetch("http://localhost/found")).json() }))
  .addEdge("__start__", "look").addEdge("look", "__end__").compile();
`;

const ada: Headers = { authorization: "Bearer ada" };
const bob: Headers = { authorization: "Bearer bob" };

const ROUTES = ["/found", "/public/found", "/datasets/found"];

describe.each([false, true])("an app and an authentication module, enable_custom_route_auth %s", (requires_auth) => {
  let api: Scenario;
  let project: TestProject;
  let worker: { "X-Api-Key": string };
  beforeAll(async () => {
    const langgraph = {
      graphs: { agent: "./agent.mjs:graph", calls: "./calls.mjs:graph" },
      auth: { path: "./auth.mjs:auth" },
      http: { app: "./app.mjs:app", enable_custom_route_auth: requires_auth },
    };
    project = createProject({
      "langgraph.json": JSON.stringify(langgraph),
      "agent.mjs": oneNodeGraph("one"),
      "calls.mjs": GRAPH,
      "auth.mjs": AUTH,
      "app.mjs": APP,
    });
    api = await closedService("sqlite", {}, { config: project.config });
    await api.call("POST", "/threads", {}, ada);
    await api.call("POST", "/threads", {}, bob);
    worker = await newCaller(api, { scopes: ["agents", "experiments"] });
  });
  afterAll(async () => {
    await api.stop();
    project.drop();
  });

  const get = (path: string, headers: Headers = {}) => api.send("GET", path, undefined, headers);
  const refusal = { status: 401, message: expect.stringContaining("Who are you?") };

  it.each(ROUTES)("the client of %s acts as the user", async (path) => {
    expect((await get(path, ada)).body).toEqual(["ada"]);
    expect((await get(path, bob)).body).toEqual(["bob"]);
    const created: Wire = (await get("/new", { authorization: "Bearer eve" })).body;
    expect(created.metadata).toEqual({ owner: "eve" });
    expect((await get(path, { authorization: "Bearer eve" })).body).toContain("eve");
  });

  it.each(ROUTES)("the client of %s has all access with an administrator's key only", async (path) => {
    expect((await get(path, ADMIN)).body).toEqual(expect.arrayContaining(["ada", "bob"]));
    expect((await get(path, worker)).body).toEqual(refusal);
    // A user who also sends a key that is valid for other products.
    expect((await get(path, { ...ada, ...worker })).body).toEqual(["ada"]);
  });

  it("requests without credentials are refused before or behind the route", async () => {
    for (const path of ROUTES) {
      const { status, body } = await get(path);
      if (requires_auth) expect([status, body]).toEqual([401, { detail: "Who are you?" }]);
      else expect([status, body]).toEqual([200, refusal]);
    }
  });

  it("a key of the client itself needs the scope admin", async () => {
    const own = `/found?key=${worker["X-Api-Key"]}`;
    if (!requires_auth) expect((await get(own)).body).toEqual(refusal);
    expect((await get(own, worker)).body).toEqual(refusal);
    expect((await get(`/found?key=${ADMIN["X-Api-Key"]}`, worker)).body).toEqual(
      expect.arrayContaining(["ada", "bob"]),
    );
  });

  it("the middleware of the app changes nothing about routes of the service", async () => {
    expect((await get("/assistants/agent", worker)).status).toBe(401);
    expect((await get("/assistants/agent", ada)).status).toBe(200);
  });

  it("requests of a graph keep the user of its run", async () => {
    const run = { assistant_id: "calls", input: {} };
    expect((await api.call("POST", "/runs/wait", run, ada)).found).toEqual(["ada"]);
    expect((await api.call("POST", "/runs/wait", run, ADMIN)).found).toEqual(expect.arrayContaining(["ada", "bob"]));
  });
});
