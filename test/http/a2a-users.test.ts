import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import { until } from "../support/until.ts";
import { A2aCaller, CONFIG, userMessage } from "./a2a.ts";
import { ADMIN, closedService, newCaller, newKey, newWorkspace } from "./callers.ts";
import { Scenario, type Wire } from "./scenario.ts";

type Headers = Record<string, string>;

/** The methods that name a task, with their parameters. */
const ABOUT_TASKS: [method: string, params: (id: string) => object][] = [
  ["GetTask", (id) => ({ id })],
  ["CancelTask", (id) => ({ id })],
  ["SubscribeToTask", (id) => ({ id })],
  ["SendMessage", (taskId) => ({ message: userMessage("x", { taskId }) })],
  ["SendStreamingMessage", (taskId) => ({ message: userMessage("x", { taskId }) })],
  ["CreateTaskPushNotificationConfig", (taskId) => ({ taskId, id: "c", url: "http://127.0.0.1:9/x" })],
  ["GetTaskPushNotificationConfig", (taskId) => ({ taskId, id: "mine" })],
  ["ListTaskPushNotificationConfigs", (taskId) => ({ taskId })],
  ["DeleteTaskPushNotificationConfig", (taskId) => ({ taskId, id: "mine" })],
  ["tasks/get", (id) => ({ id })],
  ["tasks/cancel", (id) => ({ id })],
  ["tasks/resubscribe", (id) => ({ id })],
  ["tasks/pushNotificationConfig/get", (id) => ({ id, pushNotificationConfigId: "mine" })],
  ["tasks/pushNotificationConfig/list", (id) => ({ id })],
  ["tasks/pushNotificationConfig/delete", (id) => ({ id, pushNotificationConfigId: "mine" })],
];

describe.each(databases)("an A2A client with a key (%s)", (database) => {
  let api: Scenario;
  beforeAll(async () => {
    api = await closedService(database, {}, CONFIG);
  });
  afterAll(() => api.stop());

  const memberOf = async () => newCaller(api, { tenant_id: await newWorkspace(api) });

  it("needs the scope agents, even for cards", async () => {
    const body = { jsonrpc: "2.0", id: 1, method: "ListTasks", params: {} };
    const callers: [Headers, number][] = [
      [{}, 401],
      [await newCaller(api, { scopes: ["experiments"] }), 403],
      [await newCaller(api, { scopes: ["agents"] }), 200],
    ];
    for (const [headers, status] of callers) {
      expect((await api.send("POST", "/a2a/echo", body, headers)).status).toBe(status);
      for (const path of ["/.well-known/agent-card.json?assistant_id=echo", "/a2a/echo/.well-known/agent-card.json"])
        expect((await api.send("GET", path, undefined, headers)).status).toBe(status);
    }
  });

  it("sees in the card how it must authenticate", async () => {
    const headers = { ...(await memberOf()), "a2a-version": "1.0" };
    const { body } = await api.send("GET", "/a2a/echo/.well-known/agent-card.json", undefined, headers);
    expect(body).toMatchObject({
      securitySchemes: {
        api_key: { apiKeySecurityScheme: { location: "header", name: "X-Api-Key" } },
        bearer: { httpAuthSecurityScheme: { scheme: "bearer" } },
      },
      securityRequirements: [{ schemes: { api_key: {} } }, { schemes: { bearer: {} } }],
    });
  });

  it("finds no task of another workspace, and changes none", async () => {
    const [mine, other] = [await memberOf(), await memberOf()];
    const [owner, stranger] = [new A2aCaller(api, mine), new A2aCaller(api, other)];
    const door = api.newDoor();
    const taskPushNotificationConfig = { id: "mine", url: "http://127.0.0.1:9/mine", token: "secret" };
    const configuration = { returnImmediately: true, taskPushNotificationConfig };
    const task = await owner.send("waits", userMessage(door.path), configuration);
    const paused = await owner.send("ask", userMessage("secret"));
    await owner.reaches("waits", task.id, "WORKING");
    for (const [assistant, { id, contextId }] of [
      ["waits", task],
      ["ask", paused],
    ] as const) {
      for (const [method, params] of ABOUT_TASKS)
        expect([method, (await stranger.call(assistant, method, params(id))).error?.code]).toEqual([method, -32001]);
      const intruding = { message: userMessage("x", { contextId }) };
      for (const method of ["SendMessage", "SendStreamingMessage"])
        expect((await stranger.call(assistant, method, intruding)).error?.code).toBe(-32001);
      for (const query of [{}, { contextId }, { status: "TASK_STATE_WORKING" }])
        expect(await stranger.list(assistant, query)).toMatchObject({ tasks: [], totalSize: 0 });
    }
    expect((await owner.get("waits", task.id)).status.state).toBe("TASK_STATE_WORKING");
    expect((await owner.get("ask", paused.id)).status.state).toBe("TASK_STATE_INPUT_REQUIRED");
    const { result } = await owner.call("waits", "ListTaskPushNotificationConfigs", { taskId: task.id });
    expect(result.configs).toMatchObject([{ id: "mine" }]);
    expect((await owner.call("waits", "CancelTask", { id: task.id })).result.status.state).toBe("TASK_STATE_CANCELED");
  });

  it("uses the context of a name in its own workspace", async () => {
    const [mine, other] = [await memberOf(), await memberOf()];
    const message = (text: string) => userMessage(text, { contextId: "main" });
    await new A2aCaller(api, mine).send("echo", message("secret"));
    const task = await new A2aCaller(api, other).send("echo", message("hello"));
    expect(JSON.stringify(task)).not.toContain("secret");
    expect(task.contextId).toBe("main");
  });

  it("uses the assistants of its own workspace", async () => {
    const [mine, other] = [await memberOf(), await memberOf()];
    const { assistant_id } = await api.call("POST", "/assistants", { graph_id: "echo", name: "secret" }, mine);
    expect((await new A2aCaller(api, mine).send(assistant_id, userMessage("hi"))).status.state).toContain("COMPLETED");
    const refused = await new A2aCaller(api, other).call(assistant_id, "SendMessage", { message: userMessage("hi") });
    expect(refused).toEqual({ status: 404, detail: "Assistant not found" });
    for (const path of [
      `/.well-known/agent-card.json?assistant_id=${assistant_id}`,
      `/a2a/${assistant_id}/.well-known/agent-card.json`,
    ]) {
      expect((await api.send("GET", path, undefined, mine)).status).toBe(200);
      expect((await api.send("GET", path, undefined, other)).status).toBe(404);
    }
  });
});

