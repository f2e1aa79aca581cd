import { randomUUID } from "node:crypto";
import { Client } from "@langchain/langgraph-sdk";
import { Client as LangSmithClient, RunTree } from "langsmith";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Tx } from "../../src/platform/database/database.ts";
import { Scenario, type Wire } from "../http/scenario.ts";
import { databases } from "../support/databases.ts";
import { openOn } from "../support/storage.ts";
import { until } from "../support/until.ts";
import { run, TraceClient } from "./trace-client.ts";

const CONFIG = "test/graphs/traced/langgraph.json";
const ASK = { assistant_id: "agent", input: { messages: [{ type: "human", content: "when?" }] } };

describe.each(databases)("the traces of agents' runs on %s", (database) => {
  let api: Scenario;
  let traces: TraceClient;
  beforeAll(async () => {
    api = await Scenario.start(database, {}, { config: CONFIG, tracing: true, inline: false });
    traces = new TraceClient(api.service);
  });
  afterAll(() => api.stop());

  /** The root of a trace that has ended, and the other runs by name. */
  async function traceOf(run_id: string, isComplete: (root: Wire) => boolean = () => true) {
    const root = await until("the trace has ended", async () => {
      const found = await traces.read(run_id);
      return found?.status && found.status !== "pending" && isComplete(found) ? found : undefined;
    });
    const children: Wire[] = await Promise.all(root.child_run_ids.map((id: string) => traces.read(id)));
    return { root, byName: Object.fromEntries(children.map((child) => [child.name, child])) };
  }

  async function ended(body: object, headers?: Record<string, string>): Promise<Wire> {
    const thread_id = await api.newThread();
    const created = await api.call("POST", `/threads/${thread_id}/runs`, body, headers);
    await api.join(created);
    return created;
  }

  it("contain the graph, its nodes, its models and its traced functions", async () => {
    const created = await ended({ ...ASK, metadata: { color: "red" } });
    const { root, byName } = await traceOf(created.run_id);
    expect(root).toMatchObject({
      id: created.run_id,
      trace_id: created.run_id,
      name: "agent",
      run_type: "chain",
      status: "success",
      inputs: ASK.input,
      outputs: { messages: [expect.anything(), { kwargs: { content: "yes" } }] },
      thread_id: created.thread_id,
      extra: {
        metadata: {
          run_id: created.run_id,
          thread_id: created.thread_id,
          assistant_id: created.assistant_id,
          graph_id: "agent",
          run_attempt: 1,
          user_id: "local",
          color: "red",
        },
      },
    });
    expect(Object.keys(byName).sort()).toEqual(["FakeListChatModel", "answer", "search"]);
    expect(byName.search).toMatchObject({
      run_type: "tool",
      parent_run_id: byName.answer.id,
      inputs: { input: "tides" },
      outputs: { outputs: ["a page about tides"] },
    });
    expect(byName.FakeListChatModel).toMatchObject({ run_type: "llm", parent_run_id: byName.answer.id });
    expect((await traces.session("agent")).id).toBe(root.session_id);
  });

  it("are in the project that the request names", async () => {
    const project_name = randomUUID();
    const created = await ended({ ...ASK, langsmith_tracer: { project_name } });
    const { root, byName } = await traceOf(created.run_id);
    const { id } = await until("the project exists", () => traces.session(project_name));
    expect([root, byName.search].map(({ session_id }) => session_id)).toEqual([id, id]);
  });

  it("contain no secrets of the configuration", async () => {
    const secrets = { api_key: "s3cret", accessToken: "s3cret", __hidden: "s3cret", "db-password": "s3cret" };
    const created = await ended({ ...ASK, config: { configurable: { ...secrets, max_tokens: 7 } } });
    const { root, byName } = await traceOf(created.run_id);
    expect(root.extra.metadata.max_tokens).toBe(7);
    expect(JSON.stringify([root, byName])).not.toContain("s3cret");
  });

  it("hold values that JSON does not support, and the runs of steps by the hundred", async () => {
    const created = await ended({ assistant_id: "odd", input: { many: 250 } });
    const { root, byName } = await traceOf(created.run_id, ({ child_run_ids }) => child_run_ids.length >= 255);
    expect(root.child_run_ids).toHaveLength(255);
    expect(byName.odd).toMatchObject({
      inputs: { circular: { name: "circle", self: "[circular]" }, big: "7", date: "1970-01-01T00:00:00.000Z" },
      outputs: { outputs: "10" },
    });
  });

  it("hold large values, and the size of those that are too large", async () => {
    const isComplete = ({ child_run_ids }: Wire) => child_run_ids.length === 5;
    for (const [chars, inputs] of [
      [6 * 2 ** 20, { input: expect.stringMatching(/^x+$/) }],
      [21 * 2 ** 20, { dropped: expect.stringContaining("characters") }],
    ] as const) {
      const created = await ended({ assistant_id: "odd", input: { chars } });
      const { byName } = await traceOf(created.run_id, isComplete);
      expect(byName.large).toMatchObject({ inputs, outputs: { outputs: chars } });
    }
  });

  it("show the error of a graph, including one that could not be created", async () => {
    const failed = await ended({ assistant_id: "fails", input: { kind: "own_class" } });
    const { root, byName } = await traceOf(failed.run_id);
    expect(root).toMatchObject({ status: "error", error: expect.stringContaining("card refused") });
    expect(byName.second.error).toContain("card refused");
    const unmade = await ended({ assistant_id: "factory", input: { a: 1 } });
    expect((await traceOf(unmade.run_id)).root).toMatchObject({
      name: "factory",
      status: "error",
      error: "Error: no graph for local",
      inputs: { a: 1 },
    });
  });

  it("end with the interrupts of a run that waits for an answer, which has a trace of its own", async () => {
    const thread_id = await api.newThread();
    const asked = await api.newRun(thread_id, { assistant_id: "gate", input: { steps: [] } });
    await api.join(asked);
    expect((await traceOf(asked.run_id)).root).toMatchObject({
      status: "success",
      outputs: { __interrupt__: [{ value: { question: "name?" } }] },
    });
    const answered = await api.newRun(thread_id, { assistant_id: "gate", command: { resume: "Ada" } });
    await api.join(answered);
    expect((await traceOf(answered.run_id)).root).toMatchObject({ status: "success", thread_id });
  });

  it("show that a run was cancelled, even if its graph never stops", async () => {
    const slow = await api.runningSlow(await api.newThread());
    await api.cancel(slow);
    expect((await traceOf(slow.run_id)).root).toMatchObject({ status: "error", error: "cancelled" });

    const thread_id = await api.newThread();
    const stuck = await api.newRun(thread_id, { assistant_id: "unabortable", input: { steps: [] } });
    await until("the node is stuck", async () => (await api.state(thread_id)).next?.includes("wait"));
    await api.cancel(stuck);
    const { root, byName } = await traceOf(stuck.run_id);
    expect(root).toMatchObject({ status: "error", error: "cancelled" });
    expect(byName.wait).toMatchObject({ status: "error", error: expect.stringContaining("cancelled") });
    expect(byName.begin.status).toBe("success");
  });

  it("of stateless runs exist only on request", async () => {
    const project_name = randomUUID();
    const unasked = await api.post("/runs/batch", [ASK]);
    await api.post("/runs/wait", ASK);
    const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const proxied = await api.call("POST", "/runs/batch", [ASK], { traceparent });
    const asked = await api.post("/runs", { ...ASK, langsmith_tracer: { project_name } });
    await traceOf(asked.run_id);
    for (const [{ run_id }] of [unasked, proxied]) expect((await traces.get(`/runs/${run_id}`)).status).toBe(404);
  });

  it("are deleted with their run, their thread, and by a rollback", async () => {
    const deleted = (run_id: string) =>
      until("the trace is deleted", async () => (await traces.get(`/runs/${run_id}`)).status === 404);
    const single = await ended(ASK);
    const { byName } = await traceOf(single.run_id);
    await api.call("DELETE", `/threads/${single.thread_id}/runs/${single.run_id}`);
    await deleted(single.run_id);
    await deleted(byName.search.id);

    const [first, second] = [await ended(ASK), await ended(ASK)];
    await Promise.all([traceOf(first.run_id), traceOf(second.run_id)]);
    await api.call("DELETE", `/threads/${first.thread_id}`);
    await deleted(first.run_id);
    expect((await traces.get(`/runs/${second.run_id}`)).status).toBe(200);

    const slow = await api.runningSlow(await api.newThread());
    await until("the trace has begun", async () => (await traces.get(`/runs/${slow.run_id}`)).status === 200);
    await api.cancel(slow, "?action=rollback&wait=1");
    await deleted(slow.run_id);
  });

  it("are deleted again when another process sent runs of the trace meanwhile", async () => {
    const [first, second] = [await ended(ASK), await ended(ASK)];
    await Promise.all([traceOf(first.run_id), traceOf(second.run_id)]);
    await api.call("DELETE", `/threads/${first.thread_id}`);
    const isDeleted = async () => (await traces.get(`/runs/${first.run_id}`)).status === 404;
    await until("the trace is deleted", isDeleted);
    await traces.post(run({ id: first.run_id, session_name: "agent" }));
    const database = openOn(api.service.database);
    const deletions = async (tx: Tx) => tx.all(tx.k.selectFrom("trace_deletions").selectAll());
    await until("the deletion is to be repeated", async () => (await deletions(database.read))[0]?.done === 1);
    await database.write((tx) => tx.run(tx.k.updateTable("trace_deletions").set({ created_at: 0 })));
    await api.call("DELETE", `/threads/${second.thread_id}`);
    await until("the trace is deleted again", isDeleted);
    const ids = async () => (await deletions(database.read)).map(({ run_id }) => run_id);
    await until("the request is removed", async () => !(await ids()).includes(first.run_id));
    await database.close();
  });

  it("are rows of the experiment whose example the request names, until they are deleted", async () => {
    const url = await api.service.listen();
    const client = new LangSmithClient({ apiUrl: `${url}/api/v1`, apiKey: "local" });
    const name = randomUUID();
    const dataset = await client.createDataset(name);
    const [example] = await client.createExamples([{ dataset_id: dataset.id, inputs: { q: 1 }, outputs: { a: 1 } }]);
    const session = await client.createProject({ projectName: name, referenceDatasetId: dataset.id });
    const example_id = (example as { id: string }).id;
    const agents = new Client({ apiUrl: url });
    const { thread_id } = await agents.threads.create();
    const { run_id } = await agents.runs.create(thread_id, "agent", {
      input: ASK.input,
      _langsmithTracer: { projectName: name, exampleId: example_id },
    } as object);
    await agents.runs.join(thread_id, run_id);
    await traceOf(run_id);
    const rows = async () =>
      (await api.post(`/api/v1/datasets/${dataset.id}/runs`, { session_ids: [session.id] })) as Wire[];
    expect(await rows()).toMatchObject([{ id: example_id, runs: [{ id: run_id, outputs: { messages: [{}, {}] } }] }]);
    const listed: string[] = [];
    for await (const { id } of client.listRuns({ projectName: name, isRoot: true })) listed.push(id);
    expect(listed).toEqual([run_id]);
    await agents.runs.delete(thread_id, run_id);
    await until("the row is deleted", async () => (await rows())[0]?.runs?.length === 0 || (await rows()).length === 0);
    expect(await traces.session(name)).toMatchObject({ run_count: 0 });
  });

  it("continue the trace of LangSmith's client", async () => {
    const project_name = randomUUID();
    const parent = new RunTree({
      name: "caller",
      project_name,
      extra: { metadata: { team: "blue" } },
      tags: ["beta"],
      client: new LangSmithClient({ apiUrl: `${await api.service.listen()}/api/v1`, apiKey: "local" }),
    });
    await parent.postRun();
    const created = await ended(ASK, parent.toHeaders());
    await parent.end({ done: true });
    await parent.patchRun();
    await parent.client.awaitPendingTraceBatches();
    const { root, byName } = await traceOf(created.run_id);
    expect(root).toMatchObject({
      trace_id: parent.id,
      parent_run_ids: [parent.id],
      extra: { metadata: { team: "blue" } },
      tags: ["beta"],
      session_id: (await traces.session(project_name)).id,
    });
    expect(byName.search.parent_run_ids).toEqual([parent.id, created.run_id, byName.answer.id]);
  });

  it("continue the trace of OpenTelemetry once its span arrives", async () => {
    const span_id = randomUUID().replaceAll("-", "").slice(0, 16);
    const traceparent = `00-${randomUUID().replaceAll("-", "")}-${span_id}-01`;
    const created = await ended(ASK, { traceparent });
    const { byName } = await traceOf(created.run_id);
    const id = `00000000-0000-0000-${span_id.slice(0, 4)}-${span_id.slice(4)}`;
    await traces.post(run({ id, name: "caller", session_name: "agent" }));
    const { root } = await traceOf(created.run_id);
    expect(root).toMatchObject({ trace_id: id, parent_run_ids: [id] });
    expect((await traces.read(byName.search.id)).parent_run_ids).toEqual([id, created.run_id, byName.answer.id]);
  });

  it.each<Record<string, string>>([
    { "langsmith-trace": "nonsense", baggage: "langsmith-metadata=%7B,langsmith-project=%" },
    { "langsmith-trace": `20260131T120000000000Z${randomUUID()}`, baggage: "langsmith-metadata=[1],x" },
    { traceparent: "00-00000000000000000000000000000000-0000000000000000-00" },
  ])("do not depend on headers of other programs: %j", async (headers) => {
    const created = await ended(ASK, headers);
    expect((await api.run(created)).status).toBe("success");
    await traceOf(created.run_id);
  });
});
