import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Wire } from "../http/scenario.ts";
import { databases } from "../support/databases.ts";
import { startService, type TestService } from "../support/service.ts";
import { parseSse, type SseEvent } from "../support/sse.ts";

// The requests of chat user interfaces, as their sources and clients send them, and the fields that they read from the responses.

const STUDIO_ORIGIN = "https://smith.langchain.com";
const QUESTION = [{ type: "text", text: "Where is my order 1042?" }];
const APPROVAL = {
  action_requests: [{ name: "refund_order", args: { order_id: "1042" }, description: "Refund" }],
  review_configs: [{ action_name: "refund_order", allowed_decisions: ["approve", "edit", "reject"] }],
};

let service: TestService;
beforeAll(async () => {
  service = await startService({
    database: databases[0] ?? "sqlite",
    config: "test/graphs/compat/langgraph.json",
    // What --studio allows, and more.
    env: { CORS_ALLOW_ORIGINS: STUDIO_ORIGIN },
  });
});
afterAll(() => service.stop());

/** Calls with the headers of one user interface. Requests must succeed. */
function caller(headers: Record<string, string>) {
  const send = async (method: string, path: string, body?: unknown) => {
    const answer = await service.request(method, path, body, headers);
    expect(answer, `${method} ${path} was answered ${answer.text}`).toMatchObject({ status: expect.toSatisfy(isOk) });
    return answer;
  };
  return {
    get: async (path: string): Promise<Wire> => (await send("GET", path)).body,
    post: async (path: string, body: unknown): Promise<Wire> => (await send("POST", path, body)).body,
    async stream(path: string, body: unknown): Promise<{ events: SseEvent[]; location: string | null }> {
      const { text, headers } = await send("POST", path, body);
      return { events: parseSse(text), location: headers.get("content-location") };
    },
  };
}
const isOk = (status: number) => status < 300;

const namesOf = (events: SseEvent[]) => new Set(events.map(({ event }) => event?.split("|")[0]));
const lastOf = (events: SseEvent[], name: string) => events.findLast(({ event }) => event === name)?.data;