describe("an A2A client", () => {
  it("has a limit of open responses", async () => {
    const api = await closedService("sqlite", { THREADMILL_MAX_OPEN_PER_USER: "1" }, CONFIG);
    try {
      const client = new A2aCaller(api, await newCaller(api, { user_id: "bob" }));
      const params = { message: userMessage(api.newDoor().path) };
      const first = await client.open("waits", "SendStreamingMessage", params);
      await first.until((updates) => updates.length > 1);
      for (const method of ["SendStreamingMessage", "SendMessage", "message/send", "message/stream"])
        expect([method, (await client.call("waits", method, params)).status]).toEqual([method, 429]);
      expect((await client.call("waits", "ListTasks", {})).result.tasks).toHaveLength(1);
      await first.hangUp();
    } finally {
      await api.stop();
    }
  });

  it("loses its stream and its answer with its key, and its task continues", async () => {
    const api = await closedService("sqlite", {}, CONFIG);
    try {
      const { id, key } = await newKey(api, { user_id: "alice" });
      const client = new A2aCaller(api, { "X-Api-Key": key });
      const door = api.newDoor();
      const stream = await client.open("waits", "SendStreamingMessage", { message: userMessage(door.path) });
      const [{ task }] = await stream.until((updates) => updates.length > 2);
      const answer = client.call("waits", "SendMessage", { message: userMessage(door.path) });
      const running = async () => (await api.call("GET", "/app/api/runs?status=running", undefined, ADMIN)).runs.length;
      await until("both tasks work", async () => (await running()) === 2);
      await api.call("DELETE", `/admin/keys/${id}`, undefined, ADMIN);
      expect((await stream.rest()).at(-1)).toEqual({
        error: { code: -32000, message: expect.stringContaining("revoked") },
      });
      expect((await answer).error).toMatchObject({ code: -32000, message: expect.stringContaining("revoked") });
      const admin = new A2aCaller(api, ADMIN);
      expect((await admin.get("waits", task.id)).status.state).toBe("TASK_STATE_WORKING");
      door.open();
      await admin.reaches("waits", task.id, "COMPLETED");
    } finally {
      await api.stop();
    }
  });

  it("is refused as a page of another origin, and with a large body", async () => {
    const api = await Scenario.start("sqlite", { HTTP_MAX_REQUEST_BODY_BYTES: "1024" }, CONFIG);
    try {
      const body = { jsonrpc: "2.0", id: 1, method: "SendMessage", params: { message: userMessage("hi") } };
      const origin = "https://attacker.example";
      expect((await api.send("POST", "/a2a/echo", body, { origin })).status).toBe(403);
      expect((await api.send("POST", "/a2a/echo", body, { origin, "content-type": "text/plain" })).status).toBe(403);
      const own = { origin: "http://localhost", host: "localhost", "content-type": "text/plain" };
      expect((await api.send("POST", "/a2a/echo", body, own)).status).toBe(415);
      expect((await api.send("GET", "/a2a/echo/.well-known/agent-card.json", undefined, { origin })).status).toBe(403);
      const large = { ...body, params: { message: userMessage("x".repeat(1024)) } };
      expect((await api.send("POST", "/a2a/echo", large, { "content-length": "2000" })).status).toBe(413);
    } finally {
      await api.stop();
    }
  });
});

