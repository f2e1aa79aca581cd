import { randomUUID } from "node:crypto";
import { Registry } from "prom-client";
import { describe, expect, it } from "vitest";
import { RunMetrics } from "../../src/agent-server/engine/run-metrics.ts";
import { RunTraces } from "../../src/agent-server/engine/tracing/run-traces.ts";
import { TraceQueue, type TraceStore } from "../../src/agent-server/engine/tracing/trace-queue.ts";
import type { RunRow } from "../../src/agent-server/storage/schema.ts";
import { ApiError } from "../../src/platform/errors.ts";
import { createLog, type Log } from "../../src/platform/lib/log.ts";
import { until } from "../support/until.ts";

const MIB = 2 ** 20;
const SETTINGS = { tracing_rate: 1, tracing_project: undefined, trace_stateless: false };
const KWARGS = { input: null, config: {}, stream_mode: [], subgraphs: false };

const runOf = (run_id: string): RunRow =>
  ({ run_id, tenant_id: "a", graph_id: "g", epoch: 1, temporary: 0, started_at: 1, kwargs: "{}" }) as RunRow;
const textOf = (value: unknown) => Buffer.from(JSON.stringify(value));

/** A store that waits for `open`, and keeps what it has stored. */
function slowStore(refuse: (ids: string[]) => boolean = () => false) {
  const calls: { tenant_id: string; ids: string[] }[] = [];
  const door = Promise.withResolvers<void>();
  const store: TraceStore = {
    async store(tenant_id, body) {
      await door.promise;
      const ids = JSON.parse(Buffer.from(body).toString()).post.map(({ id }: { id: string }) => id);
      if (refuse(ids)) throw new ApiError("bad_trace_body", { reason: "no" });
      calls.push({ tenant_id, ids });
    },
    async end(tenant_id, { run_id }) {
      calls.push({ tenant_id, ids: [`end of ${run_id}`] });
    },
    async delete(tenant_id, run_ids) {
      calls.push({ tenant_id, ids: run_ids.map((id) => `without ${id}`) });
    },
  };
  return { store, calls, open: () => door.resolve() };
}

describe("the queue of traces", () => {
  const queueOf = (store: TraceStore) => new TraceQueue(store, createLog("silent"));

  it("stores the runs of many traces of a workspace together, before their ends and deletions", async () => {
    const { store, calls, open } = slowStore();
    const queue = queueOf(store);
    open();
    for (const [tenant_id, id] of ["a1", "b1", "a2", "a3"].map((id) => [id[0], id] as [string, string]))
      queue.addRuns(tenant_id, id, textOf({ id }));
    queue.discard("a2");
    await queue.delete("a", ["a1"]);
    expect(calls).toEqual([
      { tenant_id: "a", ids: ["a1", "a3"] },
      { tenant_id: "b", ids: ["b1"] },
      { tenant_id: "a", ids: ["without a1"] },
    ]);
  });

  it("stores the other traces of a batch that is refused", async () => {
    const { store, calls, open } = slowStore((ids) => ids.includes("bad"));
    const queue = queueOf(store);
    open();
    for (const id of ["first", "bad", "last"]) queue.addRuns("a", id, textOf({ id }));
    await queue.stop();
    expect(calls.map(({ ids }) => ids)).toEqual([["first"], ["last"]]);
  });

  it("skips whole new traces while 64 MiB wait, and counts them", async () => {
    const { store, calls, open } = slowStore();
    const warnings: unknown[] = [];
    const log = Object.assign(createLog("silent"), {
      warn: (fields: unknown) => warnings.push(fields),
    }) as unknown as Log;
    const queue = new TraceQueue(store, log);
    const registry = new Registry();
    // Only the gauges read the database.
    const metrics = new RunMetrics({ registry, database: undefined as never, readers: () => 0 });
    const traces = new RunTraces(SETTINGS, queue, { log, metrics });
    const traced = randomUUID();
    expect(traces.begin(runOf(traced), KWARGS)).toMatchObject({ project_name: "g", started_at: 1 });
    const part = { type: "trace", run_id: traced, epoch: 1, is_last: false } as const;
    for (let n = 0; n < 9; n++) traces.onMessage({ ...part, runs: textOf({ id: "part", text: "x".repeat(8 * MIB) }) });
    expect(traces.begin(runOf(randomUUID()), KWARGS)).toBeUndefined();
    traces.onMessage({ ...part, runs: textOf({ id: "last" }), is_last: true });
    expect(warnings).toEqual([{ skipped: 1 }]);
    const counted = await registry.getSingleMetric("threadmill_traces_skipped_total")?.get();
    expect(counted?.values).toMatchObject([{ value: 1 }]);
    open();
    await until("the trace is stored", async () => calls.at(-1)?.ids.includes("last"));
    expect(traces.begin(runOf(randomUUID()), KWARGS)).toBeDefined();
  });
});
