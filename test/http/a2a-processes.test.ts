import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startThreadmill, type Threadmill } from "../../src/main.ts";
import { createLog } from "../../src/platform/lib/log.ts";
import { databases } from "../support/databases.ts";
import { startReceiver } from "../support/webhook-receiver.ts";
import { A2aCaller, CONFIG, textsIn, userMessage } from "./a2a.ts";
import { Scenario, type Wire } from "./scenario.ts";

describe.each(databases)("A2A tasks, with two services on one database (%s)", (database) => {
  let api: Scenario;
  let first: A2aCaller;
  let second: A2aCaller;
  let other: Threadmill;
  beforeAll(async () => {
    api = await Scenario.start(database, {}, CONFIG);
    other = await startThreadmill(api.service.config, createLog("silent"));
    first = new A2aCaller(api);
    second = new A2aCaller({
      service: { ...api.service, threadmill: other },
      send: (...request) => sendTo(other, ...request),
    });
  });
  afterAll(async () => {
    await other.stop();
    await api.stop();
  });

  async function sendTo(target: Threadmill, ...[method, path, sent]: Parameters<Scenario["send"]>) {
    const init = { method, headers: { "content-type": "application/json" }, body: JSON.stringify(sent) };
    const response = await target.fetch(new Request(`http://localhost${path}`, init));
    const text = await response.text();
    const isJson = response.headers.get("content-type")?.startsWith("application/json");
    return { status: response.status, headers: response.headers, text, body: isJson ? JSON.parse(text) : undefined };
  }

  /** A task that waits for its door, and a stream of it from the service that has accepted it. */
  async function waiting() {
    const door = api.newDoor();
    const stream = await first.open("waits", "SendStreamingMessage", { message: userMessage(door.path) });
    const [{ task }] = await stream.until(
      (updates) => updates.filter(({ artifactUpdate }) => artifactUpdate).length === 3,
    );
    return { id: task.id as string, door, stream };
  }

  it("are cancelled by the other service, which ends the stream of the first", async () => {
    const { id, stream } = await waiting();
    const { result } = await second.call("waits", "CancelTask", { id });
    expect(result.status.state).toBe("TASK_STATE_CANCELED");
    expect((await stream.rest()).at(-1).statusUpdate.status.state).toBe("TASK_STATE_CANCELED");
  });

  it("are streamed by the other service from the start, with the same updates", async () => {
    const { id, door, stream } = await waiting();
    const same = await second.open("waits", "SubscribeToTask", { id });
    await same.until((updates) => updates.filter(({ artifactUpdate }) => artifactUpdate).length === 3);
    door.open();
    const [one, two] = (await Promise.all([stream.rest(), same.rest()])) as [Wire[], Wire[]];
    const artifacts = (updates: Wire[]) => updates.filter(({ artifactUpdate }) => artifactUpdate);
    expect(artifacts(two)).toEqual(artifacts(one));
    expect(two.at(-1)).toEqual(one.at(-1));
  });

  it("are answered by the other service after an interrupt, and read by both", async () => {
    const asked = await first.send("ask", userMessage("hi"));
    const again = await second.send("ask", userMessage("7", { taskId: asked.id }));
    const ended = await first.send("ask", userMessage("because", { taskId: again.id }));
    expect(ended.artifacts.map(textsIn)).toEqual(['[7,"because"]']);
    expect(await second.get("ask", ended.id)).toEqual(ended);
    expect(await second.list("ask", {})).toEqual(await first.list("ask", {}));
  });

  it("notify receivers that the other service has added while the task works", async () => {
    const receiver = await startReceiver();
    try {
      const { id: taskId, door } = await waiting();
      const config = { taskId, id: "late", url: receiver.at("late") };
      expect((await second.call("waits", "CreateTaskPushNotificationConfig", config)).result).toEqual(config);
      door.open();
      expect((await receiver.nth("late")).body.task).toMatchObject({
        id: taskId,
        status: { state: "TASK_STATE_COMPLETED" },
      });
    } finally {
      await receiver.close();
    }
  });
});
