import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createProject, oneNodeGraph } from "../support/project.ts";
import { startService } from "../support/service.ts";
import { parseSse } from "../support/sse.ts";
import { until } from "../support/until.ts";
import { ADMIN, closedService, newCaller } from "./callers.ts";
import { Scenario, type Wire } from "./scenario.ts";

const BOTH = { accept: "application/json, text/event-stream" };
const SLOW = { name: "slow", arguments: { steps: [], door: null } };
const ENVELOPE = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": { elicitation: {} },
};

const request = (method: string, params: object = {}, id: unknown = 1) => ({ jsonrpc: "2.0", id, method, params });

const statelessHeaders = (method: string, name?: string) => ({
  ...BOTH,
  "mcp-protocol-version": "2026-07-28",
  "mcp-method": method,
  ...(name && { "mcp-name": name }),
});

/** The last JSON-RPC message of an answer, which is JSON or an event stream. */
function messageIn({ body, text }: { body: Wire; text: string }): Wire {
  return body ?? parseSse(text).at(-1)?.data;
}

describe("the MCP endpoint", () => {
  let api: Scenario;
  beforeAll(async () => {
    api = await Scenario.start("sqlite");
  });
  afterAll(() => api.stop());

  const post = (body: unknown, headers: Record<string, string> = {}, path = "/mcp") =>
    api.send("POST", path, body, { ...BOTH, ...headers });
  const stateless = async (method: string, params: Wire = {}, headers: Record<string, string> = {}) => {
    const body = request(method, { ...params, _meta: ENVELOPE });
    return messageIn(await post(body, { ...statelessHeaders(method, params.name), ...headers }));
  };

  it.each(["/mcp", "/mcp/"])("answers at %s without a session", async (path) => {
    const answer = await post(request("tools/list"), {}, path);
    expect(answer.status).toBe(200);
    expect(messageIn(answer).result.tools.length).toBeGreaterThan(10);
  });

  it.each([
    ["GET", {}, 405],
    ["GET", { "mcp-session-id": randomUUID() }, 405],
    ["DELETE", {}, 404],
    ["DELETE", { "mcp-session-id": randomUUID() }, 405],
    ["PUT", {}, 404],
  ] as const)("answers %s with %j by %i", async (method, headers, status) => {
    const answer = await api.send(method, "/mcp", undefined, { ...BOTH, ...headers });
    expect(answer.status).toBe(status);
    if (status === 405) expect(answer.headers.get("allow")).toBe("POST");
  });

  it.each(["", "*/*", "application/json", "text/event-stream"])("refuses the header Accept: %s", async (accept) => {
    const answer = await post(request("tools/list"), { accept });
    expect([answer.status, answer.body.error.message]).toEqual([400, expect.stringContaining("Accept")]);
  });

  it.each([
    ["no JSON", "{", 400, -32700],
    ["nothing", undefined, 400, -32600],
    ["a batch", [request("tools/list")], 400, -32600],
    ["a text", '"a"', 400, -32600],
    ["no message", {}, 400, expect.any(Number)],
    ["a deep body", `{"a":${"[".repeat(200)}${"]".repeat(200)}}`, 400, -32700],
    ["parameters of another type", request("tools/call", { name: 1 }), 200, -32602],
    ["no name", request("tools/call", {}), 200, -32602],
    ["arguments that are a list", request("tools/call", { name: "chain", arguments: [] }), 200, -32602],
    ["another method", request("prompts/list"), 200, -32601],
    ["another cursor", request("tools/list", { cursor: "x" }), 200, -32602],
    ["a cursor of another type", request("tools/list", { cursor: {} }), 200, -32603],
  ])("refuses %s", async (_, body, status, code) => {
    const answer = await post(body);
    expect([answer.status, messageIn(answer).error.code]).toEqual([status, code]);
  });

  it("accepts notifications, even of sessions and requests that do not exist", async () => {
    for (const body of [
      { jsonrpc: "2.0", method: "notifications/initialized" },
      { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 9 } },
      { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: {} } },
      { jsonrpc: "2.0", method: "notifications/cancelled" },
    ]) {
      const answer = await post(body, { "mcp-session-id": randomUUID() });
      expect([answer.status, answer.text]).toEqual([202, ""]);
    }
  });

  it("negotiates a version and names the session, which other requests do not need", async () => {
    const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "test", version: "1" } };
    const answer = await post(request("initialize", params));
    expect(messageIn(answer).result).toMatchObject({
      protocolVersion: "2025-11-25",
      serverInfo: { name: "threadmill" },
      capabilities: { tools: {} },
    });
    expect(answer.headers.get("mcp-session-id")).toMatch(/^[\da-f-]{36}$/);
    expect((await post(request("ping"))).headers.get("mcp-session-id")).toBeNull();
  });

  it("refuses a request of 2026-07-28 whose headers do not match, and closes a subscription at once", async () => {
    const body = request("tools/list", { _meta: ENVELOPE });
    const other = await post(body, { ...statelessHeaders("tools/call") });
    expect([other.status, messageIn(other).error.code]).toEqual([400, -32020]);
    const listening = await stateless("subscriptions/listen", { notifications: { toolsListChanged: true } });
    expect(listening.result.resultType).toBe("complete");
  });

  it("lists all assistants in pages", async () => {
    for (let i = 0; i < 60; i++) await api.post("/assistants", { graph_id: "chain", name: `paged ${i}` });
    const names: string[] = [];
    let params: { cursor?: string } = {};
    do {
      const { result } = messageIn(await post(request("tools/list", params)));
      names.push(...result.tools.map((tool: Wire) => tool.name));
      params = { cursor: result.nextCursor };
    } while (params.cursor !== undefined);
    expect(names.filter((name) => name.startsWith("paged_")).length).toBe(60);
    expect(new Set(names).size).toBe(names.length);
    expect(names.every((name) => /^[\w-]{1,64}$/.test(name))).toBe(true);
  });

  it("refuses the second request with an id of a session", async () => {
    const session = { "mcp-session-id": randomUUID() };
    const body = request("tools/call", { name: "chain", arguments: { steps: [] } });
    expect(messageIn(await post(body, session)).result.structuredContent.steps).toHaveLength(3);
    expect(messageIn(await post(body, session)).error.message).toContain("must not have been used before");
    expect(messageIn(await post({ ...body, id: "1" }, session)).result.structuredContent.steps).toHaveLength(3);
  });

  it("deletes the threads of its calls, but for those of paused runs", async () => {
    const count = () => api.post("/threads/count");
    const before = await count();
    await post(request("tools/call", { name: "chain", arguments: { steps: [] } }));
    expect(await count()).toBe(before);
    const { result } = messageIn(await post(request("tools/call", { name: "gate", arguments: { steps: [] } })));
    expect(await count()).toBe(before + 1);
    expect(await api.thread(result._meta.thread_id)).toMatchObject({ status: "interrupted" });
  });

  it("sends a long output as text only", async () => {
    const steps = ["x".repeat(300_000)];
    const { result } = messageIn(await post(request("tools/call", { name: "chain", arguments: { steps } })));
    expect(JSON.parse(result.content[0].text).steps).toEqual([...steps, "a", "b", "c"]);
    expect(result.structuredContent).toBeUndefined();
  });

  it("needs a key with the scope agents where there are keys", async () => {
    const closed = await closedService("sqlite");
    const statusWith = async (headers: object) =>
      (await closed.send("POST", "/mcp", request("tools/list"), { ...BOTH, ...headers })).status;
    expect(await statusWith({})).toBe(401);
    expect(await statusWith({ "x-api-key": "none" })).toBe(401);
    expect(await statusWith(await newCaller(closed, { scopes: ["experiments"] }))).toBe(403);
    expect(await statusWith(await newCaller(closed, { scopes: ["agents"] }))).toBe(200);
    await closed.stop();
  });

  it("refuses pages of other origins", async () => {
    const answer = await post(request("tools/list"), { origin: "https://attacker.example" });
    expect(answer.status).toBe(403);
  });

  describe("the state of a paused call", () => {
    const pause = async (name = "gate", headers = {}): Promise<string> => {
      const { result } = await stateless("tools/call", { name, arguments: { steps: [] } }, headers);
      expect(result.resultType).toBe("input_required");
      return result.requestState;
    };
    const answerTo = (requestState: unknown, inputResponses: object = {}, name = "gate") =>
      stateless("tools/call", { name, arguments: { steps: [] }, requestState, inputResponses });

    it("that is invented, or belongs to another tool or an ended run, is refused", async () => {
      const { run_id } = await api.newRun(await api.newThread(), { assistant_id: "gate", input: { steps: [] } });
      for (const state of ["", "x", randomUUID(), `${await pause()}x`])
        expect((await answerTo(state)).error).toMatchObject({ code: -32602 });
      await until("it is paused", async () => (await answerTo(run_id)).result?.resultType === "input_required");
      expect((await answerTo(await pause(), {}, "parallel")).error).toMatchObject({ code: -32602 });
      const ended = messageIn(await post(request("tools/call", { name: "chain", arguments: { steps: [] } })));
      expect((await answerTo(ended.result._meta.run_id, {}, "chain")).error).toMatchObject({ code: -32602 });
    });

    it("without answers asks again, and is used up by an answer", async () => {
      const state = await pause();
      const again = await answerTo(state);
      expect(again.result).toMatchObject({ resultType: "input_required", requestState: state });
      const answers = Object.fromEntries(
        Object.keys(again.result.inputRequests).map((id) => [id, { action: "accept", content: { answer: "Ada" } }]),
      );
      const second = await answerTo(state, answers);
      expect(second.result.requestState).not.toBe(state);
      const late = await answerTo(state, answers);
      expect(late.result.resultType).toBe("input_required");
      const ids = Object.keys(second.result.inputRequests);
      const ages = Object.fromEntries(ids.map((id) => [id, { action: "accept", content: { answer: "36" } }]));
      expect((await answerTo(second.result.requestState, ages)).result.structuredContent).toMatchObject({
        answers: { name: "Ada", age: 36 },
      });
      expect((await answerTo(state, answers)).result).toMatchObject({ isError: true });
    });
  });
});