describe("Agent Chat UI", () => {
  const api = caller({ "x-api-key": "a-key-that-is-not-needed" });
  const tracked = { stream_mode: ["values", "messages-tuple", "custom"], assistant_id: "support_desk" };
  const submitted = { ...tracked, stream_subgraphs: true, stream_resumable: true, on_disconnect: "continue" };
  const human = (content: unknown, id?: string) => ({ messages: [{ id, type: "human", content }] });

  it("sends a message, lists the thread, regenerates the answer and edits the message", async () => {
    await api.get("/info");
    const { thread_id } = await api.post("/threads", { metadata: {} });
    const runs = `/threads/${thread_id}/runs/stream`;
    const sent = { ...submitted, input: human(QUESTION, crypto.randomUUID()) };
    const { events, location } = await api.stream(runs, sent);
    expect(location).toMatch(new RegExp(`^/threads/${thread_id}/runs/[0-9a-f-]+$`));
    expect(namesOf(events)).toEqual(new Set(["metadata", "values", "messages"]));
    const answer = lastOf(events, "values").messages.at(-1);

    const found = await api.post("/threads/search", { metadata: { graph_id: "support_desk" }, limit: 100, offset: 0 });
    const listed = found.find((thread: Wire) => thread.thread_id === thread_id);
    expect(listed.values.messages[0].content).toEqual(QUESTION);
    const { assistant_id } = listed.metadata;
    const byId = await api.post("/threads/search", { metadata: { assistant_id }, limit: 100, offset: 0 });
    expect(byId.map((thread: Wire) => thread.thread_id)).toContain(thread_id);

    const parentOf = async (id: string) => {
      const history: Wire[] = await api.post(`/threads/${thread_id}/history`, { limit: 10 });
      const first = history.findLast(({ values }) => values.messages?.some((message: Wire) => message.id === id));
      const { thread_id: _, ...checkpoint } = first?.parent_checkpoint ?? {};
      return checkpoint;
    };
    const again = await api.stream(runs, { ...submitted, checkpoint: await parentOf(answer.id) });
    expect(lastOf(again.events, "values").messages.at(-1).content).toEqual(answer.content);

    const [{ id }] = lastOf(events, "values").messages;
    const edited = { ...submitted, input: human("Where is my order 1043?"), checkpoint: await parentOf(id) };
    const { messages } = lastOf((await api.stream(runs, edited)).events, "values");
    expect(messages.map(({ type }: Wire) => type)).toEqual(["human", "ai", "tool", "ai"]);
    expect(messages.at(-1).content).toContain("Order 1043");
  });

  it.each([
    ["approves", { decisions: [{ type: "approve" }] }],
    ["edits", { decisions: [{ type: "edit", edited_action: { name: "refund_order", args: { order_id: "1043" } } }] }],
    ["rejects", { decisions: [{ type: "reject", message: "No." }] }],
    ["accepts in the older form", [{ type: "accept", args: APPROVAL.action_requests[0] }]],
  ])("shows an interrupt and %s", async (_, resume) => {
    const { thread_id } = await api.post("/threads", { metadata: {} });
    const runs = `/threads/${thread_id}/runs/stream`;
    const asking = { ...submitted, assistant_id: "asking", input: { question: APPROVAL } };
    const stopped = await api.stream(runs, asking);
    expect(lastOf(stopped.events, "values").__interrupt__).toMatchObject([{ id: expect.any(String), value: APPROVAL }]);
    const [head] = await api.post(`/threads/${thread_id}/history`, { limit: 10 });
    expect(head.tasks.at(-1).interrupts).toMatchObject([{ value: APPROVAL }]);
    const respond = {
      ...tracked,
      assistant_id: "asking",
      input: {},
      command: { resume },
      stream_resumable: false,
      on_disconnect: "cancel",
    };
    expect(lastOf((await api.stream(runs, respond)).events, "values").answer).toEqual(resume);
  });

  it("marks an interrupt as resolved: LangGraph executes the node again, which asks again", async () => {
    const { thread_id } = await api.post("/threads", { metadata: {} });
    const runs = `/threads/${thread_id}/runs/stream`;
    await api.stream(runs, { ...submitted, assistant_id: "asking", input: { question: APPROVAL } });
    const resolve = { ...tracked, assistant_id: "asking", input: {}, command: { goto: "__end__" } };
    const { events } = await api.stream(runs, resolve);
    expect(lastOf(events, "values").__interrupt__).toMatchObject([{ value: APPROVAL }]);
  });
});

describe("Agent Inbox", () => {
  const api = caller({ "x-api-key": "a-key-that-is-not-needed" });

  /** An interrupted thread, as the inbox lists it. */
  async function interrupted(): Promise<Wire> {
    const { thread_id } = await api.post("/threads", {});
    await api.post(`/threads/${thread_id}/runs/wait`, { assistant_id: "asking", input: { question: [APPROVAL] } });
    const found: Wire[] = await api.post("/threads/search", {
      offset: 0,
      limit: 10,
      status: "interrupted",
      metadata: { graph_id: "asking" },
    });
    return found.find((thread) => thread.thread_id === thread_id);
  }

  it("identifies the server without a key", async () => {
    const { body } = await service.request("GET", "/info", undefined, { "content-type": "application/json" });
    expect(body.host).toMatchObject({ kind: expect.any(String), project_id: null, tenant_id: null });
  });

  it("lists interrupts with their values, and streams the node that continues", async () => {
    const thread = await interrupted();
    expect(Object.values(thread.interrupts)).toMatchObject([[{ value: [APPROVAL] }]]);
    const resume = [{ type: "response", args: "Yes." }];
    const runs = `/threads/${thread.thread_id}/runs/stream`;
    const { events } = await api.stream(runs, { command: { resume }, stream_mode: "events", assistant_id: "asking" });
    const started = events.filter(({ event, data }) => event === "events" && data.event === "on_chain_start");
    expect(started.map(({ data }) => data.metadata?.langgraph_node)).toContain("desk");
    const { status, values } = await api.get(`/threads/${thread.thread_id}`);
    expect({ status, answer: values.answer }).toEqual({ status: "idle", answer: resume });
  });

  it("ignores an interrupt with a run that it does not wait for", async () => {
    const { thread_id } = await interrupted();
    const body = { command: { resume: [{ type: "ignore", args: null }] }, assistant_id: "asking" };
    const { run_id } = await api.post(`/threads/${thread_id}/runs`, body);
    expect(await api.get(`/threads/${thread_id}/runs/${run_id}/join`)).toMatchObject({
      answer: [{ type: "ignore", args: null }],
    });
  });

  it("marks an interrupt as resolved without a run", async () => {
    const { thread_id } = await interrupted();
    await api.post(`/threads/${thread_id}/state`, { values: null, as_node: "__end__" });
    const { status, interrupts } = await api.get(`/threads/${thread_id}`);
    expect({ status, interrupts }).toEqual({ status: "idle", interrupts: {} });
    expect(await api.get(`/threads/${thread_id}/runs`)).toHaveLength(1);
  });
});

