import { writeFileSync } from "node:fs";
import { beforeEach, describe, expect, it } from "vitest";
import { readUpdates, textsIn, userMessage } from "../http/a2a.ts";
import type { Wire } from "../http/scenario.ts";
import { databases } from "../support/databases.ts";
import type { ServerProcess } from "../support/process.ts";
import { startReceiver } from "../support/webhook-receiver.ts";
import { sharing } from "./sharing.ts";

describe.each(databases)("A2A tasks of processes that share a database (%s)", (name) => {
  const shared = sharing(name);
  let first: ServerProcess;
  let second: ServerProcess;
  beforeEach(async () => {
    const start = () => shared.start("test/graphs/a2a/langgraph.json");
    [first, second] = await Promise.all([start(), start()]);
  });

  const open = async ({ url }: ServerProcess, method: string, params: object) => {
    const abort = new AbortController();
    const response = await fetch(`${url}/a2a/waits`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
      signal: abort.signal,
    });
    return { response, abort };
  };
  const call = async (server: ServerProcess, method: string, params: object): Promise<Wire> =>
    (await open(server, method, params)).response.json();
  const stream = async (...request: Parameters<typeof open>) => {
    const { response, abort } = await open(...request);
    return readUpdates(response, abort);
  };

  it("continue if the process that streams and executes them is killed, and are streamed by the other", async () => {
    const receiver = await startReceiver();
    try {
      const door = shared.gate("door");
      const taskPushNotificationConfig = { id: "end", url: receiver.at("end") };
      const params = { message: userMessage(door), configuration: { taskPushNotificationConfig } };
      // Either process may execute the task. The killed one is the one that streams it.
      const lost = await stream(first, "SendStreamingMessage", params);
      const [{ task }] = await lost.until(
        (updates) => updates.filter(({ artifactUpdate }) => artifactUpdate).length === 3,
      );
      first.child.kill("SIGKILL");
      await expect(lost.rest()).rejects.toThrow();
      const rest = await stream(second, "SubscribeToTask", { id: task.id });
      const [{ task: found }] = await rest.until((updates) => updates.length > 0);
      expect(found).toMatchObject({ id: task.id, contextId: task.contextId });
      writeFileSync(door, "");
      const updates = await rest.rest();
      expect(updates.at(-1).statusUpdate.status.state).toBe("TASK_STATE_COMPLETED");
      const { result } = await call(second, "GetTask", { id: task.id });
      expect(result.artifacts.map(textsIn)).toEqual(["The door is open."]);
      const request = await receiver.nth("end");
      expect(request.body.task).toMatchObject({ id: task.id, status: { state: "TASK_STATE_COMPLETED" } });
    } finally {
      await receiver.close();
    }
  });
});
