import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import { until } from "../support/until.ts";
import { ADMIN, closedService, newCaller, newKey, newWorkspace } from "./callers.ts";
import { Scenario, UNKNOWN_ID, type Wire } from "./scenario.ts";

type Headers = Record<string, string>;

const CONFIG = { config: "test/graphs/ag-ui/langgraph.json" };

/** The events of a response. The stream contains nothing but data lines and heartbeats. */
const eventsOf = (text: string): Wire[] =>
  text
    .split("\n\n")
    .filter((frame) => frame !== "" && !frame.startsWith(":"))
    .map((frame) => JSON.parse(/^data: (.*)$/.exec(frame)?.[1] ?? frame));

const ask = (api: Scenario, graph: string, body: object, headers: Headers = {}) =>
  api.send("POST", `/ag-ui/${graph}`, { threadId: "t", runId: "r", ...body }, headers);

describe.each(databases)("an AG-UI request on %s", (database) => {
  let api: Scenario;
  beforeAll(async () => {
    api = await Scenario.start(database, {}, CONFIG);
  });
  afterAll(() => api.stop());

  const runsOf = (thread_id: string): Promise<Wire[]> => api.get(`/threads/${thread_id}/runs`);
  const valuesOf = async (thread_id: string) => (await api.thread(thread_id)).values;
  const newId = () => crypto.randomUUID();

  it.each<[string, object, string]>([
    ["no thread", { threadId: undefined }, "body.threadId"],
    ["an empty thread ID", { threadId: "" }, "body.threadId"],
    ["a long thread ID", { threadId: "x".repeat(2000) }, "body.threadId"],
    ["no run ID", { runId: 7 }, "body.runId"],
    ["a state that is no object", { state: "text" }, "body.state"],
    ["an unknown role", { messages: [{ id: "1", role: "robot", content: "" }] }, "body.messages.0.role"],
    ["a message without ID", { messages: [{ role: "user", content: "" }] }, "body.messages.0.id"],
    [
      "an unknown part",
      { messages: [{ id: "1", role: "user", content: [{ type: "smell" }] }] },
      "body.messages.0.content",
    ],
    [
      "a tool message without call",
      { messages: [{ id: "1", role: "tool", content: "" }] },
      "body.messages.0.toolCallId",
    ],
    ["a tool without name", { tools: [{ description: "" }] }, "body.tools.0.name"],
    ["a context without value", { context: [{ description: "" }] }, "body.context.0.value"],
    ["properties that are a list", { forwardedProps: [] }, "body.forwardedProps"],
    [
      "a config that is no config",
      { forwardedProps: { config: { recursion_limit: 0 } } },
      "body.forwardedProps.config.recursion_limit",
    ],
    [
      "large metadata",
      { forwardedProps: { metadata: { a: "x".repeat(70_000) } } },
      "body.forwardedProps.metadata: is larger",
    ],
    ["an unknown status of a response", { resume: [{ interruptId: "1", status: "maybe" }] }, "body.resume.0.status"],
    ["a response to nothing", { resume: [{ interruptId: "1", status: "resolved" }] }, 'no open interrupt "1"'],
    ["a key that changes a prototype", JSON.parse('{"state": {"__proto__": {"a": 1}}}'), "__proto__"],
    [
      "tool calls with long arguments",
      {
        messages: [
          {
            id: "1",
            role: "assistant",
            toolCalls: [{ id: "c", function: { name: "f", arguments: " ".repeat(1_000_001) } }],
          },
        ],
      },
      "the arguments of the tool calls",
    ],
  ])("is refused with %s", async (_, body, reason) => {
    const { status, body: answer } = await ask(api, "frontend", { threadId: UNKNOWN_ID, ...body });
    expect([status, answer.detail]).toEqual([422, expect.stringContaining(reason)]);
    expect((await api.send("GET", `/threads/${UNKNOWN_ID}`)).status).toBe(404);
  });

  it.each(["nothing", UNKNOWN_ID])("is refused for the unknown assistant %s", async (assistant) => {
    const { status, body } = await ask(api, assistant, {});
    expect([status, body.detail]).toEqual([404, expect.stringContaining(assistant)]);
  });

  it("creates a thread and a run, to which the response refers", async () => {
    const threadId = newId();
    const messages = [{ id: "u", role: "user", content: "Hi" }];
    const { headers, text } = await ask(api, "frontend", { threadId: threadId.toUpperCase(), runId: "mine", messages });
    const [run] = await runsOf(threadId);
    expect(headers.get("content-location")).toBe(`/threads/${threadId}/runs/${run.run_id}`);
    expect(headers.get("content-type")).toBe("text/event-stream");
    expect(run).toMatchObject({
      status: "success",
      metadata: { ag_ui_thread_id: threadId.toUpperCase(), ag_ui_run_id: "mine" },
    });
    const events = eventsOf(text);
    expect(events[0]).toEqual({ type: "RUN_STARTED", threadId: threadId.toUpperCase(), runId: "mine" });
    expect(events.at(-1)).toMatchObject({ type: "RUN_FINISHED", threadId: threadId.toUpperCase(), runId: "mine" });
  });

  it("may contain null for every optional field", async () => {
    const optional = { state: null, messages: null, tools: null, context: null, forwardedProps: null, resume: null };
    const { text } = await ask(api, "workers", { threadId: newId(), ...optional });
    expect(eventsOf(text).at(-1).type).toBe("RUN_FINISHED");
  });

  it("passes on its config, context and metadata", async () => {
    const threadId = newId();
    const forwardedProps = {
      config: { recursion_limit: 7 },
      context: { tone: "kind" },
      metadata: { team: "blue" },
      other: 1,
    };
    await ask(api, "workers", { threadId, forwardedProps });
    const [run] = await runsOf(threadId);
    expect(run.metadata).toMatchObject({ team: "blue" });
    expect(run.kwargs).toMatchObject({ config: { recursion_limit: 7 }, context: { tone: "kind" } });
    expect((await api.thread(threadId)).metadata).toMatchObject({ team: "blue" });
  });

  it("becomes messages of the graph, and omits other input", async () => {
    const threadId = newId();
    const call = (id: string, text: string) => ({ id, type: "function", function: { name: "f", arguments: text } });
    const image = { type: "image", source: { type: "data", value: "AAAA", mimeType: "image/png" } };
    await ask(api, "frontend", {
      threadId,
      messages: [
        { id: "s1", role: "system", content: "Of CopilotKit" },
        { id: "d", role: "developer", content: "Configures" },
        { id: "s2", role: "system", content: "Be kind" },
        {
          id: "u1",
          role: "user",
          content: [{ type: "text", text: "See" }, image, { type: "binary", mimeType: "a/b", url: "https://x" }],
        },
        { id: "r", role: "reasoning", content: "Hm" },
        {
          id: "a",
          role: "assistant",
          content: null,
          toolCalls: [call("1", '{"a":1}'), call("2", '{"a":'), call("3", '{"__proto__":{}}')],
        },
        { id: "t", role: "tool", toolCallId: "1", content: "broken", error: "It broke" },
        { id: "u2", role: "user", content: "And?" },
      ],
    });
    const stored: Wire[] = (await valuesOf(threadId)).messages;
    expect(stored.map(({ id }) => id)).toEqual(["s2", "u1", "a", "t", "u2", "answer-5"]);
    expect(stored[1].content).toEqual([
      { type: "text", text: "See" },
      { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } },
      { type: "image_url", image_url: { url: "https://x" } },
    ]);
    expect(stored[2]).toMatchObject({ type: "ai", content: "", tool_calls: [{ id: "1", name: "f", args: { a: 1 } }] });
    expect(stored[2].tool_calls).toHaveLength(1);
    expect(stored[3]).toMatchObject({ type: "tool", tool_call_id: "1", status: "error" });
    const again = [
      { id: "other", role: "tool", toolCallId: "1", content: "broken" },
      { id: "u1", role: "user", content: "Edited" },
    ];
    const { text } = await ask(api, "frontend", { threadId, messages: again });
    expect((await valuesOf(threadId)).messages).toHaveLength(7);
    const { messages } = eventsOf(text).find(({ type }) => type === "MESSAGES_SNAPSHOT");
    expect(messages[1].content).toEqual([
      { type: "text", text: "See" },
      image,
      { type: "image", source: { type: "url", value: "https://x" } },
    ]);
    expect(messages[3]).toEqual({ id: "t", role: "tool", content: "broken", toolCallId: "1", error: "error" });
  });

  it("that has no response to an open interrupt gets it again", async () => {
    const threadId = newId();
    const first = eventsOf((await ask(api, "ask", { threadId })).text).find(({ type }) => type === "CUSTOM");
    const { headers, text } = await ask(api, "ask", { threadId });
    expect(eventsOf(text).map(({ type }) => type)).toEqual(["RUN_STARTED", "CUSTOM", "RUN_FINISHED"]);
    expect(eventsOf(text)[1]).toEqual(first);
    expect(headers.has("content-location")).toBe(false);
    expect(await runsOf(threadId)).toHaveLength(1);
    const resume = [{ interruptId: first.rawEvent.id, status: "resolved", payload: "Ann" }];
    await ask(api, "ask", { threadId, resume });
    expect((await ask(api, "ask", { threadId, resume })).status).toBe(422);
    expect(await valuesOf(threadId)).toEqual({ answers: ["hello", "Ann"] });
  });
});