describe("users of the MCP endpoint", () => {
  it("reach only the calls of their own user and workspace", async () => {
    const api = await closedService("sqlite");
    try {
      const [mine, other] = await Promise.all(["a", "b"].map((user_id) => newCaller(api, { user_id })));
      const session = { "mcp-session-id": randomUUID() };
      const calling = api.send("POST", "/mcp", request("tools/call", SLOW, 7), { ...BOTH, ...session, ...mine });
      const active = async () => (await api.call("GET", "/app/api/runs?status=running", undefined, ADMIN)).runs;
      await until("it runs", async () => (await active()).length === 1);
      const cancel = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 7, reason: "enough" } };
      const cancelBy = (headers: Record<string, string> | undefined) =>
        api.send("POST", "/mcp", cancel, { ...BOTH, ...session, ...headers });
      expect((await cancelBy(other)).status).toBe(202);
      expect((await cancelBy({ ...mine, "mcp-session-id": randomUUID() })).status).toBe(202);
      expect(await active()).toHaveLength(1);
      expect((await cancelBy(mine)).status).toBe(202);
      expect(messageIn(await calling).result).toMatchObject({
        isError: true,
        content: [{ text: "The run was cancelled. Reason: enough" }],
      });

      const params = { name: "gate", arguments: { steps: [] }, _meta: ENVELOPE };
      const call = (body: object, headers: Record<string, string> | undefined) =>
        api.send("POST", "/mcp", body, { ...statelessHeaders("tools/call", "gate"), ...headers }).then(messageIn);
      const { requestState } = (await call(request("tools/call", params), mine)).result;
      const resumed = request("tools/call", { ...params, requestState });
      expect((await call(resumed, other)).error).toMatchObject({ code: -32602 });
      expect((await call(resumed, mine)).result.resultType).toBe("input_required");
    } finally {
      await api.stop();
    }
  });

  it("are authorized by the handlers of the project, as for POST /runs/wait", async () => {
    const api = await closedService("sqlite", {}, { config: "test/graphs/scenarios/auth.json" });
    try {
      const bearer = (name: string) => ({ ...BOTH, authorization: `Bearer ${name}` });
      const send = async (name: string, body: object) => messageIn(await api.send("POST", "/mcp", body, bearer(name)));
      const assistant = { graph_id: "chain", name: "of alice" };
      await api.call("POST", "/assistants", assistant, bearer("alice"));
      const names = async (name: string) =>
        (await send(name, request("tools/list"))).result.tools.map((tool: Wire) => tool.name);
      expect(await names("alice")).toContain("of_alice");
      expect(await names("bob")).not.toContain("of_alice");
      expect(await names("bob")).toContain("chain");
      const call = (name: string, tool: string) =>
        send(name, request("tools/call", { name: tool, arguments: { steps: [] } }));
      expect((await call("alice", "of_alice")).result.structuredContent.steps).toHaveLength(3);
      expect((await call("bob", "of_alice")).error.message).toContain("Unknown tool");
      const { seen } = (await call("alice", "inspect")).result.structuredContent;
      expect(seen.configurable).toMatchObject({ user_id: "alice", langgraph_auth_user_id: "alice" });
      const { thread_id } = (await call("alice", "gate")).result._meta;
      expect((await api.send("GET", `/threads/${thread_id}`, undefined, bearer("alice"))).status).toBe(200);
      expect((await api.send("GET", `/threads/${thread_id}`, undefined, bearer("bob"))).status).toBe(404);
    } finally {
      await api.stop();
    }
  });

  it("get 429 for a call above the limit of open responses, but can cancel", async () => {
    const api = await closedService("sqlite", { THREADMILL_MAX_OPEN_PER_USER: "1" });
    try {
      const mine = { ...(await newCaller(api, { user_id: "a" })), ...BOTH, "mcp-session-id": randomUUID() };
      const first = api.send("POST", "/mcp", request("tools/call", SLOW, 1), mine);
      const active = async () => (await api.call("GET", "/app/api/runs?status=running", undefined, ADMIN)).runs;
      await until("it runs", async () => (await active()).length === 1);
      expect((await api.send("POST", "/mcp", request("tools/call", SLOW, 2), mine)).status).toBe(429);
      const cancel = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 1 } };
      expect((await api.send("POST", "/mcp", cancel, mine)).status).toBe(202);
      expect(messageIn(await first).result.isError).toBe(true);
    } finally {
      await api.stop();
    }
  });

  it("lose a running call with their key", async () => {
    const api = await closedService("sqlite");
    try {
      const { id, key } = await api.call("POST", "/admin/keys", { name: "k", scopes: ["agents"] }, ADMIN);
      const calling = api.send("POST", "/mcp", request("tools/call", SLOW), { ...BOTH, "X-Api-Key": key });
      const active = async () => (await api.call("GET", "/app/api/runs?status=running", undefined, ADMIN)).runs;
      await until("it runs", async () => (await active()).length === 1);
      await api.call("DELETE", `/admin/keys/${id}`, undefined, ADMIN);
      expect((await calling).text).not.toContain("result");
    } finally {
      await api.stop();
    }
  });
});

it.each(["mcp", "runs", "assistants"])("http.disable_%s removes the endpoint", async (group) => {
  const langgraph = { graphs: { agent: "./agent.mjs:graph" }, http: { [`disable_${group}`]: true } };
  const project = createProject({ "agent.mjs": oneNodeGraph("one"), "langgraph.json": JSON.stringify(langgraph) });
  const service = await startService({ database: "sqlite", config: project.config });
  try {
    expect((await service.request("POST", "/mcp", request("tools/list"), BOTH)).status).toBe(404);
    expect((await service.request("GET", "/info")).body.flags.mcp).toBe(false);
  } finally {
    await service.stop();
    project.drop();
  }
});
