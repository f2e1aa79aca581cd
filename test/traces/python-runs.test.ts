import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client as LangSmithClient, RunTree } from "langsmith";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Scenario, type Wire } from "../http/scenario.ts";
import { databases } from "../support/databases.ts";
import { pythonSettings } from "../support/python.ts";
import { until } from "../support/until.ts";
import { TraceClient } from "./trace-client.ts";

const ASK = { assistant_id: "agent", input: { messages: [{ type: "human", content: "when?" }] } };

describe.each(databases)("the traces of runs of Python graphs on %s", (database) => {
  let api: Scenario;
  let traces: TraceClient;
  const markers = mkdtempSync(join(tmpdir(), "threadmill-markers-"));
  beforeAll(async () => {
    const env = await pythonSettings();
    api = await Scenario.start(database, env, { config: "test/graphs/traced/python.json", tracing: true });
    traces = new TraceClient(api.service);
  });
  afterAll(async () => {
    await api.stop();
    rmSync(markers, { recursive: true, force: true });
  });

  /** The root of a trace that has ended, and its other runs in the order of their start. */
  async function traceOf(run_id: string): Promise<{ root: Wire; rest: Wire[] }> {
    const isOpen = ({ status }: Wire) => status === "pending";
    await until("the root has ended", async () => {
      const found = await traces.read(run_id);
      return found?.status !== undefined && !isOpen(found);
    });
    const select = ["name", "run_type", "status", "error", "inputs", "outputs", "parent_run_id", "trace_id", "extra"];
    const fields = ["dotted_order", "session_id", "start_time", "end_time", "total_tokens", "tags"];
    // The steps that a lost host has left open end after the root.
    const runs = await until("the trace has ended", async () => {
      const found: Wire[] = await traces.query({ trace: run_id, select: [...select, ...fields], limit: 100 });
      return found.some(isOpen) ? undefined : found;
    });
    runs.sort((one, other) => (one.dotted_order < other.dotted_order ? -1 : 1));
    const [root, ...rest] = runs;
    return { root, rest };
  }

  async function ended(body: object, headers?: Record<string, string>): Promise<Wire> {
    const thread_id = await api.newThread();
    const created = await api.call("POST", `/threads/${thread_id}/runs`, body, headers);
    await api.join(created);
    return created;
  }

  const deleted = (run_id: string) =>
    until("the trace is deleted", async () => (await traces.get(`/runs/${run_id}`)).status === 404);

  it("contain the graph, its subgraph, its nodes, its models and its traced functions", async () => {
    const created = await ended({
      ...ASK,
      metadata: { color: "red" },
      config: { configurable: { api_key: "s3cret" } },
    });
    const { root, rest } = await traceOf(created.run_id);
    expect(root).toMatchObject({
      id: created.run_id,
      name: "agent",
      run_type: "chain",
      status: "success",
      inputs: ASK.input,
      outputs: { messages: [{ content: "when?" }, { content: "yes" }] },
      total_tokens: 9,
      session_id: (await traces.session("agent")).id,
      extra: {
        metadata: { graph_id: "agent", thread_id: created.thread_id, run_attempt: 1, user_id: "local", color: "red" },
      },
    });
    const names = ["research", "LangGraph", "answer", "search", "GenericFakeChatModel"];
    expect(rest.map(({ name }) => name)).toEqual(names);
    const ids = Object.fromEntries([root, ...rest].map(({ name, id }) => [name, id]));
    const parents = ["agent", "research", "LangGraph", "answer", "answer"].map((name) => ids[name]);
    expect(rest.map(({ parent_run_id }) => parent_run_id)).toEqual(parents);
    expect(rest.map(({ status }) => status)).toEqual(names.map(() => "success"));
    expect(rest[3]).toMatchObject({
      run_type: "tool",
      inputs: { query: "tides" },
      outputs: { output: ["a page about tides"] },
    });
    expect(rest[4]).toMatchObject({ run_type: "llm", total_tokens: 9 });
    expect(JSON.stringify([root, rest])).not.toContain("s3cret");
  });

  it("show the error of a graph, including one that could not be created", async () => {
    const failed = await ended({ assistant_id: "fails", input: { kind: "own_class" } });
    const { root, rest } = await traceOf(failed.run_id);
    expect(root).toMatchObject({ status: "error", error: "PaymentError: card refused" });
    expect(rest.find(({ name }) => name === "second")?.error).toBe("PaymentError: card refused");
    const unmade = await ended({ assistant_id: "factory", input: { a: 1 } });
    expect((await traceOf(unmade.run_id)).root).toMatchObject({
      name: "factory",
      error: "RuntimeError: no graph for local",
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
    expect((await traceOf(answered.run_id)).root).toMatchObject({ status: "success" });
  });

  it("are deleted with their run and by a rollback, and show that a run was cancelled", async () => {
    const created = await ended(ASK);
    const { rest } = await traceOf(created.run_id);
    await api.call("DELETE", `/threads/${created.thread_id}/runs/${created.run_id}`);
    for (const { id } of [{ id: created.run_id }, ...rest]) await deleted(id);

    const [cancelled, rolled_back] = [
      await api.runningSlow(await api.newThread()),
      await api.runningSlow(await api.newThread()),
    ];
    await api.cancel(cancelled);
    expect((await traceOf(cancelled.run_id)).root).toMatchObject({ status: "error", error: "cancelled" });
    const isStored = async () => (await traces.get(`/runs/${rolled_back.run_id}`)).status === 200;
    await until("the trace has begun", isStored);
    await api.cancel(rolled_back, "?action=rollback&wait=1");
    await deleted(rolled_back.run_id);
  });

  it("continue with the next attempt after the host has died", async () => {
    const created = await ended({ assistant_id: "dies_once", input: { marker: join(markers, randomUUID()) } });
    expect((await api.run(created)).status).toBe("success");
    const { root, rest } = await traceOf(created.run_id);
    expect(root).toMatchObject({
      id: created.run_id,
      name: "dies_once",
      status: "success",
      inputs: { marker: expect.anything() },
      outputs: { attempts: 2 },
      extra: { metadata: { run_attempt: 2 } },
    });
    expect(rest.map(({ name, status }) => [name, status])).toEqual([
      ["before", "success"],
      ["die", "error"],
      ["die", "success"],
    ]);
    for (const { parent_run_id } of rest) expect(parent_run_id).toBe(created.run_id);
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
    await traceOf(created.run_id);
    const root = await traces.read(created.run_id);
    expect(root).toMatchObject({
      trace_id: parent.id,
      parent_run_ids: [parent.id],
      extra: { metadata: { team: "blue" } },
      tags: ["beta"],
      session_id: (await traces.session(project_name)).id,
    });
    const { rest } = await traceOf(parent.id);
    expect(rest.map(({ name }) => name)).toContain("search");
  });
});