describe("a user of a project with an authentication handler", () => {
  let api: Scenario;
  const bearer = (name: string) => ({ authorization: `Bearer ${name}` });
  beforeAll(async () => {
    api = await Scenario.start("sqlite", {}, { config: "test/graphs/a2a/auth.json" });
  });
  afterAll(() => api.stop());

  it("finds no task of another user, and changes none", async () => {
    const [alice, bob] = ["alice", "bob"].map((name) => new A2aCaller(api, bearer(name))) as [A2aCaller, A2aCaller];
    const door = api.newDoor();
    const task = await alice.send("waits", userMessage(door.path), { returnImmediately: true });
    await alice.reaches("waits", task.id, "WORKING");
    const { contextId } = task;
    expect((await api.call("GET", `/threads/${contextId}`, undefined, bearer("alice"))).metadata.owner).toBe("alice");
    for (const [method, params] of ABOUT_TASKS)
      expect([method, (await bob.call("waits", method, params(task.id))).error?.code]).toEqual([method, -32001]);
    const intruding = { message: userMessage("x", { contextId }) };
    expect((await bob.call("waits", "SendMessage", intruding)).error?.code).toBe(-32001);
    expect((await bob.list("waits", {})).tasks).toEqual([]);
    expect((await bob.list("waits", { contextId })).tasks).toEqual([]);
    expect((await alice.list("waits", { contextId })).tasks).toHaveLength(1);
    expect((await alice.call("waits", "CancelTask", { id: task.id })).result.status.state).toBe("TASK_STATE_CANCELED");
    const named = (text: string) => userMessage(text, { contextId: "main" });
    await alice.send("echo", named("secret"));
    expect(JSON.stringify(await bob.send("echo", named("hello")))).not.toContain("secret");
  });

  it("is authorized by the handlers, which can refuse each method", async () => {
    const guest = new A2aCaller(api, bearer("guest"));
    const refused = async (method: string, params: object): Promise<Wire> =>
      (await guest.call("echo", method, params)).error;
    const task = await guest.send("echo", userMessage("hi"));
    const { configurable } = (
      await api.call("GET", `/threads/${task.contextId}/runs/${task.id}`, undefined, bearer("guest"))
    ).kwargs.config;
    expect(configurable).toMatchObject({ user_id: "guest", langgraph_auth_user_id: "guest" });
    const outcomes: [string, object, string][] = [
      ["GetTask", { id: task.id }, "threads:read"],
      ["ListTasks", { contextId: task.contextId }, "threads:read"],
      ["ListTasks", {}, "threads:search"],
      ["CancelTask", { id: task.id }, "threads:update"],
      ["SubscribeToTask", { id: task.id }, "threads:read"],
      ["SendMessage", { message: userMessage("hi") }, "threads:create_run"],
      ["SendStreamingMessage", { message: userMessage("hi") }, "threads:create_run"],
      ["CreateTaskPushNotificationConfig", { taskId: task.id, url: "http://127.0.0.1:9/x" }, "threads:update"],
      ["ListTaskPushNotificationConfigs", { taskId: task.id }, "threads:read"],
      ["DeleteTaskPushNotificationConfig", { taskId: task.id, id: "x" }, "threads:update"],
    ];
    for (const [method, params, event] of outcomes) {
      const { error } = await new A2aCaller(api, { ...bearer("guest"), "x-refuse": event }).call(
        "echo",
        method,
        params,
      );
      expect([method, error?.code, error?.message]).toEqual([method, -32000, `${event} is refused`]);
    }
    expect(await refused("GetTask", { id: task.id })).toBeUndefined();
    const denied = await new A2aCaller(api, { ...bearer("guest"), "x-refuse": "assistants:read" }).call(
      "echo",
      "ListTasks",
      {},
    );
    expect(denied).toEqual({ status: 403, detail: "assistants:read is refused" });
  });

  it("sees no security scheme in the card, because the module decides", async () => {
    const headers = { ...bearer("alice"), "a2a-version": "1.0" };
    const { body } = await api.send("GET", "/a2a/echo/.well-known/agent-card.json", undefined, headers);
    expect([body.name, body.securitySchemes]).toEqual(["echo", undefined]);
    expect((await api.send("GET", "/a2a/echo/.well-known/agent-card.json")).status).toBe(401);
  });
});