describe("an AG-UI client with a key", () => {
  let api: Scenario;
  let url: string;
  beforeAll(async () => {
    const env = { THREADMILL_MAX_OPEN_PER_USER: "1", THREADMILL_DISCONNECT_GRACE: "10ms" };
    api = await closedService("sqlite", env, CONFIG);
    url = await api.service.listen();
  });
  afterAll(() => api.stop());

  const open = (threadId: string, headers: Headers) =>
    fetch(`${url}/ag-ui/waiting`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify({ threadId, runId: "r" }),
    });

  it("needs the scope agents", async () => {
    expect((await ask(api, "workers", {}, await newCaller(api, { scopes: ["agents"] }))).status).toBe(200);
    expect((await ask(api, "workers", {}, await newCaller(api, { scopes: ["experiments"] }))).status).toBe(403);
    expect((await ask(api, "workers", {})).status).toBe(401);
  });

  it("gets nothing of the threads of another workspace, even under the same name", async () => {
    const [one, other] = [
      await newCaller(api, { tenant_id: await newWorkspace(api) }),
      await newCaller(api, { tenant_id: await newWorkspace(api) }),
    ];
    const threadId = crypto.randomUUID();
    await ask(api, "ask", { threadId }, one);
    expect((await ask(api, "ask", { threadId }, other)).status).toBe(404);
    const say = (content: string, headers: Headers) =>
      ask(api, "frontend", { threadId: "main", messages: [{ id: content, role: "user", content }] }, headers);
    await say("secret", one);
    const { status, text } = await say("hello", other);
    expect([status, text]).toEqual([200, expect.not.stringContaining("secret")]);
  });

  it("gets an error when its key is revoked, and its run is cancelled", async () => {
    const { id, key } = await newKey(api, { user_id: "alice" });
    const threadId = crypto.randomUUID();
    const response = await open(threadId, { "X-Api-Key": key });
    await until(
      "the run is active",
      async () => (await api.call("GET", `/threads/${threadId}/runs`, undefined, ADMIN))[0],
    );
    await api.call("DELETE", `/admin/keys/${id}`, undefined, ADMIN);
    expect(eventsOf(await response.text()).at(-1)).toEqual({
      type: "RUN_ERROR",
      code: "Unauthorized",
      message: expect.stringContaining("revoked"),
    });
    await until("the run is cancelled", async () => {
      const [run] = await api.call("GET", `/threads/${threadId}/runs`, undefined, ADMIN);
      return run.status === "interrupted";
    });
  });

  it("has a limit of open streams", async () => {
    const headers = await newCaller(api, { user_id: "bob" });
    const first = await open(crypto.randomUUID(), headers);
    const refused = await open(crypto.randomUUID(), headers);
    expect([refused.status, await refused.text()]).toEqual([429, expect.stringContaining("bob")]);
    await first.body?.cancel();
  });
});

