import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import { openStream } from "../support/open-stream.ts";
import { openOn } from "../support/storage.ts";
import { until } from "../support/until.ts";
import { Scenario, type Wire } from "./scenario.ts";

const CHANNELS = [
  "values",
  "updates",
  "messages",
  "tools",
  "lifecycle",
  "input",
  "checkpoints",
  "tasks",
  "custom",
] as const;

describe.each(databases)("the thread protocol on %s", (database) => {
  let api: Scenario;
  beforeAll(async () => {
    api = await Scenario.start(database);
  });
  afterAll(() => api.stop());

  const open = (thread_id: string, selection: object = {}, headers: Record<string, string> = {}) =>
    openStream(api.service, `/threads/${thread_id}/stream/events`, headers, { channels: CHANNELS, ...selection });
  const command = (thread_id: string, method: string, params: object = {}, headers: Record<string, string> = {}) =>
    api.call("POST", `/threads/${thread_id}/commands`, { id: 7, method, params }, headers);
  const start = (thread_id: string, assistant_id: string, input: unknown) =>
    command(thread_id, "run.start", { assistant_id, input });

  const isRoot = ({ data: { method, params } }: Wire) => method === "lifecycle" && params.namespace.length === 0;
  const rootEvents = (events: Wire[]) => events.filter(isRoot).map(({ data }) => data.params.data.event);
  const ended = (events: Wire[], ends = 1) =>
    rootEvents(events).filter((event: string) => event !== "running").length >= ends;
  const of = (events: Wire[], method: string) =>
    events.map(({ data }) => data).filter((data) => data.method === method);

  /** All events of a thread whose runs have ended. */
  async function eventsOf(thread_id: string, selection: object = {}, ends = 1): Promise<Wire[]> {
    const stream = await open(thread_id, { since: 0, ...selection });
    const events = await stream.until((so_far) => ended(so_far, ends));
    await stream.hangUp();
    return events;
  }

  async function endLongAgo(thread_id: string): Promise<void> {
    const database = openOn(api.service.database);
    await database.write((tx) =>
      tx.run(tx.k.updateTable("runs").set({ ended_at: 1 }).where("thread_id", "=", thread_id)),
    );
    await database.close();
  }

  it("streams a run on a thread that the run creates, to a reader that came before it", async () => {
    const thread_id = crypto.randomUUID();
    const stream = await open(thread_id);
    const answer = await start(thread_id, "talk", { messages: [{ role: "user", content: "Hello" }] });
    expect(answer).toMatchObject({ type: "success", id: 7, meta: { thread_id } });
    const events = await stream.until((so_far) => ended(so_far));
    await stream.hangUp();
    expect(rootEvents(events)).toEqual(["running", "completed"]);
    expect(events.every(({ event, id, data }) => event === data.method && id === String(data.seq))).toBe(true);
    expect(events[0]?.data.seq).toBeGreaterThan(answer.meta.applied_through_seq);
    expect(isRoot(events.at(-1))).toBe(true);

    const messages = of(events, "messages");
    const { id } = messages[0].params.data;
    expect(messages[0].params).toMatchObject({
      node: "answer",
      data: { event: "message-start", metadata: { langgraph_node: "answer" } },
    });
    expect(messages.every(({ params }) => params.data.message_id === id)).toBe(true);
    const deltas = messages.flatMap(({ params }) => params.data.delta?.text ?? []);
    expect(deltas).toEqual(["y", "e", "s"]);
    expect(messages.at(-1).params.data.event).toBe("message-finish");

    const values = of(events, "values").at(-1).params.data;
    expect(values.messages.map(({ type }: Wire) => type)).toEqual(["human", "ai"]);
    expect((await api.state(thread_id)).values).toEqual(values);
    expect(await api.get(`/threads/${thread_id}/runs/${answer.result.run_id}`)).toMatchObject({ status: "success" });
  });

  it("continues strictly after any of its events, across runs", async () => {
    const thread_id = await api.newThread();
    await start(thread_id, "parent", { steps: ["pause"] });
    await eventsOf(thread_id);
    await start(thread_id, "parent", "go on");
    const all = await eventsOf(thread_id, {}, 2);
    expect(rootEvents(all)).toEqual(["running", "interrupted", "running", "completed"]);
    expect(new Set(all.map(({ data }) => data.event_id)).size).toBe(all.length);
    const seqs = all.map(({ data }) => data.seq);
    expect(seqs).toEqual(seqs.toSorted((a, b) => a - b));
    expect(new Set(seqs).size).toBe(all.length);
    for (const [i, seq] of seqs.slice(0, -1).entries()) {
      const rest = await open(thread_id, { since: seq });
      const events = await rest.until(({ length }) => length >= all.length - 1 - i);
      await rest.hangUp();
      expect(events.map(({ data }) => data.event_id)).toEqual(all.slice(i + 1).map(({ data }) => data.event_id));
    }
  });

  it("requests the response to an interrupt of a subgraph once, and resumes with it", async () => {
    const thread_id = await api.newThread();
    const stream = await open(thread_id);
    await start(thread_id, "parent", { steps: ["pause"] });
    const paused = await stream.until((so_far) => ended(so_far));
    const [request, ...others] = of(paused, "input.requested");
    expect(others).toEqual([]);
    const { namespace, data } = request.params;
    expect(namespace).toEqual([expect.stringMatching(/^child:/)]);
    expect(data).toMatchObject({ payload: "go on?", value: "go on?" });
    const { interrupt_id } = data;
    expect(paused.slice(-2).map(({ event }) => event)).toEqual(["input.requested", "lifecycle"]);
    const child = of(paused, "lifecycle").filter(({ params }) => params.namespace.length === 1);
    expect(child.map(({ params }) => params.data.event)).toEqual(["started", "interrupted"]);

    const response = { namespace, interrupt_id, response: "yes" };
    expect(await command(thread_id, "input.respond", { ...response, interrupt_id: "other" })).toMatchObject({
      type: "error",
      error: "no_such_interrupt",
    });
    const answers = await Promise.all([1, 2].map(() => command(thread_id, "input.respond", response)));
    expect(answers.map(({ type }) => type).toSorted()).toEqual(["error", "success"]);
    const events = await stream.until((so_far) => ended(so_far, 2));
    await stream.hangUp();
    expect(rootEvents(events)).toEqual(["running", "interrupted", "running", "completed"]);
    expect((await api.state(thread_id)).values.steps).toContain("answer yes");
    expect(await command(thread_id, "input.respond", response)).toMatchObject({ error: "no_such_interrupt" });
  });

  it("streams only the selected channels and namespaces", async () => {
    const thread_id = await api.newThread();
    await start(thread_id, "parent", { steps: ["in"] });
    const all = await eventsOf(thread_id);
    const selected = async (selection: object) =>
      (await eventsOf(thread_id, { channels: ["lifecycle", "updates"], ...selection }).catch(() => [])).map(
        ({ data }) => data,
      );
    const updates = (await selected({})).filter(({ method }) => method === "updates");
    expect(updates).toEqual(of(all, "updates"));
    const depth_of = ({ params }: Wire) => params.namespace.length;
    expect(new Set(updates.map(depth_of))).toEqual(new Set([0, 1, 2]));
    expect(new Set((await selected({ namespaces: [[]], depth: 0 })).map(depth_of))).toEqual(new Set([0]));
    expect(new Set((await selected({ namespaces: [[]], depth: 1 })).map(depth_of))).toEqual(new Set([0, 1]));

    const inChild = await open(thread_id, { channels: ["updates"], namespaces: [["child"]], depth: 0, since: 0 });
    const nodes = (await inChild.until(({ length }) => length >= 3)).map(({ data }) => data.params.node);
    await inChild.hangUp();
    expect(nodes).toEqual(["inner", "ask", "grandchild"]);
  });

  it("reports failures and cancels of runs", async () => {
    const thread_id = await api.newThread();
    await start(thread_id, "fails", { kind: "type_error" });
    const failed = await eventsOf(thread_id);
    expect(failed.at(-1)?.data.params.data).toMatchObject({ event: "failed", error: expect.stringMatching(/./) });

    const other = await api.newThread();
    const stream = await open(other);
    const { result } = await start(other, "slow", { steps: ["in"] });
    await stream.until((so_far) => of(so_far, "updates").length > 0);
    await api.cancel({ thread_id: other, run_id: result.run_id });
    const events = await stream.until((so_far) => ended(so_far));
    await stream.hangUp();
    expect(rootEvents(events)).toEqual(["running", "interrupted"]);
    // The input of the next run is not a response.
    await start(other, "chain", { steps: ["again"] });
    expect(rootEvents(await eventsOf(other, {}, 2)).at(-1)).toBe("completed");
  });

  it("names the message in each of its events for the clients of both languages", async () => {
    const thread_id = await api.newThread();
    await start(thread_id, "talk", { messages: [{ role: "user", content: "?" }] });
    const messages = of(await eventsOf(thread_id), "messages").map(({ params }) => params.data);
    expect(messages.length).toBeGreaterThan(3);
    for (const { message_id, run_id } of messages)
      expect([message_id, run_id]).toEqual([expect.any(String), message_id]);
  });

  it("shows runs of the run API, and its runs to clients of the run API", async () => {
    const thread_id = await api.newThread();
    const run = { assistant_id: "chain", input: { steps: ["in"] }, stream_mode: ["values", "updates"] };
    await api.wait(thread_id, run);
    const events = await eventsOf(thread_id);
    expect(of(events, "updates").map(({ params }) => params.data.node)).toEqual(["a", "b", "c"]);
    expect(of(events, "values").at(-1).params.data).toEqual({ steps: ["in", "a", "b", "c"] });

    const { result } = await start(thread_id, "chain", { steps: ["again"] });
    await eventsOf(thread_id, {}, 2);
    const joined = await openStream(api.service, `/threads/${thread_id}/runs/${result.run_id}/stream`, {
      "last-event-id": "-1",
    });
    const names = (await joined.rest()).map(({ event }) => event);
    expect(new Set(names)).toEqual(new Set(["metadata", "values", "updates", "tasks", "custom"]));
    const updates = joined.events.filter(({ event }) => event === "updates").map(({ data }) => Object.keys(data));
    expect(updates).toEqual([["a"], ["b"], ["c"]]);
  });

  it("streams the newest run to a reader without a position", async () => {
    const thread_id = await api.newThread();
    await start(thread_id, "chain", { steps: ["in"] });
    await eventsOf(thread_id);
    await endLongAgo(thread_id);
    const stream = await open(thread_id);
    expect(rootEvents(await stream.until((so_far) => ended(so_far)))).toEqual(["running", "completed"]);
    await stream.hangUp();
  });

  it("streams an ended run to the Python client if it may be its own", async () => {
    const python = { "user-agent": "langgraph-sdk-py/0.4.14" };
    const ends = { channels: ["lifecycle", "input"] };
    const thread_id = crypto.randomUUID();
    const { result } = await start(thread_id, "chain", { steps: ["in"] });
    await api.join({ thread_id, run_id: result.run_id });
    // The client has created the thread, and waits for the end and for the values of its run on two streams.
    for (const selection of [ends, {}]) {
      const stream = await open(thread_id, selection, python);
      expect(rootEvents(await stream.until((so_far) => ended(so_far)))).toEqual(["running", "completed"]);
      await stream.hangUp();
    }
    // It knows the thread, and waits for the end of a run before it starts the run.
    for (const steps of [["second"], ["third"]]) {
      const waits = await open(thread_id, ends, python);
      const { result } = await start(thread_id, "chain", { steps });
      const [running] = await waits.until((so_far) => ended(so_far));
      await waits.hangUp();
      expect(running?.data.params.data.run_id).toBe(result.run_id);
      const values = await open(thread_id, { channels: ["values", "lifecycle"] }, python);
      const events = await values.until((so_far) => ended(so_far));
      await values.hangUp();
      expect(of(events, "values").at(-1).params.data.steps).toContain(steps[0]);
    }
    await endLongAgo(thread_id);
    const late = await open(thread_id, {}, python);
    await start(thread_id, "chain", { steps: ["late"] });
    expect(rootEvents(await late.until((so_far) => ended(so_far)))).toEqual(["running", "completed"]);
    await late.hangUp();
  });

  it("streams the end of a run to the Python client whose stream is opened after it, once", async () => {
    const python = { "user-agent": "langgraph-sdk-py/0.4.14" };
    const ends = { channels: ["lifecycle", "input"] };
    const thread_id = crypto.randomUUID();
    const startByPython = async (step: string): Promise<string> => {
      const params = { assistant_id: "chain", input: { steps: [step] } };
      return (await command(thread_id, "run.start", params, python)).result.run_id;
    };
    const runIds = (events: Wire[]) => [...new Set(events.map(({ data }) => data.params.data.run_id))];
    // The server may learn later than the next start that a client has closed its stream.
    const streams = [];
    for (const step of ["first", "second", "third"]) {
      const run_id = await startByPython(step);
      await api.join({ thread_id, run_id });
      const waits = await open(thread_id, ends, python);
      expect(runIds(await waits.until((so_far) => ended(so_far)))).toEqual([run_id]);
      streams.push(waits);
    }
    const waits = await open(thread_id, ends, python);
    const known = await startByPython("known");
    expect(runIds(await waits.until((so_far) => ended(so_far)))).toEqual([known]);
    const again = await startByPython("again");
    expect(runIds(await waits.until((so_far) => ended(so_far, 2)))).toEqual([known, again]);
    const late = await open(thread_id, ends, python);
    const next = await startByPython("next");
    expect(runIds(await late.until((so_far) => ended(so_far)))).toEqual([next]);
    for (const stream of [...streams, waits, late]) await stream.hangUp();
  });

  it("streams the end of a run to a client that connects again after the run that was queued behind it has started", async () => {
    const thread_id = await api.newThread();
    const [first, second] = [api.newDoor(), api.newDoor()];
    await api.runningSlow(thread_id, first.path);
    const next = await api.newRun(thread_id, { assistant_id: "slow", input: { steps: [], door: second.path } });
    first.open();
    await until("the next run has started", async () => (await api.run(next)).status === "running");
    const again = await open(thread_id);
    const events = await again.until((so_far) => rootEvents(so_far).length >= 3);
    expect(rootEvents(events)).toEqual(["running", "completed", "running"]);
    second.open();
    await api.join(next);
    await again.until((so_far) => ended(so_far, 2));
    await again.hangUp();
  });

  it("starts with the queued run for a client that has started it after the end of the run before", async () => {
    const thread_id = await api.newThread();
    await api.wait(thread_id, { assistant_id: "chain", input: { steps: ["in"] } });
    const { result } = await command(thread_id, "run.start", {
      assistant_id: "chain",
      input: { steps: ["later"] },
      after_seconds: 1,
    });
    const stream = await open(thread_id);
    const events = await stream.until((so_far) => ended(so_far));
    await stream.hangUp();
    expect(new Set(events.filter(isRoot).map(({ data }) => data.params.data.run_id))).toEqual(new Set([result.run_id]));
  });

  it("answers commands that it cannot execute with the reason", async () => {
    const thread_id = await api.newThread();
    const errorOf = async (method: string, params: object = {}) => {
      const { type, id, error, message } = await command(thread_id, method, params);
      expect([type, id, typeof message]).toEqual(["error", 7, "string"]);
      return error;
    };
    expect(await errorOf("run.begin")).toBe("unknown_command");
    expect(await errorOf("input.inject")).toBe("not_supported");
    expect(await errorOf("run.start", { input: {} })).toBe("invalid_argument");
    expect(await errorOf("run.start", { assistant_id: "nobody", input: {} })).toBe("invalid_argument");
    expect(await errorOf("input.respond")).toBe("invalid_argument");
    for (const body of [{}, { id: "1", method: "run.start" }, { id: 1 }, [], { id: 1, method: "run.start", params: 3 }])
      expect(await api.send("POST", `/threads/${thread_id}/commands`, body)).toMatchObject({ status: 400 });
    for (const body of [{}, { channels: [] }, { channels: ["values"], since: -1 }, { channels: ["x"], depth: "0" }])
      expect(await api.send("POST", `/threads/${thread_id}/stream/events`, body)).toMatchObject({ status: 400 });
  });

  it("shows the subgraphs of a run as a tree", async () => {
    const thread_id = await api.newThread();
    expect(await command(thread_id, "agent.getTree")).toMatchObject({ type: "error", error: "no_such_run" });
    const { result } = await start(thread_id, "parent", { steps: ["pause"] });
    await eventsOf(thread_id);
    const interrupted = (await command(thread_id, "agent.getTree")).result.tree;
    expect(interrupted).toMatchObject({
      ...{ namespace: [], status: "interrupted", graph_name: "parent" },
      children: [{ namespace: [expect.stringMatching(/^child:/)], status: "interrupted", children: [] }],
    });
    await start(thread_id, "parent", "go on");
    await eventsOf(thread_id, {}, 2);
    expect((await command(thread_id, "agent.getTree")).result.tree.children[0].status).toBe("completed");
    expect((await command(thread_id, "agent.getTree", { run_id: result.run_id })).result.tree).toEqual(interrupted);
    expect(await command(thread_id, "agent.getTree", { run_id: crypto.randomUUID() })).toMatchObject({
      error: "no_such_run",
    });
  });

  it.each(["command", "stream_mode", "stream_subgraphs", "stream_resumable"])(
    "refuses %s, which it sets itself",
    async (name) => {
      const answer = await command(await api.newThread(), "run.start", {
        assistant_id: "chain",
        input: {},
        [name]: {},
      });
      expect(answer).toMatchObject({
        type: "error",
        error: "invalid_argument",
        message: expect.stringContaining(name),
      });
    },
  );

  it("reads the state, and selected keys of it", async () => {
    const thread_id = await api.newThread();
    await start(thread_id, "chain", { steps: ["in"] });
    await eventsOf(thread_id);
    const { result } = await command(thread_id, "state.get", { namespace: [] });
    expect(result).toMatchObject({ values: { steps: ["in", "a", "b", "c"] }, checkpoint: { id: expect.any(String) } });
    expect((await command(thread_id, "state.get", { namespace: [], keys: ["other"] })).result.values).toEqual({});
  });

  it("ends the stream of a deleted thread with an error", async () => {
    const thread_id = await api.newThread();
    const stream = await open(thread_id);
    await api.call("DELETE", `/threads/${thread_id}`);
    const events = await stream.rest();
    expect(events).toMatchObject([{ event: "error", data: { type: "error", id: null, error: "unknown_error" } }]);
  });
});

