import { type BaseEvent, EventType, HttpAgent, type RunAgentParameters } from "@ag-ui/client";
import { HttpAgent as HttpAgent0 } from "ag-ui-client-0";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Scenario, type Wire } from "../http/scenario.ts";
import { databases } from "../support/databases.ts";
import { until } from "../support/until.ts";

// The current version, and the version of CopilotKit 1.75, whose types are those of the current one as far as the scenarios go. Both
// check the order and the fields of all events.
const clients = [
  ["1.0.0", HttpAgent, true],
  ["0.0.59", HttpAgent0 as unknown as typeof HttpAgent, false],
] as const;

describe.each(clients)("the AG-UI client in version %s", (_version, Agent, isModern) => {
  let api: Scenario;
  let url: string;
  beforeAll(async () => {
    api = await Scenario.start(
      databases[0] ?? "sqlite",
      { THREADMILL_DISCONNECT_GRACE: "10ms" },
      { config: "test/graphs/ag-ui/langgraph.json" },
    );
    url = await api.service.listen();
  });
  afterAll(() => api.stop());

  const agentOf = async (graph: string, options: { threadId?: string; initialState?: object } = {}) => {
    const threadId = options.threadId ?? (await api.newThread());
    return new Agent({ url: `${url}/ag-ui/${graph}`, ...options, threadId });
  };
  let messages = 0;
  const say = (agent: HttpAgent, content: string) =>
    agent.addMessage({ id: `user-${++messages}`, role: "user", content });

  /** The events of a run, which ends without an error of the client. */
  async function run(agent: HttpAgent, options: RunAgentParameters = {}): Promise<Wire[]> {
    const events: BaseEvent[] = [];
    await agent.runAgent(options, { onEvent: ({ event }) => void events.push(event) });
    return events;
  }
  const typesOf = (events: Wire[]) => events.map(({ type }) => type);
  const eventsOf = (events: Wire[], type: string) => events.filter((event) => event.type === type);
  const last = (events: Wire[]) => events.at(-1);

  it("receives tokens, steps, a tool call with its result, a subgraph and the messages", async () => {
    const agent = await agentOf("everything");
    say(agent, "Weather?");
    const events = await run(agent, { runId: "my-run" });
    expect(events[0]).toMatchObject({ type: "RUN_STARTED", threadId: agent.threadId, runId: "my-run" });
    expect(events[0].protocolVersion).toBe(isModern ? "1.0" : undefined);
    const first = events.filter(({ type }) => !/SNAPSHOT|CUSTOM/.test(type)).slice(1, 19);
    expect(
      first.map(({ type, stepName, delta, content }) => [type, stepName ?? delta ?? content].filter(Boolean)),
    ).toEqual([
      ["STEP_STARTED", "prepare"],
      ["STEP_FINISHED", "prepare"],
      ["STEP_STARTED", "agent"],
      ["TEXT_MESSAGE_START"],
      ["TEXT_MESSAGE_CONTENT", "Looking"],
      ["TOOL_CALL_START"],
      ["TOOL_CALL_ARGS", '{"city":'],
      ["TOOL_CALL_ARGS", '"Bonn"}'],
      ["TEXT_MESSAGE_END"],
      ["TOOL_CALL_END"],
      ["STEP_FINISHED", "agent"],
      ["STEP_STARTED", "tools"],
      ["TOOL_CALL_RESULT", "sunny in Bonn"],
      ["STEP_FINISHED", "tools"],
      ["STEP_STARTED", "agent"],
      ["TEXT_MESSAGE_START"],
      ["TEXT_MESSAGE_CONTENT", "It is "],
      ["TEXT_MESSAGE_CONTENT", "sunny"],
    ]);
    expect(eventsOf(events, "STEP_STARTED").map(({ stepName }) => stepName)).toEqual([
      ...["prepare", "agent", "tools", "agent", "review", "inspect", "comment"],
    ]);
    expect(eventsOf(events, "CUSTOM").map(({ name, value }) => [name, value])).toEqual([
      ["custom", { step: "prepare", done: 1 }],
      ["custom", "a plain text"],
      ["custom", { step: "inspect", messages: 4 }],
    ]);
    expect(last(events)).toEqual({
      type: "RUN_FINISHED",
      threadId: agent.threadId,
      runId: "my-run",
      ...(isModern && { outcome: { type: "success" } }),
      usage: [{ provider: "ReciteModel", inputTokens: 8, outputTokens: 6, totalTokens: 14 }],
    });
    expect(agent.messages.map(({ id, role, content }) => [id, role, content])).toEqual([
      [expect.stringMatching(/^user/), "user", "Weather?"],
      ["ai-1", "assistant", "Looking"],
      ["tool-Bonn", "tool", "sunny in Bonn"],
      ["ai-3", "assistant", "It is sunny."],
      ["written", "assistant", "A message that no model streamed."],
      ["ai-5", "assistant", "It is sunny."],
    ]);
    expect(agent.messages[1]).toMatchObject({
      toolCalls: [{ id: "call-1", type: "function", function: { name: "weather", arguments: '{"city":"Bonn"}' } }],
    });
    expect(agent.state).toMatchObject({ notes: ["prepared", "inspected"] });
  });

  it("continues a thread without sending its messages and values a second time", async () => {
    const agent = await agentOf("frontend", { initialState: { topic: "birds", unknown: 1 } });
    say(agent, "one");
    await run(agent);
    expect(agent.state).toMatchObject({ topic: "birds", notes: ["answered"] });
    say(agent, "two");
    await run(agent);
    expect(agent.messages.map(({ content }) => content)).toEqual(["one", "You said: one", "two", "You said: two"]);
    expect(agent.state).toMatchObject({ notes: ["answered", "answered"] });
    agent.setState({ ...agent.state, topic: "fish" });
    await run(agent);
    expect((await api.thread(agent.threadId)).values).toMatchObject({ topic: "fish", notes: { length: 3 } });
    expect((await api.get(`/threads/${agent.threadId}/runs`)).map((one: Wire) => one.status)).toEqual([
      ...["success", "success", "success"],
    ]);
  });

  it("executes its own tools, and sends their results", async () => {
    const agent = await agentOf("frontend", { initialState: { topic: "birds" } });
    const tools = [{ name: "show", description: "Shows it.", parameters: { type: "object" } }];
    const context = [{ description: "Page", value: "/birds" }];
    say(agent, "Show me");
    const events = await run(agent, { tools, context });
    expect(typesOf(events)).not.toContain("TOOL_CALL_RESULT");
    expect(eventsOf(events, "TOOL_CALL_START")).toMatchObject([{ toolCallId: "front-1", toolCallName: "show" }]);
    expect(eventsOf(events, "TOOL_CALL_ARGS")).toMatchObject([{ delta: '{"topic":"birds"}' }]);
    agent.addMessage({ id: "result", role: "tool", toolCallId: "front-1", content: "shown" });
    await run(agent, { tools, context });
    expect(agent.messages.at(-1)).toMatchObject({ role: "assistant", content: "You said: shown" });
    const { parameters, ...named } = tools[0] as (typeof tools)[0];
    const actions = [{ type: "function", name: "show", function: { ...named, parameters } }];
    const { values } = await api.thread(agent.threadId);
    expect(values).toMatchObject({
      tools: actions,
      copilotkit: { actions, context },
      "ag-ui": { tools: actions, context },
    });
    expect(values.messages.map(({ type }: Wire) => type)).toEqual(["human", "ai", "tool", "ai"]);
  });

  it("responds to interrupts, one after the other", async () => {
    const agent = await agentOf("ask");
    const asked = await run(agent);
    expect(eventsOf(asked, "CUSTOM")).toMatchObject([{ name: "on_interrupt", value: '{"question":"Which name?"}' }]);
    const [{ rawEvent }] = eventsOf(asked, "CUSTOM");
    if (isModern)
      expect(last(asked)).toMatchObject({ outcome: { type: "interrupt", interrupts: [{ id: rawEvent.id }] } });
    else expect(last(asked)).not.toHaveProperty("outcome");
    const resume = [{ interruptId: rawEvent.id, status: "resolved" as const, payload: "Ann" }];
    const again = await run(agent, { resume });
    expect(eventsOf(again, "CUSTOM")).toMatchObject([{ name: "on_interrupt", value: '{"question":"Which size?"}' }]);
    const [second] = eventsOf(again, "CUSTOM");
    await run(agent, { resume: [{ interruptId: second.rawEvent.id, status: "cancelled" }] });
    expect(agent.state).toEqual({ answers: ["hello", "Ann", "[object Object]"] });
  });

  it("responds to two interrupts at once", async () => {
    const agent = await agentOf("two");
    const asked = await run(agent);
    const interrupts = eventsOf(asked, "CUSTOM").map(({ rawEvent }) => rawEvent);
    expect(interrupts.map(({ value }) => value)).toEqual([{ message: "Left?", reason: "side" }, "Right?"]);
    if (isModern)
      expect(last(asked).outcome.interrupts).toMatchObject([
        { id: interrupts[0].id, reason: "side", message: "Left?" },
        { id: interrupts[1].id, reason: "langgraph:interrupt", message: "Right?" },
      ]);
    const [left, right] = interrupts;
    await run(agent, {
      resume: [
        { interruptId: right.id, status: "resolved", payload: { answer: 2 } },
        { interruptId: left.id, status: "resolved", payload: null },
      ],
    });
    expect(agent.state).toEqual({ words: ["null", '{"answer":2}'] });
  });

  // A client of version 1.0 refuses such a request itself.
  it.skipIf(isModern)("responds as CopilotKit does, and is asked again until it responds", async () => {
    const agent = await agentOf("ask");
    const asked = await run(agent);
    say(agent, "Hello?");
    const again = await run(agent);
    expect(typesOf(again)).toEqual(["RUN_STARTED", "CUSTOM", "RUN_FINISHED"]);
    expect(eventsOf(again, "CUSTOM")).toEqual(eventsOf(asked, "CUSTOM"));
    expect(await api.get(`/threads/${agent.threadId}/runs`)).toHaveLength(1);
    await run(agent, { forwardedProps: { command: { resume: '{"name":"Ann"}' } } });
    expect(agent.state).toEqual({ answers: ["hello", "[object Object]"] });
  });

  it("continues after a breakpoint", async () => {
    const agent = await agentOf("breaks");
    expect(last(await run(agent))).toMatchObject({ type: "RUN_FINISHED" });
    expect(agent.state).toEqual({ words: ["first"] });
    await run(agent);
    expect(agent.state).toEqual({ words: ["first", "second"] });
  });

  it("receives the error of a node", async () => {
    const agent = await agentOf("failing", { initialState: { color: "plaid" } });
    const events: Wire[] = [];
    await agent.runAgent({}, { onEvent: ({ event }) => void events.push(event) }).catch(() => undefined);
    expect(last(events)).toEqual({ type: "RUN_ERROR", code: "RangeError", message: 'There is no color "plaid".' });
  });

  it("receives parallel tasks of a node as one step", async () => {
    const agent = await agentOf("workers");
    const events = await run(agent);
    expect(events.flatMap(({ type, stepName }) => (stepName ? [[type, stepName]] : []))).toEqual([
      ["STEP_STARTED", "work"],
      ["STEP_FINISHED", "work"],
    ]);
    expect(agent.state).toEqual({ words: ["a", "b"] });
  });

  it("receives the reasoning of a model before its text", async () => {
    const agent = await agentOf("thinks");
    say(agent, "Really?");
    const events = await run(agent);
    expect(typesOf(events).filter((type) => /REASONING|TEXT/.test(type))).toEqual([
      EventType.REASONING_START,
      EventType.REASONING_MESSAGE_START,
      EventType.REASONING_MESSAGE_CONTENT,
      EventType.REASONING_MESSAGE_CONTENT,
      EventType.REASONING_MESSAGE_END,
      EventType.REASONING_END,
      EventType.TEXT_MESSAGE_START,
      EventType.TEXT_MESSAGE_CONTENT,
      EventType.TEXT_MESSAGE_CONTENT,
      EventType.TEXT_MESSAGE_END,
    ]);
    expect(agent.messages.slice(1)).toEqual([
      { id: "thought-1-reasoning", role: "reasoning", content: "Let me see." },
      { id: "thought-1", role: "assistant", content: "Yes." },
    ]);
  });

  it("receives no text of a silent model, but the state that a tool call predicts", async () => {
    const agent = await agentOf("silent");
    say(agent, "Weather?");
    const events = await run(agent);
    expect(typesOf(events).filter((type) => /TEXT|TOOL_CALL_START|CUSTOM/.test(type))).toEqual([
      "CUSTOM",
      "TOOL_CALL_START",
    ]);
    const value = [{ state_key: "city", tool: "weather", tool_argument: "city" }];
    expect(eventsOf(events, "CUSTOM")).toMatchObject([{ name: "PredictState", value }]);
    expect(agent.messages.at(-1)).toMatchObject({ content: "Looking" });
  });

  it("cancels the run when it stops", async () => {
    const agent = await agentOf("waiting");
    const ended = agent.runAgent({}, { onCustomEvent: () => agent.abortRun() });
    await ended.catch(() => undefined);
    const run = await until("the run is cancelled", async () => {
      const [run] = await api.get(`/threads/${agent.threadId}/runs`);
      return run?.status === "interrupted" && run;
    });
    expect(run.metadata).toMatchObject({ ag_ui_thread_id: agent.threadId });
  });

  it("receives the cancel of another client", async () => {
    const agent = await agentOf("waiting");
    const events: Wire[] = [];
    const ended = agent.runAgent(
      {},
      {
        onEvent: ({ event }) => void events.push(event),
        onCustomEvent: async () => {
          const [run] = await api.get(`/threads/${agent.threadId}/runs`);
          await api.cancel(run, "");
        },
      },
    );
    await ended.catch(() => undefined);
    if (isModern) expect(last(events)).toMatchObject({ type: "RUN_FINISHED", outcome: { type: "cancelled" } });
    else expect(last(events)).toEqual({ type: "RUN_ERROR", code: "cancelled", message: "The run was cancelled." });
  });

  it("chooses any text as the ID of its thread", async () => {
    const one = await agentOf("frontend", { threadId: `chat ${_version}` });
    say(one, "first");
    const events = await run(one);
    expect(events[0].threadId).toBe(`chat ${_version}`);
    const other = await agentOf("frontend", { threadId: `chat ${_version}` });
    say(other, "second");
    await run(other);
    const texts = ["first", "You said: first", "second", "You said: second"];
    expect(other.messages.map(({ content }) => content).sort()).toEqual(texts.sort());
  });
});