describe("Deep Agents UI", () => {
  // It sends an empty key if the user has entered none.
  const api = caller({ "x-api-key": "" });
  const submitted = {
    stream_mode: ["messages-tuple", "values"],
    stream_resumable: true,
    on_disconnect: "continue",
    config: { recursion_limit: 100 },
  };

  it("finds the assistant, sends a message and lists its threads", async () => {
    const assistants: Wire[] = await api.post("/assistants/search", {
      graph_id: "support_desk",
      limit: 100,
      offset: 0,
    });
    const { assistant_id, config } = assistants.find(({ metadata }) => metadata.created_by === "system");
    const { thread_id } = await api.post("/threads", { metadata: {} });
    const input = { messages: [{ id: crypto.randomUUID(), type: "human", content: "Where is my order 1042?" }] };
    const run = { ...submitted, config: { ...config, recursion_limit: 100 }, assistant_id, input };
    const { events } = await api.stream(`/threads/${thread_id}/runs/stream`, run);
    expect(namesOf(events)).toEqual(new Set(["metadata", "values", "messages"]));
    const search = { metadata: { assistant_id }, limit: 20, offset: 0, sort_by: "updated_at", sort_order: "desc" };
    const [newest] = await api.post("/threads/search", search);
    expect(newest).toMatchObject({ thread_id, status: "idle", updated_at: expect.any(String) });
    expect(newest.values.messages.map(({ type }: Wire) => type)).toEqual(["human", "ai", "tool", "ai"]);
  });

  it("executes an agent step by step", async () => {
    const { thread_id } = await api.post("/threads", { metadata: {} });
    const runs = `/threads/${thread_id}/runs/stream`;
    const run = { ...submitted, assistant_id: "support_desk" };
    const input = { messages: [{ type: "human", content: "Where is my order 1042?" }] };
    await api.stream(runs, { ...run, input, interrupt_before: ["tools"] });
    expect((await api.get(`/threads/${thread_id}/state`)).next).toEqual(["tools"]);
    await api.stream(runs, { ...run, interrupt_after: ["tools"] });
    expect((await api.get(`/threads/${thread_id}/state`)).next).toEqual(["agent"]);
    await api.stream(runs, run);
    expect((await api.get(`/threads/${thread_id}/state`)).next).toEqual([]);
  });

  it("responds to an interrupt together with an empty input, and marks one as resolved", async () => {
    const { thread_id } = await api.post("/threads", { metadata: {} });
    const runs = `/threads/${thread_id}/runs/stream`;
    const run = { ...submitted, assistant_id: "asking" };
    await api.stream(runs, { ...run, input: { question: APPROVAL } });
    const resume = { decisions: [{ type: "reject", message: "No." }] };
    const { events } = await api.stream(runs, { ...run, input: null, command: { resume } });
    expect(lastOf(events, "values").answer).toEqual(resume);
    await api.stream(runs, { ...run, input: { question: APPROVAL } });
    const resolve = { ...run, input: null, command: { goto: "__end__", update: null } };
    expect(lastOf((await api.stream(runs, resolve)).events, "values").__interrupt__).toHaveLength(1);
  });

  it("changes the state without the name of a node", async () => {
    const { thread_id } = await api.post("/threads", { metadata: {} });
    const run = { ...submitted, assistant_id: "agent", input: {} };
    await api.stream(`/threads/${thread_id}/runs/stream`, run);
    await api.post(`/threads/${thread_id}/state`, { values: { topic: "bees" } });
    expect((await api.get(`/threads/${thread_id}`)).values).toMatchObject({ topic: "bees" });
  });
});

