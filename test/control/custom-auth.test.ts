import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { AGENT, PROJECT } from "./deployed-project.ts";
import { DeployedService, OPERATOR_KEY } from "./deployed-service.ts";

/** Users are named by their token. The graph gets what the handler saw of the request. */
const AUTH = `
import { Auth, HTTPException } from "@langchain/langgraph-sdk/auth";
export const auth = new Auth()
  .authenticate(async (request) => {
    const name = /^Bearer user-(\\w+)$/.exec(request.headers.get("authorization") ?? "")?.[1];
    if (!name) throw new HTTPException(401, { message: "Who are you?" });
    return { identity: name, permissions: [], headers: Object.fromEntries(request.headers) };
  })
  .on("*", ({ value, user }) => {
    if (value && "metadata" in value) value.metadata = { ...value.metadata, owner: user.identity };
    return { owner: user.identity };
  });
`;

const INSPECT = `
import { Annotation, StateGraph } from "@langchain/langgraph";
export const graph = new StateGraph(Annotation.Root({ user: Annotation }))
  .addNode("node", (_, { configurable }) => ({ user: configurable.langgraph_auth_user }))
  .addEdge("__start__", "node").addEdge("node", "__end__").compile();
`;

const WITH_AUTH = {
  "langgraph.json": JSON.stringify({
    graphs: { agent: "./agent.mjs:graph", inspect: "./inspect.mjs:graph" },
    auth: { path: "./auth.mjs:auth" },
  }),
  "package.json": JSON.stringify({ private: true, dependencies: { "@langchain/langgraph-sdk": "1.15.0" } }),
  "agent.mjs": AGENT,
  "inspect.mjs": INSPECT,
  "auth.mjs": AUTH,
};

describe("a deployment with an authentication module", () => {
  let service: DeployedService;
  let base: string;
  beforeAll(async () => {
    service = await DeployedService.start("sqlite");
    await service.becomes(await service.deploy(WITH_AUTH), "DEPLOYED");
    base = `${service.server.url}/deployments/mine`;
  });
  afterAll(() => service.close());

  type Headers = Record<string, string>;
  const alice = { authorization: "Bearer user-alice" };
  const bob = { authorization: "Bearer user-bob" };
  const admin = { "x-api-key": OPERATOR_KEY };
  async function send(headers: Headers, method: string, path: string, body?: unknown) {
    const json = body === undefined ? {} : { "content-type": "application/json" };
    const sent = {
      method,
      headers: { ...json, ...headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    };
    const answer = await fetch(base + path, sent);
    const text = await answer.text();
    return { status: answer.status, body: text === "" ? undefined : JSON.parse(text) };
  }
  const newKey = async (scopes: string[]): Promise<Headers> => {
    const { key } = (await service.call("POST", "/admin/keys", { name: "member", user_id: "member", scopes })) as {
      key: string;
    };
    return { "x-api-key": key };
  };

  it("authenticates its users, who see only their own threads", async () => {
    const { body } = await send(alice, "POST", "/threads", {});
    expect(body.metadata).toMatchObject({ owner: "alice" });
    const thread = `/threads/${body.thread_id}`;
    expect((await send(alice, "GET", thread)).status).toBe(200);
    expect((await send(bob, "GET", thread)).status).toBe(404);
    expect((await send(admin, "GET", thread)).status).toBe(200);
    expect(await send({}, "GET", thread)).toMatchObject({ status: 401, body: { detail: "Who are you?" } });
  });

  it("receives the credentials of its users, but no name of another user", async () => {
    const spoofed = {
      ...alice,
      "x-api-key": "a-key-of-the-project",
      "x-threadmill-user": "root",
      "x-tenant-id": "other",
    };
    const { body } = await send(spoofed, "POST", "/runs/wait", { assistant_id: "inspect", input: {} });
    expect(body.user).toMatchObject({
      identity: "alice",
      headers: { authorization: alice.authorization, "x-api-key": "a-key-of-the-project" },
    });
    expect(Object.keys(body.user.headers)).not.toEqual(expect.arrayContaining(["x-threadmill-user"]));
    expect(Object.keys(body.user.headers)).not.toEqual(expect.arrayContaining(["x-tenant-id"]));
  });

  it("never receives a key of the service", async () => {
    const agents = await newKey(["agents"]);
    const authorization = `Bearer ${agents["x-api-key"]}`;
    for (const headers of [
      agents,
      { ...alice, ...agents },
      { authorization },
      { authorization, "x-api-key": "another" },
    ])
      expect(await send(headers, "POST", "/threads", {})).toMatchObject({
        status: 403,
        body: { detail: expect.stringContaining("admin") },
      });
    const { body } = await send(admin, "POST", "/runs/wait", { assistant_id: "inspect", input: {} });
    expect(JSON.stringify(body)).not.toContain(OPERATOR_KEY);
  });

  it("authenticates the users of WebSockets", async () => {
    const url = `${base.replace("http:", "ws:")}/threads/${crypto.randomUUID()}/stream/events`;
    const statusOf = (headers: Headers) =>
      new Promise((resolve, reject) => {
        const socket = new WebSocket(url, { headers });
        socket.on("open", () => {
          socket.terminate();
          resolve(101);
        });
        socket.on("unexpected-response", (_, { statusCode }) => resolve(statusCode));
        socket.on("error", reject);
      });
    expect(await statusOf(alice)).toBe(101);
    expect(await statusOf({})).toBe(401);
  });

  it("does not affect the control plane itself", async () => {
    const answer = await fetch(`${service.server.url}/v2/deployments`, { headers: alice });
    expect(answer.status).toBe(401);
  });

  it("does not refuse its users while an instance starts again", { timeout: 120_000 }, async () => {
    const ask = (input: object) => send(alice, "POST", "/runs/wait", { assistant_id: "agent", input });
    const { pid } = (await ask({ exit: true })).body.answer;
    const refused: unknown[] = [];
    for (let next = pid; next === pid; ) {
      const { status, body } = await ask({});
      if (status === 200) next = body.answer.pid;
      else if (![502, 503].includes(status)) refused.push(body);
    }
    expect(refused).toEqual([]);
  });

  it("requires a key after a revision without the module, and admits users again after one with it", {
    timeout: 120_000,
  }, async () => {
    const { thread_id } = (await send(alice, "POST", "/threads", {})).body;
    const agents = await newKey(["agents"]);
    const path = `/threads/${thread_id}`;
    /** The statuses while a source is deployed, and after it. */
    async function during(files: Record<string, string>, headers: Headers): Promise<number[]> {
      const seen = new Set<number>();
      let isOver = false;
      const over = service.deploy(files).then((id) => service.becomes(id, "DEPLOYED"));
      void over.finally(() => {
        isOver = true;
      });
      while (!isOver) seen.add((await send(headers, "GET", path)).status);
      await over;
      // A slow machine may send none between the switch and the status of the deployment.
      seen.add((await send(headers, "GET", path)).status);
      return [...seen].toSorted();
    }
    expect(await during(PROJECT, alice)).toEqual([200, 401]);
    expect((await send(agents, "GET", path)).status).toBe(200);
    expect(await during(WITH_AUTH, agents)).toEqual([200, 403]);
    expect((await send(alice, "GET", path)).status).toBe(200);
  });
});
