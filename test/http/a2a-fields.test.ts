import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { A2aCaller, CONFIG } from "./a2a.ts";
import { Scenario, UNKNOWN_ID, type Wire } from "./scenario.ts";

const PUSH = {
  id: "c",
  url: "https://example.com/x",
  token: "t",
  authentication: { scheme: "Bearer", credentials: "c" },
};
const legacyMessage = {
  ...{ kind: "message", messageId: "1", contextId: "", taskId: "", role: "user", metadata: {}, extensions: [] },
  parts: [
    { kind: "text", text: "hi", metadata: {} },
    { kind: "file", file: { bytes: "AAAA", mimeType: "image/png", name: "a" } },
    { kind: "file", file: { uri: "https://x.example" } },
    { kind: "data", data: { a: 1 } },
  ],
};

/** Parameters with all fields, by method. */
const FIELDS: Record<string, Wire> = {
  SendMessage: {
    tenant: "",
    message: {
      ...{
        messageId: "1",
        contextId: "c",
        taskId: "",
        role: "ROLE_USER",
        metadata: {},
        extensions: [],
        referenceTaskIds: [],
      },
      parts: [
        { text: "hi", mediaType: "text/plain", filename: "a", metadata: {} },
        { raw: "AAAA" },
        { url: "x" },
        { data: {} },
      ],
    },
    configuration: {
      ...{ acceptedOutputModes: ["text/plain"], historyLength: 1, returnImmediately: true },
      taskPushNotificationConfig: PUSH,
    },
    metadata: { a: 1 },
  },
  GetTask: { id: UNKNOWN_ID, historyLength: 1 },
  ListTasks: {
    ...{ contextId: "c", status: "TASK_STATE_WORKING", pageSize: 1, pageToken: "1.1", historyLength: 1 },
    ...{ statusTimestampAfter: "2026-01-01T00:00:00Z", includeArtifacts: true },
  },
  CancelTask: { id: UNKNOWN_ID, metadata: {} },
  SubscribeToTask: { id: UNKNOWN_ID },
  CreateTaskPushNotificationConfig: { taskId: UNKNOWN_ID, ...PUSH },
  GetTaskPushNotificationConfig: { taskId: UNKNOWN_ID, id: "c" },
  ListTaskPushNotificationConfigs: { taskId: UNKNOWN_ID, pageSize: 1, pageToken: "" },
  DeleteTaskPushNotificationConfig: { taskId: UNKNOWN_ID, id: "c" },
  "message/send": {
    message: legacyMessage,
    configuration: {
      ...{ acceptedOutputModes: ["text"], blocking: false, historyLength: 1 },
      pushNotificationConfig: { ...PUSH, authentication: { schemes: ["Bearer"], credentials: "c" } },
    },
    metadata: {},
  },
  "tasks/get": { id: UNKNOWN_ID, historyLength: 1 },
  "tasks/cancel": { id: UNKNOWN_ID },
  "tasks/resubscribe": { id: UNKNOWN_ID },
  "tasks/pushNotificationConfig/set": { taskId: UNKNOWN_ID, pushNotificationConfig: PUSH },
  "tasks/pushNotificationConfig/get": { id: UNKNOWN_ID, pushNotificationConfigId: "c" },
  "tasks/pushNotificationConfig/list": { id: UNKNOWN_ID },
  "tasks/pushNotificationConfig/delete": { id: UNKNOWN_ID, pushNotificationConfigId: "c" },
};

const pathsIn = (value: Wire): string[][] =>
  typeof value === "object" && value !== null
    ? Object.keys(value).flatMap((key) => [[key], ...pathsIn(value[key]).map((path) => [key, ...path])])
    : [];

function replaced(params: Wire, path: readonly string[], value: unknown): Wire {
  const copy = structuredClone(params);
  const parent = path.slice(0, -1).reduce((within, key) => within[key], copy);
  parent[path.at(-1) as string] = value;
  return copy;
}

const VALUES = [null, true, 7, "x", "\u0000", [], [null], { a: null }];

describe("the A2A endpoint", () => {
  let api: Scenario;
  let agent: A2aCaller;
  beforeAll(async () => {
    api = await Scenario.start("sqlite", {}, CONFIG);
    agent = new A2aCaller(api);
  });
  afterAll(() => api.stop());

  it.each(Object.entries(FIELDS))("answers wrong values in %s, none with an internal error", async (method, params) => {
    for (const path of pathsIn(params)) {
      for (const value of VALUES) {
        const { status, result, error } = await agent.call("silent", method, replaced(params, path, value));
        expect([path, value, status, error?.code === -32603]).toEqual([path, value, 200, false]);
        expect(result !== undefined || error !== undefined).toBe(true);
      }
    }
  });
});