describe("an AG-UI client of a project with an authentication handler", () => {
  let api: Scenario;
  beforeAll(async () => {
    api = await Scenario.start("sqlite", {}, { config: "test/graphs/scenarios/auth.json" });
  });
  afterAll(() => api.stop());

  const alice = { authorization: "Bearer alice" };
  const bob = { authorization: "Bearer bob" };

  it("gets nothing of the threads of another user, even under the same name", async () => {
    const threadId = crypto.randomUUID();
    expect((await ask(api, "chain", { threadId, state: { steps: ["alice"] } }, alice)).status).toBe(200);
    const { metadata } = await api.call("GET", `/threads/${threadId}`, undefined, alice);
    expect(metadata).toMatchObject({ owner: "alice" });
    expect((await ask(api, "chain", { threadId }, bob)).status).toBe(404);
    const named = { threadId: "main", state: { steps: ["alice"] } };
    await ask(api, "chain", named, alice);
    const { status, text } = await ask(api, "chain", { ...named, state: {} }, bob);
    expect([status, text]).toEqual([200, expect.not.stringContaining("alice")]);
  });
});

describe("an AG-UI client of a run whose graph host exits", () => {
  let api: Scenario;
  beforeAll(async () => {
    api = await Scenario.start("sqlite", {}, { ...CONFIG, inline: false });
  });
  afterAll(() => api.stop());

  it("sees the message of the first attempt end, and that of the second attempt", async () => {
    const door = api.newDoor();
    const messages = [{ id: "u", role: "user", content: "Hi" }];
    const body = JSON.stringify({ threadId: crypto.randomUUID(), runId: "r", messages, state: { door: door.path } });
    const headers = { "content-type": "application/json" };
    const request = new Request("http://localhost/ag-ui/dying", { method: "POST", headers, body });
    const response = await api.service.threadmill.fetch(request);
    let text = "";
    for await (const chunk of (response.body as ReadableStream<Uint8Array>).pipeThrough(
      new TextDecoderStream() as never,
    )) {
      text += chunk;
      if (text.includes('"waiting"')) door.open();
    }
    const types = eventsOf(text).map(({ type }) => type);
    const opened = ["STEP_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TOOL_CALL_START"];
    const closed = ["TEXT_MESSAGE_END", "TOOL_CALL_END", "STEP_FINISHED"];
    expect(types.filter((type) => !/SNAPSHOT|ARGS/.test(type))).toEqual([
      ...["RUN_STARTED", ...opened, "CUSTOM", ...closed],
      ...[...opened, "CUSTOM", ...closed, "RUN_FINISHED"],
    ]);
  });
});
