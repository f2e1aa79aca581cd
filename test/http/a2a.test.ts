import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createProject, oneNodeGraph } from "../support/project.ts";
import { startService } from "../support/service.ts";
import { A2aCaller, CONFIG, userMessage } from "./a2a.ts";
import { Scenario, UNKNOWN_ID, type Wire } from "./scenario.ts";

const request = (method: unknown, params: unknown = {}, id: unknown = 1) => ({ jsonrpc: "2.0", id, method, params });

describe("the A2A endpoint", () => {
  let api: Scenario;
  let agent: A2aCaller;
  beforeAll(async () => {
    api = await Scenario.start("sqlite", {}, CONFIG);
    agent = new A2aCaller(api);
  });
  afterAll(() => api.stop());

  const code = async (graph: string, method: string, params: unknown) => {
    const { error } = await agent.call(graph, method, params);
    return error?.code;
  };

  describe("refuses", () => {
    it.each([
      ["no JSON", "{", 400, -32700],
      ["nothing", undefined, 400, -32600],
      ["a batch", [request("GetTask")], 400, -32600],
      ["a deep body", `{"a":${"[".repeat(200)}${"]".repeat(200)}}`, 400, -32700],
      ["no message of JSON-RPC", {}, 200, -32602],
      ["another version of JSON-RPC", { ...request("GetTask"), jsonrpc: "1.0" }, 200, -32602],
      ["an id that is an object", request("GetTask", {}, {}), 200, -32602],
      ["a method that is a number", request(7), 200, -32602],
      ["an unknown method", request("tasks"), 200, -32601],
      ["an unknown method of 0.3", request("tasks/forget"), 200, -32601],
      ["parameters that are a list", request("GetTask", []), 200, -32602],
      ["parameters of 0.3 that are a text", request("tasks/get", "x"), 200, -32602],
    ])("%s", async (_, body, status, code) => {
      const answer = await api.send("POST", "/a2a/echo", body);
      expect([answer.status, answer.body.error.code]).toEqual([status, code]);
    });

    it.each(["2.0", "0.2", "1", "x"])("the version %s of the protocol", async (version) => {
      const answer = await api.send("POST", "/a2a/echo", request("ListTasks"), { "a2a-version": version });
      expect([answer.status, answer.body.error.code]).toEqual([200, -32009]);
    });

    const message = userMessage("hi");
    const configured = (configuration: object) => ({ message, configuration });
    it.each<[string, object, string]>([
      ["no message", {}, "params.message"],
      ["a message that is a text", { message: "hi" }, "params.message.messageId"],
      ["a message without ID", { message: { ...message, messageId: undefined } }, "params.message.messageId"],
      ["a long message ID", { message: { ...message, messageId: "x".repeat(1001) } }, "params.message.messageId"],
      ["a long context ID", { message: { ...message, contextId: "x".repeat(1001) } }, "params.message.contextId"],
      ["a message of the agent", { message: { ...message, role: "ROLE_AGENT" } }, "params.message.role"],
      ["a message without role", { message: { ...message, role: undefined } }, "params.message.role"],
      ["no parts", { message: { ...message, parts: [] } }, "params.message.parts: must not be empty"],
      ["parts that are a text", { message: { ...message, parts: "hi" } }, "params.message.parts"],
      ["too many parts", { message: { ...message, parts: Array(1001).fill({ text: "" }) } }, "params.message.parts"],
      ["an empty part", { message: { ...message, parts: [{}] } }, "params.message.parts.0.content"],
      ["a part that is null", { message: { ...message, parts: [null] } }, "params"],
      ["metadata that is large", { message, metadata: { a: "x".repeat(70_000) } }, "params.metadata: is larger"],
      [
        "a history length of 11",
        configured({ historyLength: 11 }),
        "params.configuration.historyLength: must be at most 10",
      ],
      ["a negative history length", configured({ historyLength: -1 }), "params.configuration.historyLength"],
      ["a history length that is a text", configured({ historyLength: "x" }), "params.configuration.historyLength"],
      ["a tenant", { message, tenant: "other" }, "params.tenant"],
    ])("a message with %s", async (_, params, reason) => {
      const before = await api.post("/threads/count");
      for (const method of ["SendMessage", "SendStreamingMessage"]) {
        const { error } = await agent.call("echo", method, params);
        expect([error?.code, error?.message]).toEqual([-32602, expect.stringContaining(reason)]);
      }
      expect(await api.post("/threads/count")).toBe(before);
    });

    it.each<[string, Wire]>([
      ["no message", {}],
      ["a message without parts", { message: { messageId: "1", role: "user" } }],
      ["an unknown part", { message: { messageId: "1", role: "user", parts: [{ kind: "smell" }] } }],
      ["a text that is a number", { message: { messageId: "1", role: "user", parts: [{ kind: "text", text: 7 }] } }],
      ["a file without content", { message: { messageId: "1", role: "user", parts: [{ kind: "file" }] } }],
      ["a message of the agent", { message: { messageId: "1", role: "agent", parts: [{ kind: "text", text: "" }] } }],
      [
        "a message ID that is a number",
        { message: { messageId: 1, role: "user", parts: [{ kind: "text", text: "" }] } },
      ],
    ])("%s in version 0.3", async (_, params) => {
      expect(await code("echo", "message/send", params)).toBe(-32602);
      expect(await code("echo", "message/stream", params)).toBe(-32602);
    });

    it("output of a type that assistants do not have", async () => {
      const params = configured({ acceptedOutputModes: ["image/png"] });
      expect(await code("echo", "SendMessage", params)).toBe(-32005);
      const { status } = await agent.send("echo", message, { acceptedOutputModes: ["image/png", "text/plain"] });
      expect(status.state).toBe("TASK_STATE_COMPLETED");
    });

    it.each<[string, object]>([
      ["a page size of 0", { pageSize: 0 }],
      ["a page size of 101", { pageSize: 101 }],
      ["a page size that is a text", { pageSize: "x" }],
      ["another page token", { pageToken: "x" }],
      ["an unknown state", { status: "TASK_STATE_SLEEPING" }],
      ["a time that is none", { statusTimestampAfter: "yesterday" }],
      ["a history length of 11", { historyLength: 11 }],
      ["a long context ID", { contextId: "x".repeat(1001) }],
    ])("a list with %s", async (_, params) => {
      expect(await code("echo", "ListTasks", params)).toBe(-32602);
    });

    it("IDs of tasks that do not exist, or that are not IDs", async () => {
      for (const method of [
        "GetTask",
        "CancelTask",
        "SubscribeToTask",
        "tasks/get",
        "tasks/cancel",
        "tasks/resubscribe",
      ])
        for (const id of [UNKNOWN_ID, "x", "'; drop table runs; --"])
          expect([method, id, await code("echo", method, { id })]).toEqual([method, id, -32001]);
      for (const method of [
        "GetTask",
        "CancelTask",
        "SubscribeToTask",
        "tasks/get",
        "tasks/cancel",
        "tasks/resubscribe",
      ])
        for (const id of ["", undefined])
          expect([method, await code("echo", method, { id })]).toEqual([method, -32602]);
      expect(await code("echo", "tasks/get", { id: 7 })).toBe(-32602);
      expect(await code("echo", "SendMessage", { message: userMessage("hi", { taskId: UNKNOWN_ID }) })).toBe(-32001);
      expect(await code("echo", "GetTask", { id: UNKNOWN_ID, historyLength: 11 })).toBe(-32602);
    });

    it("an assistant that does not exist, and one whose graph has no messages", async () => {
      const unknown = await api.send("POST", "/a2a/nothing", request("SendMessage", { message }));
      expect([unknown.status, unknown.body.detail]).toEqual([404, "Assistant not found"]);
      for (const method of ["SendMessage", "SendStreamingMessage"]) {
        const { error } = await agent.call("chain", method, { message });
        expect([error?.code, error?.message]).toEqual([-32004, expect.stringContaining("has no messages")]);
      }
    });
  });
});

