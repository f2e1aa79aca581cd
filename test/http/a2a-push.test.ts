import { type RawBuilder, sql } from "kysely";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import { openOn } from "../support/storage.ts";
import { until } from "../support/until.ts";
import { signatureOf, startReceiver, WEBHOOK_SECRET, type WebhookReceiver } from "../support/webhook-receiver.ts";
import { A2aCaller, textsIn, userMessage } from "./a2a.ts";
import { Scenario, type Wire } from "./scenario.ts";

const ENV = { THREADMILL_WEBHOOK_SECRET: WEBHOOK_SECRET, LG_WEBHOOK_TOKEN: "of the project" };

describe.each(databases)("push notifications of A2A tasks on %s", (database) => {
  let api: Scenario;
  let agent: A2aCaller;
  let receiver: WebhookReceiver;
  let count = 0;
  beforeAll(async () => {
    receiver = await startReceiver();
    const intervals = { webhook_retry_ms: 50, webhook_timeout_ms: 2_000 };
    api = await Scenario.start(database, ENV, { config: "test/graphs/a2a/push.json", intervals });
    agent = new A2aCaller(api);
  });
  afterAll(async () => {
    await api.stop();
    await receiver.close();
  });

  const newName = () => `push-${++count}`;
  const configOf = (name: string, more: object = {}) => ({ id: name, url: receiver.at(name), ...more });
  const sendTo = (name: string, assistant: string, message: Wire, more: object = {}) =>
    agent.send(assistant, message, { taskPushNotificationConfig: configOf(name, more), returnImmediately: true });
  const result = async (assistant: string, method: string, params: object) =>
    (await agent.call(assistant, method, params)).result;
  const codeOf = async (assistant: string, method: string, params: object) =>
    (await agent.call(assistant, method, params)).error?.code;
  const deliveries = (run_id: string): Promise<Wire[]> => api.get(`/webhooks/deliveries?run_id=${run_id}`);
  const working = async (name?: string) => {
    const door = api.newDoor();
    const task = await (name
      ? sendTo(name, "waits", userMessage(door.path))
      : agent.send("waits", userMessage(door.path), { returnImmediately: true }));
    await agent.reaches("waits", task.id, "WORKING");
    return { ...task, door };
  };
  const change = async (assignment: RawBuilder<unknown>, run_id: string) => {
    const storage = openOn(api.service.database);
    const update = sql`update webhook_deliveries set ${assignment} where run_id = ${run_id}`;
    await storage.write((tx) => tx.run(update.compile(tx.k)));
    await storage.close();
  };

  it("send the ended task with the token, the credentials and a signature", async () => {
    const name = newName();
    const authentication = { scheme: "Bearer", credentials: "abc" };
    const { id, contextId } = await sendTo(name, "echo", userMessage("hi"), { token: "my token", authentication });
    const request = await receiver.nth(name);
    expect(request.body).toEqual({
      task: {
        id,
        contextId,
        status: { state: "TASK_STATE_COMPLETED", timestamp: expect.any(String) },
        artifacts: [expect.objectContaining({ parts: [{ text: "You said: hi", mediaType: "text/plain" }] })],
      },
    });
    expect(request.headers).toMatchObject({
      "content-type": "application/a2a+json",
      "x-a2a-notification-token": "my token",
      authorization: "Bearer abc",
      "webhook-signature": signatureOf(request),
    });
    const delivery = await until("it is delivered", async () => {
      const [found] = await deliveries(id);
      return found?.status === "delivered" ? found : undefined;
    });
    expect(delivery).toMatchObject({ run_id: id, url: receiver.at(name), delivery_id: request.headers["webhook-id"] });
    expect(delivery.delivery_id).not.toBe(id);
  });

  it("send nothing of the project, and no token if there is none", async () => {
    const name = newName();
    await sendTo(name, "echo", userMessage("hi"));
    const { headers } = await receiver.nth(name);
    expect([headers.authorization, headers["x-a2a-notification-token"]]).toEqual([undefined, undefined]);
  });

  it("report pauses, failures and cancellations, including those of tasks that never started", async () => {
    const [paused, failed, stopped, queued] = Array.from({ length: 4 }, newName) as [string, string, string, string];
    await sendTo(paused, "ask", userMessage("hi"));
    expect((await receiver.nth(paused)).body.task.status).toMatchObject({
      state: "TASK_STATE_INPUT_REQUIRED",
      message: { parts: [{ data: { question: "Which order?" } }] },
    });
    await sendTo(failed, "fails", userMessage("hi"));
    const { status } = (await receiver.nth(failed)).body.task;
    expect([status.state, textsIn(status.message)]).toEqual([
      "TASK_STATE_FAILED",
      "RangeError: There is no such color.",
    ]);
    const first = await working(stopped);
    const second = await sendTo(queued, "waits", userMessage("never", { contextId: first.contextId }));
    for (const { id } of [second, first]) await agent.call("waits", "CancelTask", { id });
    for (const name of [queued, stopped])
      expect((await receiver.nth(name)).body.task.status.state).toBe("TASK_STATE_CANCELED");
  });

  it("have the format of version 0.3 for its clients, and a long answer", async () => {
    const [name, long] = [newName(), newName()];
    const message = { kind: "message", messageId: "1", role: "user", parts: [{ kind: "text", text: "hi" }] };
    const pushNotificationConfig = {
      url: receiver.at(name),
      token: "t",
      authentication: { schemes: ["Basic"], credentials: "x" },
    };
    await agent.call("echo", "message/send", { message, configuration: { pushNotificationConfig } });
    const { body, headers } = await receiver.nth(name);
    expect(body).toMatchObject({
      kind: "task",
      status: { state: "completed" },
      artifacts: [{ parts: [{ kind: "text", text: "You said: hi" }] }],
    });
    expect(headers).toMatchObject({
      "content-type": "application/json",
      "x-a2a-notification-token": "t",
      authorization: "Basic x",
    });
    await sendTo(long, "long", userMessage("hi"));
    expect(textsIn((await receiver.nth(long)).body.task.artifacts[0])).toHaveLength(400_000);
  });

  it("are sent to receivers that are added while a task works, beside its webhook", async () => {
    const [first, second, hook] = [newName(), newName(), newName()];
    const door = api.newDoor();
    const input = { messages: [{ role: "user", content: door.path }] };
    const { run_id: taskId } = await api.newRun(await api.newThread(), {
      assistant_id: "waits",
      input,
      webhook: receiver.at(hook),
    });
    await agent.reaches("waits", taskId, "WORKING");
    const create = (config: object) => result("waits", "CreateTaskPushNotificationConfig", { taskId, ...config });
    expect(await create(configOf(first, { token: "t" }))).toEqual({ taskId, ...configOf(first, { token: "t" }) });
    const { id, ...made } = await create({ url: receiver.at("replaced") });
    expect([id, made]).toEqual([expect.stringMatching(/^[\da-f-]{36}$/), { taskId, url: receiver.at("replaced") }]);
    await create({ id, url: receiver.at(second) });
    door.open();
    for (const name of [first, second]) expect((await receiver.nth(name)).body.task.id).toBe(taskId);
    expect((await receiver.nth(hook)).body).toMatchObject({ run_id: taskId, status: "success" });
    expect((await receiver.nth(hook)).headers).toMatchObject({
      authorization: "Bearer of the project",
      "webhook-id": taskId,
    });
    expect(receiver.of("replaced")).toEqual([]);
    expect(await deliveries(taskId)).toHaveLength(3);
  });

  it("are configured per task; the secrets are not shown again", async () => {
    const { id: taskId, door } = await working();
    const authentication = { scheme: "Bearer", credentials: "secret" };
    const configs = [configOf("a", { token: "secret", authentication }), configOf("b")];
    for (const config of configs) await result("waits", "CreateTaskPushNotificationConfig", { taskId, ...config });
    const shown = [
      { taskId, ...configOf("a"), authentication: { scheme: "Bearer" } },
      { taskId, ...configOf("b") },
    ];
    expect(await result("waits", "ListTaskPushNotificationConfigs", { taskId })).toEqual({ configs: shown });
    expect(await result("waits", "GetTaskPushNotificationConfig", { taskId, id: "b" })).toEqual(shown[1]);
    expect(await codeOf("waits", "GetTaskPushNotificationConfig", { taskId, id: "c" })).toBe(-32001);
    const legacy = [
      { taskId, pushNotificationConfig: { ...configOf("a"), authentication: { schemes: ["Bearer"] } } },
      { taskId, pushNotificationConfig: configOf("b") },
    ];
    expect(await result("waits", "tasks/pushNotificationConfig/list", { id: taskId })).toEqual(legacy);
    expect(await result("waits", "tasks/pushNotificationConfig/get", { id: taskId })).toEqual(legacy[0]);
    for (let n = 0; n < 2; n++)
      expect(await agent.call("waits", "DeleteTaskPushNotificationConfig", { taskId, id: "a" })).toMatchObject({
        result: null,
      });
    expect(await result("waits", "ListTaskPushNotificationConfigs", { taskId })).toEqual({ configs: [shown[1]] });
    await agent.call("waits", "tasks/pushNotificationConfig/delete", { id: taskId, pushNotificationConfigId: "b" });
    door.open();
    await agent.reaches("waits", taskId, "COMPLETED");
    expect(await deliveries(taskId)).toEqual([]);
    expect(await codeOf("waits", "CreateTaskPushNotificationConfig", { taskId, ...configOf("c") })).toBe(-32004);
  });

  it("have a limit of receivers per task", async () => {
    const { id: taskId } = await working();
    for (let n = 0; n < 10; n++)
      await result("waits", "CreateTaskPushNotificationConfig", { taskId, ...configOf(`r${n}`) });
    expect(await codeOf("waits", "CreateTaskPushNotificationConfig", { taskId, ...configOf("more") })).toBe(-32004);
    await result("waits", "CreateTaskPushNotificationConfig", { taskId, ...configOf("r3") });
    await agent.call("waits", "CancelTask", { id: taskId });
  });

  it("are sent again until the receiver accepts them, or its configuration is deleted", async () => {
    const [slow, deleted] = [newName(), newName()];
    for (const name of [slow, deleted]) receiver.answer(name, 500);
    await sendTo(slow, "echo", userMessage("hi"));
    const first = await receiver.nth(slow);
    const second = await receiver.nth(slow, 2);
    receiver.answer(slow, 204);
    expect(second.headers["webhook-id"]).toBe(first.headers["webhook-id"]);
    expect(second.body).toEqual(first.body);
    const { id: taskId } = await sendTo(deleted, "echo", userMessage("hi"));
    await receiver.nth(deleted);
    await agent.call("echo", "DeleteTaskPushNotificationConfig", { taskId, id: deleted });
    expect(await deliveries(taskId)).toEqual([]);
  });

  it("fail after a day, and are sent again on request", async () => {
    const name = newName();
    receiver.answer(name, 503);
    const { id } = await sendTo(name, "echo", userMessage("hi"));
    await receiver.nth(name);
    await change(sql`queued_at = queued_at - 86400000`, id);
    await until("it has failed", async () => (await deliveries(id))[0]?.status === "failed");
    receiver.answer(name, 204);
    await api.post(`/webhooks/deliveries/${id}/redeliver`);
    await until("it is delivered", async () => (await deliveries(id))[0]?.status === "delivered");
    expect(receiver.of(name).at(-1)?.body.task.id).toBe(id);
  });

  it.each<[string, object, string]>([
    ["a URL that is none", { url: "x" }, "The URL must be absolute"],
    ["no URL", { url: undefined }, "The URL must be absolute"],
    ["a path of the project", { url: "/hooks" }, "The URL must be absolute"],
    ["another host", { url: "https://other.example.org" }, "is not allowed"],
    ["a private address", { url: "http://10.0.0.1/" }, "https"],
    ["a token with a line break", { token: "a\r\nx-b: c" }, "printable"],
    ["a long token", { token: "x".repeat(5000) }, "token"],
    ["credentials with a line break", { authentication: { scheme: "Bearer", credentials: "a\nb" } }, "printable"],
    ["a scheme that is none", { authentication: { scheme: "Bear er", credentials: "a" } }, "scheme"],
    ["a long ID", { id: "x".repeat(1001) }, "id"],
  ])("are refused with %s", async (_, wrong, reason) => {
    const config = configOf("x", wrong);
    const { id: taskId } = await agent.send("ask", userMessage("hi"));
    const before = await api.post("/threads/count");
    for (const [method, params] of [
      ["SendMessage", { message: userMessage("hi"), configuration: { taskPushNotificationConfig: config } }],
      ["CreateTaskPushNotificationConfig", { taskId, ...config }],
    ] as const) {
      const { error } = await agent.call("ask", method, params);
      expect([method, error?.code, error?.message]).toEqual([method, -32602, expect.stringContaining(reason)]);
    }
    expect(await api.post("/threads/count")).toBe(before);
  });
});

it("http.disable_webhooks disables push notifications", async () => {
  const api = await Scenario.start("sqlite", {}, { config: "test/graphs/a2a/single.json" });
  try {
    const agent = new A2aCaller(api);
    const { id: taskId } = await agent.send("echo", userMessage("hi"));
    const config = { taskId, id: "x", url: "https://example.com/x" };
    for (const [method, params] of [
      ["CreateTaskPushNotificationConfig", config],
      ["GetTaskPushNotificationConfig", { taskId, id: "x" }],
      ["ListTaskPushNotificationConfigs", { taskId }],
      ["DeleteTaskPushNotificationConfig", { taskId, id: "x" }],
      ["SendMessage", { message: userMessage("hi"), configuration: { taskPushNotificationConfig: config } }],
    ] as const)
      expect([method, (await agent.call("echo", method, params)).error?.code]).toEqual([method, -32003]);
  } finally {
    await api.stop();
  }
});
