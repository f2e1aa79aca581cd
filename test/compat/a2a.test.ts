import { type Message, Role, type StreamResponse, type Task, TaskState } from "@a2a-js/sdk";
import { type Client, ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory } from "@a2a-js/sdk/client";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { listen, startThreadmill } from "../../src/main.ts";
import { createLog } from "../../src/platform/lib/log.ts";
import { CONFIG } from "../http/a2a.ts";
import { ADMIN, closedService, newCaller } from "../http/callers.ts";
import type { Scenario, Wire } from "../http/scenario.ts";
import { databases } from "../support/databases.ts";
import { until } from "../support/until.ts";
import { startReceiver } from "../support/webhook-receiver.ts";

const VERSIONS = ["1.0", "0.3"] as const;
type Version = (typeof VERSIONS)[number];

/** The official client. With version 0.3, it is its compatibility layer, which gets the card and the messages of that version. */
async function clientOf(
  url: string,
  assistant: string,
  version: Version,
  headers: Record<string, string> = ADMIN,
): Promise<Client> {
  const fetchImpl: typeof fetch = (input, init) =>
    fetch(input, { ...init, headers: { ...Object.fromEntries(new Headers(init?.headers)), ...headers } });
  const legacyCompat = { enabled: version === "0.3" };
  const factory = new ClientFactory({
    transports: [new JsonRpcTransportFactory({ fetchImpl, legacyCompat })],
    cardResolver: new DefaultAgentCardResolver({ fetchImpl, legacyCompat }),
  });
  const path = `/.well-known/agent-card.json?assistant_id=${assistant}`;
  if (version === "1.0") return factory.createFromUrl(url, path);
  // Clients of 0.3 do not know the interfaces of 1.0, which their card also contains.
  const { supportedInterfaces: _, ...card } = (await (await fetchImpl(`${url}${path}`)).json()) as Wire;
  return factory.createFromAgentCard(card as never);
}

const messageOf = (parts: Message["parts"], ids: { contextId?: string; taskId?: string } = {}): Message => ({
  messageId: crypto.randomUUID(),
  role: Role.ROLE_USER,
  parts,
  contextId: "",
  taskId: "",
  metadata: undefined,
  extensions: [],
  referenceTaskIds: [],
  ...ids,
});
const part = (content: Message["parts"][number]["content"]) => ({
  content,
  metadata: undefined,
  filename: "",
  mediaType: "",
});
const text = (value: string, ids?: { contextId?: string; taskId?: string }) =>
  messageOf([part({ $case: "text", value })], ids);
const request = (message: Message, configuration: object = {}) => ({
  tenant: "",
  message,
  metadata: undefined,
  configuration: {
    acceptedOutputModes: [],
    taskPushNotificationConfig: undefined,
    returnImmediately: false,
    ...configuration,
  },
});
const textsOf = (parts: Message["parts"] | undefined) =>
  (parts ?? []).map(({ content }) => (content?.$case === "text" ? content.value : content));

const send = async (client: Client, ...given: Parameters<typeof request>) =>
  (await client.sendMessage(request(...given))) as Task;

/** The updates of a stream, whose texts are collected as clients do. */
class Updates {
  readonly all: NonNullable<StreamResponse["payload"]>[] = [];
  readonly texts = new Map<string, string>();

  get task(): Task {
    const [first] = this.all;
    if (first?.$case !== "task") throw new Error("The stream does not begin with the task.");
    return first.value;
  }

  get states(): TaskState[] {
    return this.all.flatMap((update) =>
      update.$case === "statusUpdate" ? [update.value.status?.state as TaskState] : [],
    );
  }

  /** Reads until the updates fit, or to the end. */
  async read(stream: AsyncIterable<StreamResponse>, isEnough: () => boolean = () => false): Promise<this> {
    for await (const { payload } of stream) {
      if (!payload) continue;
      this.all.push(payload);
      if (payload.$case === "artifactUpdate") {
        const { artifact, append } = payload.value;
        const before = append ? (this.texts.get(artifact?.artifactId as string) ?? "") : "";
        this.texts.set(artifact?.artifactId as string, before + textsOf(artifact?.parts).join(""));
      }
      if (isEnough()) break;
    }
    return this;
  }
}

