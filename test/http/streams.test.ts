import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import { parseSse, type SseEvent } from "../support/sse.ts";
import { Scenario, type Wire } from "./scenario.ts";

describe.each(databases)("streams on %s", (database) => {
  let api: Scenario;
  beforeAll(async () => {
    api = await Scenario.start(database);
  });
  afterAll(() => api.stop());

  const stream = async (body: object) =>
    api.stream(await api.newThread(), { assistant_id: "chain", input: { steps: ["in"] }, ...body });
  const names = (events: SseEvent[]) => events.map(({ event }) => event);
  const read = async ({ thread_id, run_id }: Wire, after?: string, query = "") => {
    const headers = after === undefined ? undefined : { "Last-Event-ID": after };
    return parseSse(
      (await api.send("GET", `/threads/${thread_id}/runs/${run_id}/stream${query}`, undefined, headers)).text,
    );
  };
  /** A run that has ended, and what its stream said. */
  const ended = async (body: object = {}): Promise<[Wire, SseEvent[]]> => {
    const thread_id = await api.newThread();
    const events = await api.stream(thread_id, {
      assistant_id: "chain",
      input: { steps: ["in"] },
      stream_mode: ["updates", "values"],
      ...body,
    });
    return [(await api.get(`/threads/${thread_id}/runs`))[0], events];
  };

  it("start with metadata, number their events, and carry only what was requested", async () => {
    const thread_id = await api.newThread();
    const events = await api.stream(thread_id, { assistant_id: "chain", input: { steps: ["in"] } });
    const [run] = await api.get(`/threads/${thread_id}/runs`);
    expect(events[0]).toEqual({ event: "metadata", id: "1", data: { run_id: run.run_id, attempt: 1 } });
    expect(events.map(({ id }) => id)).toEqual(["1", "2", "3", "4", "5"]);
    expect(events.slice(1).map(({ event, data }) => [event, data.steps.join("")])).toEqual([
      ["values", "in"],
      ["values", "ina"],
      ["values", "inab"],
      ["values", "inabc"],
    ]);
    // The run was over before the stream was.
    expect(run.status).toBe("success");
  });

  it.each<[unknown, string[]]>([
    ["updates", ["updates", "updates", "updates"]],
    [["custom"], ["custom", "custom", "custom"]],
    [
      ["updates", "custom"],
      ["custom", "updates", "custom", "updates", "custom", "updates"],
    ],
    [
      ["values", "updates"],
      ["values", "updates", "values", "updates", "values", "updates", "values"],
    ],
    [["checkpoints"], ["checkpoints", "checkpoints", "checkpoints", "checkpoints", "checkpoints"]],
    [["tasks"], ["tasks", "tasks", "tasks", "tasks", "tasks", "tasks"]],
    [[], []],
  ])("with stream_mode %j carry their events in this order", async (stream_mode, expected) => {
    expect(names(await stream({ stream_mode }))).toEqual(["metadata", ...expected]);
  });

  it("carry updates by node, and custom data as it was written", async () => {
    const events = await stream({ stream_mode: ["updates", "custom"] });
    expect(events.slice(1, 3).map(({ data }) => data)).toEqual([{ at: "a" }, { a: { steps: ["a"] } }]);
  });

  it("with debug and checkpoints carry references to checkpoints, and no internal fields", async () => {
    const [run, events] = await ended({ stream_mode: ["debug", "checkpoints", "tasks"] });
    const debug = events.filter(({ event }) => event === "debug").map(({ data }) => data);
    expect(new Set(debug.map(({ type }) => type))).toEqual(new Set(["checkpoint", "task", "task_result"]));
    const history = await api.history(run.thread_id);
    const streamed = debug.filter(({ type }) => type === "checkpoint").map(({ payload }) => payload.checkpoint);
    expect(streamed).toEqual(history.map(({ checkpoint }) => checkpoint).reverse());
    const checkpoints = events.filter(({ event }) => event === "checkpoints").map(({ data }) => data);
    expect(checkpoints.map(({ next }) => next)).toEqual([["__start__"], ["a"], ["b"], ["c"], []]);
    expect(checkpoints[0]).toMatchObject({ metadata: { source: "input", step: -1 } });
    expect(JSON.stringify(events)).not.toMatch(/"__\w+":/);
  });

  it("name the subgraph in the event when subgraphs are requested, otherwise carry only the root's events", async () => {
    const events = await stream({ assistant_id: "parent", stream_mode: ["updates"], stream_subgraphs: true });
    const shape = names(events).map((event) => event.replaceAll(/:[0-9a-f-]{36}/g, ":id"));
    expect(shape).toEqual([
      "metadata",
      "updates",
      ...[
        "updates|child:id",
        "updates|child:id",
        "updates|child:id|grandchild:id",
        "updates|child:id|grandchild:id",
        "updates|child:id",
      ],
      "updates",
      "updates",
    ]);
    expect(names(await stream({ assistant_id: "parent", stream_mode: ["updates"] }))).toEqual([
      "metadata",
      "updates",
      "updates",
      "updates",
    ]);
  });

  it("with namespaces carry the events of these graphs", async () => {
    const body = { assistant_id: "parent", input: { steps: [] }, stream_mode: ["updates"], stream_subgraphs: true };
    const [run, events] = await ended(body);
    const child = names(events)[2]?.split("|")[1] as string;
    const inChild = ["metadata", ...Array(3).fill(`updates|${child}`)];
    expect(names(await read(run, "-1", `?namespace=${child}`))).toEqual(inChild);
    const ofRoot = ["metadata", "updates", "updates", "updates"];
    expect(names(await read(run, "-1", "?namespace="))).toEqual(ofRoot);
    expect(names(await read(run, "-1", `?namespace=&namespace=${child}`))).toHaveLength(7);
    const path = `/threads/${await api.newThread()}/runs/stream?namespace=`;
    expect(names(parseSse((await api.send("POST", path, body)).text))).toEqual(ofRoot);
  });

  it("end with one error event when the run fails", async () => {
    const [run, events] = await ended({ assistant_id: "fails", input: { kind: "type_error", steps: ["in"] } });
    expect(events.at(-1)).toMatchObject({
      event: "error",
      data: { error: "TypeError", message: "steps is not iterable" },
    });
    expect(names(events).filter((event) => event === "error")).toHaveLength(1);
    expect(run.status).toBe("error");
    expect(await read(run, "-1")).toEqual(events);
  });

  it.each<[string, object, unknown]>([
    ["a question", { assistant_id: "gate" }, [{ id: expect.any(String), value: { question: "name?" } }]],
    ["a breakpoint", { interrupt_before: ["b"] }, []],
  ])("end with an event that reports that the run stopped for %s", async (_, body, expected) => {
    const [run, events] = await ended({ ...body, stream_mode: ["values"] });
    expect(events.at(-1)).toMatchObject({ event: "values", data: { __interrupt__: expected } });
    expect(run.status).toBe("interrupted");
  });

  describe("of messages", () => {
    const talk = (stream_mode: string[]) =>
      stream({ assistant_id: "talk", input: { messages: [{ role: "user", content: "well?", id: "q" }] }, stream_mode });

    it("with messages-tuple carry each token with its origin", async () => {
      const events = (await talk(["messages-tuple"])).slice(1);
      expect(new Set(names(events))).toEqual(new Set(["messages"]));
      const tokens = events.map(({ data: [chunk, metadata] }) => ({
        text: chunk.content,
        node: metadata.langgraph_node,
        type: chunk.type,
      }));
      expect(tokens.map(({ text }) => text).join("")).toBe("yes");
      expect(tokens.length).toBeGreaterThanOrEqual(3);
      for (const { node, type } of tokens)
        expect([node, type]).toEqual(["answer", expect.stringMatching(/^(ai|AIMessageChunk)$/)]);
    });

    it("with messages carry the growing message, its metadata once, and complete messages", async () => {
      const events = (await talk(["messages"])).slice(1);
      expect(new Set(names(events))).toEqual(new Set(["messages/metadata", "messages/partial", "messages/complete"]));
      const partial = events.filter(({ event }) => event === "messages/partial").map(({ data }) => data[0].content);
      for (const [i, text] of partial.entries()) expect(text.startsWith(partial[i - 1] ?? "")).toBe(true);
      expect(partial.at(-1)).toBe("yes");
      expect(events.filter(({ event }) => event === "messages/metadata")).toHaveLength(1);
      const complete = events
        .filter(({ event }) => event === "messages/complete")
        .flatMap(({ data }) => data.map((message: Wire) => message.content));
      expect(complete).toEqual(["well?", "yes"]);
    });

    it("with events carry those of LangChain, including the tokens", async () => {
      const events = (await talk(["events"])).slice(1);
      expect(new Set(names(events))).toEqual(new Set(["events"]));
      const kinds = events.map(({ data }) => data.event);
      expect(kinds).toEqual(
        expect.arrayContaining(["on_chain_start", "on_chat_model_stream", "on_chat_model_end", "on_chain_end"]),
      );
    });

    it("show messages as flat objects with all their fields", async () => {
      const events = await talk(["values"]);
      const fields = [
        "additional_kwargs",
        "content",
        "example",
        "id",
        "invalid_tool_calls",
        "name",
        "response_metadata",
        "tool_calls",
        "type",
        "usage_metadata",
      ];
      const { messages } = events.at(-1)?.data ?? {};
      for (const message of messages) expect(Object.keys(message)).toEqual(expect.arrayContaining(fields));
      expect(messages.map(({ type }: Wire) => type)).toEqual(["human", "ai"]);
    });
  });

  describe("joined", () => {
    it("from -1 are replayed from the start with their ids, repeatedly", async () => {
      const [run, events] = await ended();
      expect(await read(run, "-1")).toEqual(events);
      expect(await read(run, "-1")).toEqual(events);
      await api.join(run);
      expect(await read(run, "0")).toEqual(events);
    });

    it("after an id are replayed from the next event to the last", async () => {
      const [run, events] = await ended();
      for (const [i, { id }] of events.entries()) expect(await read(run, id)).toEqual(events.slice(i + 1));
      expect(await read(run, "999")).toEqual([]);
    });

    it("without an id start from now, and still begin with metadata", async () => {
      const [run] = await ended();
      expect(names(await read(run))).toEqual(["metadata"]);
    });

    it.each([
      ["?stream_mode=values", ["metadata", "values"]],
      ["?stream_mode=updates", ["metadata", "updates"]],
      ["?stream_mode=values&stream_mode=updates", ["metadata", "updates", "values"]],
      ['?stream_mode=["values"]', ["metadata", "values"]],
      ["?stream_mode=custom", ["metadata"]],
    ])("with %s carry only these modes, under their ids", async (query, expected) => {
      const [run, events] = await ended();
      const joined = await read(run, "-1", query);
      expect([...new Set(names(joined))].sort()).toEqual(expected);
      expect(joined).toEqual(events.filter(({ event }) => expected.includes(event)));
    });

    it("with a mode carry that mode's events of subgraphs too", async () => {
      const [run, events] = await ended({ assistant_id: "parent", stream_subgraphs: true });
      const joined = await read(run, "-1", "?stream_mode=updates");
      expect(joined).toEqual(events.filter(({ event }) => !event.startsWith("values")));
      expect(joined.some(({ event }) => event.startsWith("updates|child:"))).toBe(true);
    });

    it("during the run are the same for every reader, wherever they start", async () => {
      const door = api.newDoor();
      const run = await api.runningSlow(await api.newThread(), door.path, { stream_mode: ["updates", "values"] });
      const whole = [read(run, "-1"), read(run, "-1"), read(run, "0")];
      const late = read(run, "2");
      // Without an id a reader starts where the run is when it comes: so it must have come before the door opens.
      const path = `/threads/${run.thread_id}/runs/${run.run_id}/stream`;
      const fromNow = await api.service.threadmill.fetch(new Request(`http://localhost${path}`));
      door.open();
      const [events, ...others] = await Promise.all(whole);
      for (const other of others) expect(other).toEqual(events);
      expect(events?.map(({ id }) => Number(id))).toEqual(events?.map((_, i) => i + 1));
      expect(events?.at(-1)?.data.steps).toEqual(["in", "begin", "end"]);
      expect(await late).toEqual(events?.slice(2));
      const [first, ...rest] = parseSse(await fromNow.text());
      expect(first).toMatchObject({ event: "metadata", data: { run_id: run.run_id } });
      expect(rest).toEqual(events?.slice(-rest.length));
      expect(rest.at(-1)).toEqual(events?.at(-1));
    });

    it.each(["abc", "1.5", "-2", "1e3"])("with the unreadable id %s are refused", async (id) => {
      const [run] = await ended();
      const answer = await api.send("GET", `/threads/${run.thread_id}/runs/${run.run_id}/stream`, undefined, {
        "Last-Event-ID": id,
      });
      expect(answer).toMatchObject({ status: 422, body: { detail: expect.stringContaining("Last-Event-ID") } });
    });
  });

  it("of stateless runs continue at the Location that they name", async () => {
    const answer = await api.send("POST", "/runs/stream?on_disconnect=continue", {
      assistant_id: "chain",
      input: { steps: ["in"] },
    });
    const again = await api.send("GET", answer.headers.get("location") as string, undefined, { "Last-Event-ID": "2" });
    expect(parseSse(again.text)).toEqual(parseSse(answer.text).slice(2));
  });
});