describe("Studio", () => {
  // It labels JSON as text and sends a header of its own, so that the browser asks for permission first.
  const api = caller({
    origin: STUDIO_ORIGIN,
    "x-auth-scheme": "langsmith",
    "content-type": "text/plain;charset=UTF-8",
  });

  it("may send requests from its page to a local server", async () => {
    const { status, headers } = await service.request("OPTIONS", "/assistants/search", undefined, {
      origin: STUDIO_ORIGIN,
      "access-control-request-method": "POST",
      "access-control-request-headers": "content-type,x-auth-scheme,x-api-key",
      "access-control-request-private-network": "true",
    });
    expect({ status, origin: headers.get("access-control-allow-origin") }).toEqual({
      status: 204,
      origin: STUDIO_ORIGIN,
    });
    expect(headers.get("access-control-allow-private-network")).toBe("true");
    const allowed = headers.get("access-control-allow-headers")?.toLowerCase();
    for (const name of ["content-type", "x-auth-scheme", "x-api-key"]) expect(allowed).toContain(name);
  });

  it("shows assistants with their graphs and schemas", async () => {
    expect(await api.get("/info")).toMatchObject({ version: expect.any(String), flags: { assistants: true } });
    const search = { limit: 10, offset: 0, metadata: { created_by: "system" } };
    const assistants: Wire[] = await api.post("/assistants/search", search);
    const { assistant_id } = assistants.find(({ graph_id }) => graph_id === "agent");
    expect(await api.get(`/assistants/${assistant_id}`)).toMatchObject({ graph_id: "agent" });
    expect(await api.get(`/assistants/${assistant_id}/schemas`)).toMatchObject({
      state_schema: { properties: { trail: expect.anything() } },
    });
    const graph = await api.get(`/assistants/${assistant_id}/graph?xray=true`);
    expect(graph.nodes.map(({ id }: Wire) => id)).toContain("inner:look");
    expect(Object.keys(await api.get(`/assistants/${assistant_id}/subgraphs?recurse=true`))).toEqual([
      "inner",
      "inner|deepest",
    ]);
  });

  it("goes back to a checkpoint, and resumes at the newest one by its id", async () => {
    const { thread_id } = await api.post("/threads", {});
    const runs = `/threads/${thread_id}/runs/stream`;
    await api.stream(runs, { assistant_id: "asking", input: { question: "Why?" }, stream_mode: ["values"] });
    const [{ checkpoint }] = await api.post(`/threads/${thread_id}/history`, { limit: 10 });
    const { checkpoint_id } = checkpoint;
    expect(await api.get(`/threads/${thread_id}/state/${checkpoint_id}`)).toMatchObject({ next: ["desk"] });
    const state = await api.post(`/threads/${thread_id}/state/checkpoint`, { checkpoint, subgraphs: true });
    expect(state).toMatchObject({ next: ["desk"] });
    const { events } = await api.stream(runs, {
      assistant_id: "asking",
      command: { resume: "Because." },
      config: { configurable: { thread_id, checkpoint_id, checkpoint_ns: "" } },
      stream_mode: ["values"],
    });
    expect(lastOf(events, "values").answer).toBe("Because.");
  });

  it("lists the namespaces of the store", async () => {
    expect(await api.post("/store/namespaces", { max_depth: 2, limit: 100, offset: 0 })).toEqual({ namespaces: [] });
  });
});
