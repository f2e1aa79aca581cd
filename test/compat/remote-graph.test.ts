import { HumanMessage } from "@langchain/core/messages";
import {
  Annotation,
  Command,
  END,
  interrupt,
  isGraphInterrupt,
  MemorySaver,
  START,
  StateGraph,
} from "@langchain/langgraph";
import { RemoteGraph } from "@langchain/langgraph/remote";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import { startService, type TestService } from "../support/service.ts";

const TRAIL = ["begin", "look", "dig", "fill", "finish plainly"];

describe.each(databases)("LangGraph's RemoteGraph against %s", (database) => {
  let service: TestService;
  let url: string;
  beforeAll(async () => {
    service = await startService({ inline: false, database, config: "test/graphs/compat/langgraph.json" });
    url = await service.listen();
  });
  afterAll(() => service.stop());

  const remote = (graphId: string) => new RemoteGraph({ graphId, url });
  const onNewThread = () => ({ configurable: { thread_id: crypto.randomUUID() } });

  async function gather(stream: Promise<AsyncIterable<unknown>>): Promise<unknown[]> {
    const chunks: unknown[] = [];
    for await (const chunk of await stream) chunks.push(chunk);
    return chunks;
  }

  it("invokes a graph without a thread, and on a thread that it creates", async () => {
    const graph = remote("agent");
    expect(await graph.invoke({ topic: "bees" })).toEqual({ topic: "bees", trail: TRAIL });
    const config = onNewThread();
    await graph.invoke({ topic: "bees" }, config);
    expect(await graph.invoke({ topic: "wasps" }, config)).toEqual({ topic: "wasps", trail: TRAIL });
  });

  it("passes context and messages to the graph", async () => {
    const kindly = await remote("agent").invoke({}, { context: { tone: "kindly" } } as never);
    expect(kindly).toMatchObject({ trail: [...TRAIL.slice(0, 4), "finish kindly"] });
    const answered = await remote("support_desk").invoke({ messages: [new HumanMessage("Where is my order 1042?")] });
    expect(answered.messages.at(-1).content).toContain("It should arrive on Thursday.");
  });

  it("streams in one mode, in several, and as messages", async () => {
    const graph = remote("agent");
    const updates = [
      { begin: { trail: ["begin"] } },
      { inner: { trail: TRAIL.slice(0, 4) } },
      { finish: { trail: ["finish plainly"] } },
    ];
    expect(await gather(graph.stream({}))).toEqual(updates);
    expect(await gather(graph.stream({}, { streamMode: "values" }))).toHaveLength(3);
    const both = await gather(graph.stream({}, { streamMode: ["values", "updates"] }));
    const modes = ["updates", "values", "updates", "values", "updates", "values"];
    expect(both.map((chunk) => (chunk as [string])[0])).toEqual(modes);
    const input = { messages: [new HumanMessage("Where is my order 1042?")] };
    const pieces = await gather(remote("support_desk").stream(input, { streamMode: "messages" }));
    const text = pieces
      .map((piece) => (piece as [{ content: string; type: string }])[0])
      .filter(({ type }) => type === "ai");
    expect(text.map(({ content }) => content).join("")).toContain("It should arrive on Thursday.");
  });

  it("streams subgraphs with their namespaces", async () => {
    const chunks = (await gather(remote("agent").stream({}, { subgraphs: true }))) as [string[], object][];
    const seen = chunks.map(([namespace, update]) => [
      namespace.map((part) => part.split(":")[0]).join("|"),
      Object.keys(update)[0],
    ]);
    expect(seen).toEqual([
      ["", "begin"],
      ["inner", "look"],
      ["inner|deepest", "dig"],
      ["inner|deepest", "fill"],
      ["inner", "deepest"],
      ["", "inner"],
      ["", "finish"],
    ]);
  });

  it("throws what made the graph fail", async () => {
    await expect(remote("failing").invoke({ color: "octarine" })).rejects.toThrow("There is no color");
  });

  it("continues with a command in the thread protocol, too", async () => {
    const graph = remote("asking");
    const config = onNewThread();
    await graph.invoke({ question: "Why?" }, config).catch((error: unknown) => {
      if (!isGraphInterrupt(error)) throw error;
    });
    await gather(graph.streamEvents(new Command({ resume: "Because." }), { ...config, version: "v3" }) as never);
    expect((await graph.getState(config)).values).toEqual({ question: "Why?", answer: "Because." });
  });

  it("stops at an interrupt, and continues with a command", async () => {
    const graph = remote("asking");
    const config = onNewThread();
    const stopped = await graph.invoke({ question: "Why?" }, config).catch((error: unknown) => error);
    expect(isGraphInterrupt(stopped) && stopped.interrupts).toMatchObject([{ id: expect.any(String), value: "Why?" }]);
    const state = await graph.getState(config);
    expect(state).toMatchObject({ next: ["desk"], tasks: [{ name: "desk", interrupts: [{ value: "Why?" }] }] });
    expect(await graph.invoke(new Command({ resume: "Because." }), config)).toEqual({
      question: "Why?",
      answer: "Because.",
    });
  });

  it("stops at interruptBefore, and continues from there", async () => {
    const graph = remote("agent");
    const config = onNewThread();
    await graph.invoke({}, { ...config, interruptBefore: ["finish"] }).catch((error: unknown) => {
      if (!isGraphInterrupt(error)) throw error;
    });
    expect(await graph.getState(config)).toMatchObject({ next: ["finish"], values: { trail: TRAIL.slice(0, 4) } });
    expect(await graph.invoke(null, config)).toEqual({ trail: TRAIL });
  });

  it("reads states and history", async () => {
    const graph = remote("agent");
    const config = onNewThread();
    await graph.invoke({ topic: "bees" }, config);
    const state = await graph.getState(config);
    expect(state).toMatchObject({
      values: { topic: "bees", trail: TRAIL },
      next: [],
      tasks: [],
      createdAt: expect.any(String),
    });
    expect(state.config.configurable).toMatchObject({
      ...config.configurable,
      checkpoint_ns: "",
      checkpoint_id: expect.any(String),
    });
    const history = (await gather(Promise.resolve(graph.getStateHistory(config)))) as (typeof state)[];
    expect(history.map(({ next }) => next[0])).toEqual([undefined, "finish", "inner", "begin", "__start__"]);
    expect(history[0]).toEqual(state);
    const begun = history[2] as typeof state;
    expect(await graph.getState(begun.config)).toEqual(begun);
    expect(await gather(Promise.resolve(graph.getStateHistory(config, { limit: 1, before: begun.config })))).toEqual([
      history[3],
    ]);
  });

  it("changes a state", async () => {
    const graph = remote("agent");
    const config = onNewThread();
    await graph.invoke({}, config);
    const changed = await graph.updateState(config, { topic: "wasps" }, "inner");
    expect(changed.configurable).toMatchObject(config.configurable);
    expect(await graph.getState(changed)).toMatchObject({
      values: { topic: "wasps" },
      next: ["finish"],
      metadata: { source: "update" },
    });
  });

  it("draws the graph and lists its subgraphs", async () => {
    const drawing = await remote("agent").getGraphAsync();
    expect(Object.keys(drawing.nodes)).toEqual(["__start__", "begin", "inner", "finish", "__end__"]);
    const subgraphs = (await gather(Promise.resolve(remote("agent").getSubgraphsAsync(undefined, true)))) as [string][];
    expect(subgraphs.map(([name]) => name)).toEqual(["inner", "inner|deepest"]);
  });

  it("is a node of another graph, and streams into it", async () => {
    const State = Annotation.Root({ topic: Annotation<string>(), trail: Annotation<string[]>() });
    const parent = new StateGraph(State)
      .addNode("far", remote("agent") as never)
      .addNode("near", ({ trail }) => ({ trail: [...trail, "near"] }))
      .addEdge(START, "far")
      .addEdge("far", "near")
      .addEdge("near", END)
      .compile({ checkpointer: new MemorySaver() });
    expect(await parent.invoke({ topic: "bees" }, onNewThread())).toEqual({ topic: "bees", trail: [...TRAIL, "near"] });
    const chunks = await parent.stream({ topic: "bees" }, { ...onNewThread(), streamMode: "updates", subgraphs: true });
    const nested: string[] = [];
    for await (const [namespace, update] of chunks)
      if (namespace.length > 0) nested.push(Object.keys(update as object)[0] as string);
    expect(nested).toEqual(["begin", "look", "dig", "fill", "deepest", "inner", "finish"]);
  });

  const Question = Annotation.Root({ question: Annotation<string>(), answer: Annotation<unknown>() });

  it("interrupts the graph of which it is a node", async () => {
    const parent = new StateGraph(Question)
      .addNode("far", remote("asking") as never)
      .addEdge(START, "far")
      .compile({ checkpointer: new MemorySaver() });
    const config = onNewThread();
    await parent.invoke({ question: "Why?" }, config);
    const { next, tasks } = await parent.getState(config);
    expect(next).toEqual(["far"]);
    expect(tasks).toMatchObject([{ name: "far", interrupts: [{ id: expect.any(String), value: "Why?" }] }]);
    // Its thread is that of the graph around it, and waits as well.
    expect(await remote("asking").getState(config)).toMatchObject({
      next: ["desk"],
      tasks: [{ interrupts: [{ value: "Why?" }] }],
    });
  });

  it("gets the response to an interrupt from the node that calls it, and streams its subgraph after it", async () => {
    const far = remote("asking");
    const thread = onNewThread();
    // LangGraph starts a node again when the graph is resumed. RemoteGraph does not pass on a response by itself.
    const ask = async (state: typeof Question.State) => {
      const { tasks } = await far.getState(thread).catch(() => ({ tasks: [] }));
      const waiting = tasks.flatMap(({ interrupts }) => interrupts);
      if (waiting.length > 0) return far.invoke(new Command({ resume: interrupt(waiting[0]?.value) }), thread);
      return far.invoke(state, thread).catch(async (error: unknown) => {
        if (!isGraphInterrupt(error)) throw error;
        return far.invoke(new Command({ resume: interrupt(error.interrupts[0]?.value) }), thread);
      });
    };
    const parent = new StateGraph(Question)
      .addNode("ask", ask)
      .addEdge(START, "ask")
      .compile({ checkpointer: new MemorySaver() });
    const config = onNewThread();
    const stopped = (await parent.invoke({ question: "Why?" }, config)) as { __interrupt__?: unknown };
    expect(stopped.__interrupt__).toMatchObject([{ value: "Why?" }]);
    const answered = await parent.invoke(new Command({ resume: { because: ["bees"] } }), config);
    expect(answered).toEqual({ question: "Why?", answer: { because: ["bees"] } });
    expect(await far.getState(thread)).toMatchObject({ next: [], values: { answer: { because: ["bees"] } } });
  });
});