it("finishes each block of a message before the next one starts", async () => {
  const api = await Scenario.start("sqlite", {}, { config: "test/graphs/ag-ui/langgraph.json" });
  const blocksOf = async (assistant_id: string): Promise<unknown[]> => {
    const thread_id = crypto.randomUUID();
    const input = { messages: [{ role: "user", content: "Is it sunny?" }] };
    await api.post(`/threads/${thread_id}/commands`, { id: 1, method: "run.start", params: { assistant_id, input } });
    const selection = { channels: ["messages", "lifecycle"], since: 0 };
    const stream = await openStream(api.service, `/threads/${thread_id}/stream/events`, {}, selection);
    const events = await stream.until((so_far) => so_far.some(({ data }) => data.params.data.event === "completed"));
    await stream.hangUp();
    const blocks = events.map(({ data }) => data.params.data).filter(({ event }) => /^content-block/.test(event));
    return blocks.map(({ event, index, content, delta }) => [
      event.slice("content-block-".length),
      index,
      (content ?? delta).type,
    ]);
  };
  expect(await blocksOf("thinks")).toEqual([
    ["start", 0, "reasoning"],
    ["delta", 0, "reasoning-delta"],
    ["delta", 0, "reasoning-delta"],
    ["finish", 0, "reasoning"],
    ["start", 1, "text"],
    ["delta", 1, "text-delta"],
    ["delta", 1, "text-delta"],
    ["finish", 1, "text"],
  ]);
  expect((await blocksOf("everything")).slice(0, 7)).toEqual([
    ["start", 0, "text"],
    ["delta", 0, "text-delta"],
    ["finish", 0, "text"],
    ["start", 1, "tool_call_chunk"],
    ["delta", 1, "tool-call-delta"],
    ["delta", 1, "tool-call-delta"],
    ["finish", 1, "tool_call"],
  ]);
  await api.stop();
});
