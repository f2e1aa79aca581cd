import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Wire } from "../http/scenario.ts";
import { databases } from "../support/databases.ts";
import { startService, type TestService } from "../support/service.ts";

/**
 * A finding of the security review: what a client sent in the form of LangChain's records was made into an instance of the class that it
 * named, once the state had been stored and read again.
 */

const record = (id: string[], kwargs: object = {}) => ({ lc: 1, type: "constructor", id, kwargs });
const message = (name: string, kwargs: object = { content: "hi" }) =>
  record(["langchain_core", "messages", name], kwargs);
const PROMPT = record(["langchain_core", "prompts", "prompt", "PromptTemplate"], {
  template: "{a}",
  input_variables: ["a"],
});

/** Data that must stay what it is. */
const DATA: [string, unknown][] = [
  ["a class of prompts", PROMPT],
  ["a class of models", record(["langchain_core", "utils", "testing", "FakeListChatModel"], { responses: ["mine"] })],
  ["a class within others", { list: [{ deep: PROMPT }] }],
  ["a class in a class that there is not", record(["nowhere", "Nothing"], { prompt: PROMPT })],
  ["a secret", { lc: 1, type: "secret", id: ["PATH"] }],
  ["a class that was not implemented", { lc: 1, type: "not_implemented", id: ["x"] }],
  ["a set", { lc: 2, type: "constructor", id: ["Set"], method: null, args: [[1]], kwargs: {} }],
  ["a regular expression", { lc: 2, type: "constructor", id: ["RegExp"], method: null, args: ["(a+)+$", ""] }],
  ["nothing", { lc: 2, type: "undefined" }],
  ["a record of another version", { lc: 3 }],
  ["an instance", { lc_serializable: true, lc_kwargs: {}, ...PROMPT }],
  ["the base of all messages", message("BaseMessage")],
  ["a message without fields", { ...message("HumanMessage"), kwargs: null }],
  ["the escape of LangChain", { __lc_escaped__: PROMPT }],
  ["our own escape", { "~lc_fields": [["lc", 1]] }],
  ["our own escape of a record", { "~lc_fields": Object.entries(PROMPT) }],
];

const MESSAGES = [
  ["HumanMessage"],
  ["HumanMessageChunk"],
  ["AIMessage"],
  ["AIMessageChunk"],
  ["SystemMessage"],
  ["ToolMessage", { content: "hi", tool_call_id: "1" }],
  ["FunctionMessage", { content: "hi", name: "f" }],
  ["ChatMessage", { content: "hi", role: "critic" }],
  ["RemoveMessage", { id: "1" }],
] as const;