describe.each(databases)("the official A2A client against %s", (database) => {
  describe.each(VERSIONS)("of version %s", (version) => {
    let api: Scenario;
    let url: string;
    beforeAll(async () => {
      api = await closedService(database, {}, CONFIG);
      url = await api.service.listen();
    });
    afterAll(() => api.stop());

    const connect = (assistant: string) => clientOf(url, assistant, version);

    it("finds an assistant by its card, and chats with it in a context", async () => {
      const client = await connect("echo");
      expect(client.protocolVersion).toBe(version);
      expect(await client.getAgentCard()).toMatchObject({ name: "echo", description: "Repeats what it is sent." });
      const first = await send(client, text("one"));
      expect(first.status?.state).toBe(TaskState.TASK_STATE_COMPLETED);
      expect(textsOf(first.artifacts[0]?.parts)).toEqual(["You said: one"]);
      const second = await send(client, text("two", { contextId: first.contextId }));
      expect(second.history.map(({ role, parts }) => [role, ...textsOf(parts)])).toEqual([
        [Role.ROLE_USER, "one"],
        [Role.ROLE_AGENT, "You said: one"],
        [Role.ROLE_USER, "two"],
        [Role.ROLE_AGENT, "You said: two"],
      ]);
      const again = await client.getTask({ tenant: "", id: second.id, historyLength: 1 });
      expect(again.history.map(({ parts }) => textsOf(parts))).toEqual([["You said: two"]]);
    });

    it("sends files and data", async () => {
      const client = await connect("echo");
      const task = await send(
        client,
        messageOf([
          part({ $case: "data", value: { a: 1 } }),
          { ...part({ $case: "raw", value: Buffer.from([1, 2]) }), mediaType: "image/png" },
          { ...part({ $case: "url", value: "https://x.example/a.png" }), mediaType: "image/png" },
        ]),
      );
      const [sent] = textsOf(task.artifacts[0]?.parts) as string[];
      expect(JSON.parse((sent as string).slice("You said: ".length))).toEqual([
        { type: "text", text: '{"a":1}' },
        { type: "image_url", image_url: { url: "data:image/png;base64,AQI=" } },
        { type: "image_url", image_url: { url: "https://x.example/a.png" } },
      ]);
    });

    it("streams the tokens of an answer", async () => {
      const client = await connect("talk");
      const updates = await new Updates().read(client.sendMessageStream(request(text("hi"))));
      expect(updates.task.status?.state).toBe(TaskState.TASK_STATE_SUBMITTED);
      expect(updates.states).toEqual([TaskState.TASK_STATE_WORKING, TaskState.TASK_STATE_COMPLETED]);
      expect([...updates.texts.values()]).toEqual(["yes"]);
    });

    it("cancels a task, and reads the state of one that has ended", async () => {
      const client = await connect("waits");
      const task = await send(client, text(api.newDoor().path), { returnImmediately: true });
      await until("it works", async () => {
        const { status } = await client.getTask({ tenant: "", id: task.id });
        return status?.state === TaskState.TASK_STATE_WORKING;
      });
      const cancelled = await client.cancelTask({ tenant: "", id: task.id, metadata: undefined });
      expect(cancelled.status?.state).toBe(TaskState.TASK_STATE_CANCELED);
      await expect(client.cancelTask({ tenant: "", id: task.id, metadata: undefined })).rejects.toMatchObject({
        name: "TaskNotCancelableError",
      });
      const missing = client.getTask({ tenant: "", id: crypto.randomUUID() });
      await expect(missing).rejects.toMatchObject({ name: "TaskNotFoundError" });
      const failed = await send(await connect("fails"), text("hi"));
      expect(failed.status?.state).toBe(TaskState.TASK_STATE_FAILED);
      expect(textsOf(failed.status?.message?.parts)).toEqual(["RangeError: There is no such color."]);
    });

    it("gives input that a task requires", async () => {
      const client = await connect("ask");
      const asked = await send(client, text("hi"));
      expect(asked.status?.state).toBe(TaskState.TASK_STATE_INPUT_REQUIRED);
      expect(textsOf(asked.status?.message?.parts)).toEqual([{ $case: "data", value: { question: "Which order?" } }]);
      const answer = messageOf([part({ $case: "data", value: { order: 7 } })], { taskId: asked.id });
      const updates = await new Updates().read(client.sendMessageStream(request(answer)));
      expect(updates.states.at(-1)).toBe(TaskState.TASK_STATE_INPUT_REQUIRED);
      const ended = await send(client, text("because", { taskId: updates.task.id, contextId: asked.contextId }));
      expect(textsOf(ended.artifacts[0]?.parts)).toEqual(['[{"order":7},"because"]']);
    });

    it("subscribes to a task after a disconnect, and gets the whole answer", async () => {
      const client = await connect("waits");
      const door = api.newDoor();
      const abort = new AbortController();
      const lost = new Updates();
      const stream = client.sendMessageStream(request(text(door.path)), { signal: abort.signal });
      await lost.read(stream, () => [...lost.texts.values()].includes("yes"));
      abort.abort();
      const updates = new Updates();
      const reading = updates.read(client.resubscribeTask({ tenant: "", id: lost.task.id }));
      await until("the task is there again", async () => [...updates.texts.values()].includes("yes"));
      door.open();
      await reading;
      expect(updates.task.id).toBe(lost.task.id);
      expect([...updates.texts.values()]).toEqual(["yes", "The door is open."]);
      expect(updates.states.at(-1)).toBe(TaskState.TASK_STATE_COMPLETED);
    });

    it("registers receivers of push notifications", async () => {
      const receiver = await startReceiver();
      try {
        const client = await connect("waits");
        const door = api.newDoor();
        const config = {
          tenant: "",
          id: "one",
          taskId: "",
          url: receiver.at("one"),
          token: "t",
          authentication: undefined,
        };
        const task = await send(client, text(door.path), {
          returnImmediately: true,
          taskPushNotificationConfig: config,
        });
        const authentication = { scheme: "Bearer", credentials: "c" };
        const second = { ...config, id: "two", url: receiver.at("two"), taskId: task.id, authentication };
        expect(await client.createTaskPushNotificationConfig(second)).toMatchObject({ id: "two", url: second.url });
        const listed = await client.listTaskPushNotificationConfig({
          tenant: "",
          taskId: task.id,
          pageSize: 0,
          pageToken: "",
        });
        expect(listed.configs.map(({ id }) => id)).toEqual(["one", "two"]);
        const found = await client.getTaskPushNotificationConfig({ tenant: "", taskId: task.id, id: "two" });
        expect(found.url).toBe(second.url);
        await client.createTaskPushNotificationConfig({ ...second, id: "three", url: receiver.at("three") });
        await client.deleteTaskPushNotificationConfig({ tenant: "", taskId: task.id, id: "three" });
        door.open();
        const [one, two] = [await receiver.nth("one"), await receiver.nth("two")];
        const state = version === "1.0" ? one.body.task.status.state : one.body.status.state;
        expect(state).toBe(version === "1.0" ? "TASK_STATE_COMPLETED" : "completed");
        expect([one.headers["x-a2a-notification-token"], two.headers.authorization]).toEqual(["t", "Bearer c"]);
        expect(receiver.of("three")).toEqual([]);
      } finally {
        await receiver.close();
      }
    });

    it("is refused without a key, and finds nothing of other assistants", async () => {
      await expect(clientOf(url, "echo", version, {})).rejects.toThrow();
      const task = await send(await connect("echo"), text("hi"));
      const other = await clientOf(url, "talk", version, await newCaller(api));
      await expect(other.getTask({ tenant: "", id: task.id })).rejects.toMatchObject({ name: "TaskNotFoundError" });
    });
  });

  it("lists tasks in pages", async () => {
    const api = await closedService(database, {}, CONFIG);
    try {
      const client = await clientOf(await api.service.listen(), "echo", "1.0");
      const { contextId } = await send(client, text("1"));
      for (const value of ["2", "3"]) await send(client, text(value, { contextId }));
      const query = { tenant: "", contextId, status: TaskState.TASK_STATE_COMPLETED, statusTimestampAfter: undefined };
      const page = await client.listTasks({ ...query, pageSize: 2, pageToken: "", includeArtifacts: true });
      expect(page).toMatchObject({ totalSize: 3, pageSize: 2 });
      const next = await client.listTasks({
        ...query,
        pageSize: 2,
        pageToken: page.nextPageToken,
        includeArtifacts: true,
      });
      const answers = [...page.tasks, ...next.tasks].map(({ artifacts }) => textsOf(artifacts[0]?.parts).join());
      expect(answers).toEqual(["You said: 3", "You said: 2", "You said: 1"]);
    } finally {
      await api.stop();
    }
  });

  it("continues to read a task when the service has restarted in the middle of its stream", async () => {
    const api = await closedService(database, {}, CONFIG);
    const first = await listen(api.service.config, api.service.threadmill);
    const client = await clientOf(first.url, "waits", "1.0");
    const door = api.newDoor();
    const lost = new Updates();
    const reading = lost.read(client.sendMessageStream(request(text(door.path))));
    await until("its tokens are there", async () => [...lost.texts.values()].includes("yes"));
    const stopping = first.stop();
    await reading.catch(() => undefined);
    await stopping;
    const again = await startThreadmill(api.service.config, createLog("silent"));
    const listening = await listen(api.service.config, again);
    try {
      const updates = new Updates();
      const restarted = await clientOf(listening.url, "waits", "1.0");
      const rest = updates.read(restarted.resubscribeTask({ tenant: "", id: lost.task.id }));
      await until("the task is there again", async () => [...updates.texts.values()].includes("yes"));
      door.open();
      await rest;
      expect([...updates.texts.values()]).toEqual(["yes", "The door is open."]);
      expect(updates.states.at(-1)).toBe(TaskState.TASK_STATE_COMPLETED);
    } finally {
      await listening.stop();
      await api.service.database.drop();
    }
  });
});