describe("agent cards", () => {
  it("are in the format of the requested version", async () => {
    const api = await Scenario.start("sqlite", { THREADMILL_PUBLIC_URL: "https://agents.example.com/base" }, CONFIG);
    try {
      const { assistant_id } = await api.get("/assistants/echo");
      const url = `https://agents.example.com/base/a2a/${assistant_id}`;
      const shared = {
        name: "echo",
        description: "Repeats what it is sent.",
        version: "1",
        defaultInputModes: ["text/plain", "application/json"],
        defaultOutputModes: ["text/plain", "application/json"],
        skills: [{ id: assistant_id, name: "echo", description: "Repeats what it is sent.", tags: ["echo"] }],
      };
      const supportedInterfaces = [
        { url, protocolBinding: "JSONRPC", protocolVersion: "1.0" },
        { url, protocolBinding: "JSONRPC", protocolVersion: "0.3" },
      ];
      const modern = {
        ...shared,
        supportedInterfaces,
        capabilities: { streaming: true, pushNotifications: true, extendedAgentCard: true },
      };
      const legacy = {
        ...shared,
        url,
        preferredTransport: "JSONRPC",
        protocolVersion: "0.3",
        capabilities: { streaming: true, pushNotifications: true },
        supportsAuthenticatedExtendedCard: true,
      };
      for (const path of [
        "/.well-known/agent-card.json?assistant_id=echo",
        `/.well-known/agent-card.json?assistant_id=${assistant_id}`,
        "/a2a/echo/.well-known/agent-card.json",
      ]) {
        const answer = await api.send("GET", path, undefined, { "a2a-version": "1.0" });
        expect([answer.body, answer.headers.get("vary")]).toEqual([modern, expect.stringContaining("A2A-Version")]);
        expect(await api.get(path)).toEqual({ ...legacy, supportedInterfaces });
        expect((await api.send("GET", path, undefined, { "a2a-version": "0.3" })).body).toMatchObject(legacy);
      }
      const agent = new A2aCaller(api);
      expect((await agent.call("echo", "GetExtendedAgentCard", undefined)).result).toEqual(modern);
      expect((await agent.call("echo", "agent/getAuthenticatedExtendedCard", undefined)).result).toEqual(legacy);
    } finally {
      await api.stop();
    }
  });

  it.each<[string, Record<string, string>, string]>([
    ["the origin of the request", {}, "http://localhost:2024/a2a"],
    ["the prefix of all paths", { MOUNT_PREFIX: "/base" }, "http://localhost:2024/base/a2a"],
    ["the address of its deployment", { THREADMILL_ROLLOUT: "1" }, "https://agents.example/deployments/one/a2a"],
  ])("have a URL that begins with %s", async (_, env, url) => {
    const api = await Scenario.start("sqlite", env, CONFIG);
    try {
      const path = `${env.MOUNT_PREFIX ?? ""}/a2a/echo/.well-known/agent-card.json`;
      const { body } = await api.send("GET", path, undefined, {
        host: "localhost:2024",
        "x-forwarded-host": "agents.example",
        "x-forwarded-proto": "https",
        "x-forwarded-prefix": "/deployments/one",
      });
      expect(body.url).toMatch(new RegExp(`^${url}/[\\da-f-]{36}$`));
    } finally {
      await api.stop();
    }
  });

  it("exist for assistants with messages, and without ID for the only graph", async () => {
    const api = await Scenario.start("sqlite", {}, CONFIG);
    const single = await Scenario.start("sqlite", {}, { config: "test/graphs/a2a/single.json" });
    try {
      const card = async (query: string) => {
        const { status, body } = await api.send("GET", `/.well-known/agent-card.json${query}`);
        return [status, body.detail];
      };
      expect(await card("")).toEqual([422, expect.stringContaining("query.assistant_id: is required")]);
      expect(await card("?assistant_id=nothing")).toEqual([404, "Assistant not found"]);
      expect(await card("?assistant_id=chain")).toEqual([404, expect.stringContaining("has no messages")]);
      const headers = { "a2a-version": "1.0" };
      const only = await single.send("GET", "/.well-known/agent-card.json", undefined, headers);
      expect(only.body).toMatchObject({ name: "echo", capabilities: { pushNotifications: false } });
    } finally {
      await Promise.all([api.stop(), single.stop()]);
    }
  });
});

it.each(["a2a", "runs", "threads", "assistants"])("http.disable_%s removes the endpoint", async (group) => {
  const langgraph = { graphs: { agent: "./agent.mjs:graph" }, http: { [`disable_${group}`]: true } };
  const project = createProject({ "agent.mjs": oneNodeGraph("one"), "langgraph.json": JSON.stringify(langgraph) });
  const service = await startService({ database: "sqlite", config: project.config });
  try {
    expect((await service.request("POST", "/a2a/agent", request("ListTasks"))).status).toBe(404);
    for (const path of ["/.well-known/agent-card.json", "/a2a/agent/.well-known/agent-card.json"]) {
      const { status, body } = await service.request("GET", path);
      expect([status, body.detail]).toEqual([404, expect.stringContaining("Route")]);
    }
    expect((await service.request("GET", "/info")).body.flags.a2a).toBe(false);
  } finally {
    await service.stop();
    project.drop();
  }
});