describe.each(databases)("a record that a client sends on %s", (database) => {
  let service: TestService;
  beforeAll(async () => {
    service = await startService({ database, config: "test/graphs/records/langgraph.json" });
  });
  afterAll(() => service.stop());

  const call = async (method: string, path: string, body?: object): Promise<Wire> => {
    const answer = await service.request(method, path, body);
    if (answer.status >= 300) throw new Error(`${method} ${path} was answered ${answer.status}: ${answer.text}`);
    return answer.body;
  };
  const newThread = async (): Promise<string> => (await call("POST", "/threads", {})).thread_id;
  const wait = (thread_id: string, assistant_id: string, body: object) =>
    call("POST", `/threads/${thread_id}/runs/wait`, { assistant_id, ...body });
  /** A run that reads the state as it was stored. */
  const readAgain = (thread_id: string) => wait(thread_id, "look", { input: {} });

  /** The ways of a value into what is stored; each answers what the graph has seen of it when it was read. */
  const WAYS: Record<string, (value: unknown) => Promise<Wire>> = {
    async "the input"(value) {
      const thread_id = await newThread();
      await wait(thread_id, "look", { input: { value } });
      return readAgain(thread_id);
    },
    async "an input that was stored before a node has seen it"(value) {
      const thread_id = await newThread();
      await wait(thread_id, "look", { input: { value }, interrupt_before: ["look"] });
      return wait(thread_id, "look", { input: null });
    },
    async "a command's update"(value) {
      const thread_id = await newThread();
      await wait(thread_id, "look", { command: { update: { value }, goto: "look" } });
      return readAgain(thread_id);
    },
    async "an answer"(value) {
      const thread_id = await newThread();
      await wait(thread_id, "ask", { input: {} });
      await wait(thread_id, "ask", { command: { resume: value } });
      return wait(thread_id, "ask", { command: { resume: "go on" } });
    },
    async "what a command sends to a node"(value) {
      const thread_id = await newThread();
      await wait(thread_id, "take", { input: {} });
      const command = { goto: [{ node: "take", input: { value } }] };
      await wait(thread_id, "take", { command, interrupt_before: ["take"] });
      const { value: taken, ...rest } = await wait(thread_id, "take", { input: null });
      return { ...rest, value: taken.value };
    },
    async "the configuration"(value) {
      const { configured, seen } = await wait(await newThread(), "look", {
        config: { configurable: { value } },
        input: {},
      });
      return { value: configured, seen };
    },
    async "the context"(value) {
      const { configured, seen } = await wait(await newThread(), "look", { context: { value }, input: {} });
      return { value: configured, seen };
    },
    async "an update of the state"(value) {
      const thread_id = await newThread();
      await wait(thread_id, "look", { input: {} });
      await call("POST", `/threads/${thread_id}/state`, { values: { value }, as_node: "look" });
      return readAgain(thread_id);
    },
    async "a field of a message"(value) {
      const thread_id = await newThread();
      const messages = [{ type: "human", content: "hi", additional_kwargs: { value } }];
      await wait(thread_id, "look", { input: { messages } });
      const state = await readAgain(thread_id);
      expect(state.seen.shift()).toBe("messages.0: HumanMessage");
      return { ...state, value: state.messages[0].additional_kwargs.value };
    },
    async "a field of the record of a message"(value) {
      const thread_id = await newThread();
      const sent = message("HumanMessage", { content: "hi", additional_kwargs: { value } });
      await wait(thread_id, "look", { input: { value: sent } });
      const state = await readAgain(thread_id);
      expect(state.seen.shift()).toBe("value: HumanMessage");
      return { ...state, value: state.value.additional_kwargs.value };
    },
  };

  describe.each(Object.keys(WAYS))("as %s", (way) => {
    it.each(DATA)("that reads like %s stays data", async (_, value) => {
      const { value: got, seen } = await (WAYS[way] as (value: unknown) => Promise<Wire>)(value);
      expect(got).toEqual(value);
      expect(seen).toEqual([]);
    });
  });

  it.each(MESSAGES)("of a %s is that message when it is read", async (name, kwargs = { content: "hi" } as never) => {
    const thread_id = await newThread();
    await wait(thread_id, "look", { input: { value: { list: [message(name, kwargs)] } } });
    const { value, seen } = await readAgain(thread_id);
    expect(seen).toEqual([`value.list.0: ${name}`]);
    expect(value.list[0]).toMatchObject(kwargs as object);
  });

  it("of a message that cannot be made stays data, and the messages beside it are messages", async () => {
    const thread_id = await newThread();
    const broken = message("AIMessage", { content: "hi", tool_calls: 7 });
    await wait(thread_id, "look", { input: { value: [broken, message("HumanMessage")] } });
    const { seen } = await readAgain(thread_id);
    expect(seen).toContain("value.1: HumanMessage");
  });

  it("is a message at once where messages are expected", async () => {
    const state = await wait(await newThread(), "look", { input: { messages: [message("AIMessage")] } });
    expect(state).toMatchObject({ messages: [{ type: "ai", content: "hi" }], seen: ["messages.0: AIMessage"] });
  });

  it("stays data inside of what the graph has made, which is read as it was", async () => {
    const thread_id = await newThread();
    await wait(thread_id, "make", { input: { value: PROMPT } });
    const { seen, value } = await readAgain(thread_id);
    expect(seen).toEqual(["value.map: Map", "value.set: Set", "value.prompt: PromptTemplate"]);
    expect(value).toMatchObject({ map: [["sent", PROMPT]], set: [PROMPT] });
  });
});
