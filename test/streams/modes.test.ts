import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { builder as ask } from "../graphs/streams/ask.ts";
import { builder as fan } from "../graphs/streams/fan.ts";
import { builder as everything } from "../graphs/streams/graph.ts";
import { builder as quiet } from "../graphs/streams/quiet.ts";
import { databases } from "../support/databases.ts";
import { startService, type TestService } from "../support/service.ts";
import { parseSse, type SseEvent } from "../support/sse.ts";
import { Reference, type StreamedEvent, type Wish } from "./expected.ts";
import { normalise } from "./normalise.ts";

const GRAPHS = { everything, quiet, fan, ask };
const MODES = [
  "values",
  "updates",
  "messages-tuple",
  "messages",
  "custom",
  "debug",
  "tasks",
  "checkpoints",
  "events",
  "tools",
];
const INPUT = { messages: [{ role: "user", content: "How is the weather in Bonn?", id: "human-1" }] };

describe.each(databases)("a stream on %s", (database) => {
  let service: TestService;
  let url: string;
  beforeAll(async () => {
    service = await startService({ database, config: "test/graphs/streams/langgraph.json" });
    url = await service.listen();
  });
  afterAll(() => service.stop());

  const post = (path: string, body: object) =>
    fetch(`${url}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });

  /** A thread on the server, and the same graph in this process: both are asked the same, again and again. */
  async function pair(graph_id: keyof typeof GRAPHS) {
    const { thread_id } = (await (await post("/threads", {})).json()) as { thread_id: string };
    const reference = new Reference(GRAPHS[graph_id]);
    async function stream(wish: Wish): Promise<SseEvent[]> {
      const response = await post(`/threads/${thread_id}/runs/stream`, { assistant_id: graph_id, ...wish });
      return parseSse(await response.text());
    }
    /** What both made of it, the server without `metadata`. */
    async function both(wish: Wish): Promise<{ streamed: StreamedEvent[]; expected: StreamedEvent[] }> {
      const [metadata, ...events] = await stream(wish);
      expect(metadata?.event).toBe("metadata");
      const streamed = events.map(({ event, data }) => ({ event, data }));
      return { streamed: normalise(streamed), expected: normalise(await reference.events(wish)) };
    }
    return { stream, both };
  }

  it("starts with metadata, and numbers its events from one", async () => {
    const { stream } = await pair("everything");
    const events = await stream({ input: INPUT, stream_mode: ["values", "custom"], stream_subgraphs: true });
    expect(events[0]?.event).toBe("metadata");
    expect(events[0]?.data).toEqual({ run_id: expect.stringMatching(/^[0-9a-f-]{36}$/), attempt: 1 });
    expect(events.map(({ id }) => id)).toEqual(events.map((_, i) => String(i + 1)));
  });

  describe.each([false, true])("with stream_subgraphs %s", (stream_subgraphs) => {
    it.each(MODES)("carries in the mode %s what the graph itself yields", async (mode) => {
      const { streamed, expected } = await (await pair("everything")).both({
        input: INPUT,
        stream_mode: [mode],
        stream_subgraphs,
      });
      expect(expected.length).toBeGreaterThan(0);
      expect(streamed).toEqual(expected);
    });

    it("names the subgraph in its events only if subgraphs were requested", async () => {
      const { streamed } = await (await pair("everything")).both({
        input: INPUT,
        stream_mode: ["updates"],
        stream_subgraphs,
      });
      const nested = ["updates|review:<id 1>", "updates|review:<id 1>"];
      expect(streamed.map(({ event }) => event).filter((event) => event !== "updates")).toEqual(
        stream_subgraphs ? nested : [],
      );
    });

    it("carries several modes at once in the order in which the graph yields them", async () => {
      const stream_mode = ["custom", "updates", "messages-tuple", "values", "tasks", "tools"];
      const { streamed, expected } = await (await pair("everything")).both({
        input: INPUT,
        stream_mode,
        stream_subgraphs,
      });
      expect(new Set(streamed.map(({ event }) => event.split("|")[0]))).toEqual(
        new Set(["custom", "updates", "messages", "values", "tasks", "tools"]),
      );
      expect(streamed).toEqual(expected);
    });

    it("mixes LangChain's events with the other modes in the order in which they come", async () => {
      const stream_mode = ["events", "updates", "custom", "messages"];
      const { streamed, expected } = await (await pair("everything")).both({
        input: INPUT,
        stream_mode,
        stream_subgraphs,
      });
      expect(streamed).toEqual(expected);
    });

    it("carries a second run on the same thread as the graph does", async () => {
      const { both } = await pair("everything");
      const stream_mode = ["values", "messages", "messages-tuple", "tasks"];
      await both({ input: INPUT, stream_mode, stream_subgraphs });
      const input = { messages: [{ role: "user", content: "And tomorrow?", id: "human-2" }] };
      const { streamed, expected } = await both({ input, stream_mode, stream_subgraphs });
      expect(streamed).toEqual(expected);
    });

    it("shows an interrupt as __interrupt__ in values and updates, at the root and in a subgraph", async () => {
      const { both } = await pair("ask");
      const stream_mode = ["values", "updates", "tasks"];
      const atRoot = await both({ input: {}, stream_mode, stream_subgraphs });
      expect(atRoot.streamed).toEqual(atRoot.expected);
      const interrupt = { __interrupt__: [{ id: expect.any(String), value: { question: "Which name?" } }] };
      expect(atRoot.streamed).toContainEqual({ event: "values", data: interrupt });
      expect(atRoot.streamed).toContainEqual({ event: "updates", data: interrupt });
      const inSubgraph = await both({ command: { resume: "Ada" }, stream_mode, stream_subgraphs });
      expect(inSubgraph.streamed).toEqual(inSubgraph.expected);
      expect(JSON.stringify(inSubgraph.streamed)).toContain("Which size?");
      const toTheEnd = await both({ command: { resume: "large" }, stream_mode, stream_subgraphs });
      expect(toTheEnd.streamed).toEqual(toTheEnd.expected);
      expect(toTheEnd.streamed.at(-1)).toEqual({ event: "values", data: { answers: ["hello", "Ada", "large"] } });
    });

    it.each([
      [{ interrupt_before: ["agent"] }, "prepare"],
      [{ interrupt_after: ["agent"] }, "agent"],
      [{ interrupt_after: "*" as const }, "prepare"],
    ])("shows the breakpoint %o as an empty __interrupt__", async (breakpoint, last) => {
      const { both } = await pair("everything");
      const stream_mode = ["values", "updates"];
      const paused = await both({ input: INPUT, stream_mode, stream_subgraphs, ...breakpoint });
      expect(paused.streamed).toEqual(paused.expected);
      expect(paused.streamed.slice(-2)).toEqual([
        { event: "updates", data: { __interrupt__: [] } },
        { event: "values", data: { __interrupt__: [] } },
      ]);
      const updated = paused.streamed
        .filter(({ event }) => event === "updates")
        .map(({ data }) => Object.keys(data as object)[0]);
      expect(updated.at(-2)).toBe(last);
      const resumed = await both({ input: null, stream_mode, stream_subgraphs });
      expect(resumed.streamed).toEqual(resumed.expected);
    });
  });

  it("carries the updates of nodes that run in the same step as separate events", async () => {
    const { both } = await pair("fan");
    const { streamed, expected } = await both({
      input: {},
      stream_mode: ["updates", "values", "tasks"],
      stream_subgraphs: false,
    });
    expect(streamed).toEqual(expected);
    const updates = streamed.filter(({ event }) => event === "updates").map(({ data }) => data);
    expect(updates).toEqual([
      { left: { words: ["left"] } },
      { right: { words: ["right"] } },
      { both: { words: ["left and right"] } },
    ]);
  });

  it("does not show a message growing whose model is tagged nostream", async () => {
    const { both } = await pair("quiet");
    const { streamed, expected } = await both({ input: INPUT, stream_mode: ["messages"], stream_subgraphs: false });
    expect(streamed).toEqual(expected);
  });

  it("does not carry the pieces of a model that is tagged nostream", async () => {
    const { both } = await pair("quiet");
    const { streamed, expected } = await both({
      input: INPUT,
      stream_mode: ["messages-tuple"],
      stream_subgraphs: false,
    });
    expect(streamed).toEqual(expected);
  });

  it("accepts one mode without a list, and values without any", async () => {
    const { stream } = await pair("fan");
    const names = async (wish: object) =>
      new Set((await stream({ input: {}, ...wish } as Wish)).map(({ event }) => event));
    expect(await names({ stream_mode: "updates" })).toEqual(new Set(["metadata", "updates"]));
    expect(await names({})).toEqual(new Set(["metadata", "values"]));
  });
});
