import { existsSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import type { HostSetup, StartHost } from "../../src/agent-server/graph-hosts/host.ts";
import { startAhead, startInThread } from "../../src/agent-server/graph-hosts/start-host.ts";
import type { Intervals } from "../../src/config/config.ts";
import { databases } from "../support/databases.ts";
import { startService, type TestService } from "../support/service.ts";
import { parseSse, type SseEvent } from "../support/sse.ts";
import { readUntil } from "../support/stream.ts";
import { until } from "../support/until.ts";

const CONFIG = "test/graphs/hosts/langgraph.json";
const GOOD = { assistant_id: "steps", input: { items: [] } };

describe.each(databases)("graph hosts on %s", (database) => {
  let service: TestService;
  const start = async (env: Record<string, string> = {}, intervals: Partial<Intervals> = {}) => {
    service = await startService({ inline: false, database, config: CONFIG, env, intervals });
  };
  afterEach(() => service.stop());

  const create = async (assistant_id: string, input: object): Promise<{ thread_id: string; run_id: string }> => {
    const { thread_id } = (await service.request("POST", "/threads", {})).body;
    return (await service.request("POST", `/threads/${thread_id}/runs`, { assistant_id, input, stream_mode: "custom" }))
      .body;
  };
  const join = ({ thread_id, run_id }: { thread_id: string; run_id: string }) =>
    service.request("GET", `/threads/${thread_id}/runs/${run_id}/join`);
  const statusOf = async ({ thread_id, run_id }: { thread_id: string; run_id: string }) =>
    (await service.request("GET", `/threads/${thread_id}/runs/${run_id}`)).body.status;

  it("a promise that a node loses and that is rejected ends no run", async () => {
    await start();
    const run = await create("loses", { items: [] });
    expect((await join(run)).body.items).toEqual(["kept"]);
    expect((await service.request("GET", `/threads/${run.thread_id}/runs/${run.run_id}`)).body.status).toBe("success");
    const answer = await service.request("GET", `/threads/${run.thread_id}/runs/${run.run_id}/stream`, undefined, {
      "last-event-id": "-1",
    });
    expect(parseSse(answer.text)[0]?.data).toMatchObject({ attempt: 1 });
  });

  it("a run that a blocked host has not begun moves to another host, and is announced once", async () => {
    await start({}, { host_silent_ms: 300 });
    const blocked = await create("blocks", { ms: 3_000, items: [] });
    await readUntil(service, blocked, ({ event }) => event === "custom");
    // The host has just answered a ping, so the run is given to it.
    const answer = await service.request("POST", "/runs/stream", { ...GOOD, stream_mode: "values" });
    const events = parseSse(answer.text);
    expect(events.map(({ event }) => event)).toEqual(["metadata", "values", "values", "values", "values"]);
    expect(events.map(({ id }) => id)).toEqual(["1", "2", "3", "4", "5"]);
    await join(blocked);
  });

  it.each([
    ["calls process.exit", "exits", "process.exit(7)"],
    ["throws an error that nobody catches", "throws", "nobody catches this"],
    ["throws null, which nobody catches", "throwsNull", "uncaught: null"],
  ])("a node that %s ends its own run with an error; its neighbours succeed", async (_, graph_id, reason) => {
    await start();
    const neighbour = await create("steps", { ms: 400, items: [] });
    const culprit = await create(graph_id, { ms: 100, items: [] });
    const message = expect.stringContaining(reason);
    expect((await join(culprit)).body.__error__).toMatchObject({ error: "GraphHostError", message });
    expect(await statusOf(culprit)).toBe("error");
    expect((await join(neighbour)).body.items).toEqual(["a", "b", "c"]);
    expect((await service.request("GET", `/threads/${culprit.thread_id}`)).body.status).toBe("error");
    expect((await service.request("POST", "/runs/wait", GOOD)).body.items).toEqual(["a", "b", "c"]);
  });

  it("a run whose host died gets a process of its own, which ends with it", async () => {
    await start();
    const run = await create("leaves", { items: [] });
    const [{ data }] = (await readUntil(service, run, ({ event }) => event === "custom")).slice(-1) as [SseEvent];
    const pid = data.pid as number;
    expect(pid).not.toBe(process.pid);
    expect((await join(run)).body.items).toEqual([String(pid)]);
    await until("its process has ended", async () => !existsSync(`/proc/${pid}`));
  });

  it("a cancelled node that ignores the signal is abandoned after the grace period, and its writes are refused", async () => {
    await start({ THREADMILL_CANCEL_GRACE: "200ms" });
    const run = await create("unabortable", { ms: 1_500, items: [] });
    await readUntil(service, run, ({ event }) => event === "custom");
    const cancelled = await service.request("POST", `/threads/${run.thread_id}/runs/${run.run_id}/cancel?wait=1`);
    expect(cancelled.status).toBe(204);
    expect(await statusOf(run)).toBe("interrupted");
    // The next run starts from the state that the cancelled one has left, and ends after it would have written.
    const next = await service.request("POST", `/threads/${run.thread_id}/runs/wait`, {
      assistant_id: "steps",
      input: { ms: 700 },
    });
    expect(next.body.items).toEqual(["a", "b", "c"]);
    const history = (await service.request("POST", `/threads/${run.thread_id}/history`, { limit: 100 })).body;
    expect(history.flatMap((state: { values: { items?: string[] } }) => state.values.items ?? [])).not.toContain(
      "late",
    );
  });

  it("a run that exceeds its time limit ends as timeout", async () => {
    await start({ BG_JOB_TIMEOUT_SECS: "0.2" });
    const run = await create("waits", { items: [] });
    expect((await join(run)).body.__error__.error).toBe("TimeoutError");
    expect(await statusOf(run)).toBe("timeout");
  });
});

describe("a graph host that starts before the engine", () => {
  /** A host of one graph, and its events in order. */
  const startWith = (source: string) => {
    const project_dir = mkdtempSync(join(tmpdir(), "threadmill-ahead-"));
    writeFileSync(join(project_dir, "graph.mjs"), source);
    const graphs = [
      { language: "js" as const, graph_id: "one", file: join(project_dir, "graph.mjs"), export_name: "graph" },
    ];
    const setup = { graphs, env: {}, project_dir };
    const ended = Promise.withResolvers<void>();
    const startHost: StartHost = (given, to) =>
      startInThread(256)(given, {
        onMessage: (message) => {
          to.onMessage(message);
          ended.resolve();
        },
        onExit: (reason) => {
          to.onExit(reason);
          ended.resolve();
        },
      });
    return { setup, starter: startAhead(startHost, setup), ended: ended.promise };
  };
  const eventOf = (starter: StartHost, setup: HostSetup) => {
    const event = Promise.withResolvers<unknown>();
    const host = starter(setup, { onMessage: event.resolve, onExit: event.resolve });
    return event.promise.finally(() => host.terminate());
  };

  it("is the first host of the engine, which receives what it sent before", async () => {
    const { setup, starter, ended } = startWith("export const other = 1;");
    await ended;
    const first = { type: "loaded", failures: { one: expect.stringContaining("graph") } };
    expect(await eventOf(starter, setup)).toMatchObject(first);
    expect(await eventOf(starter, setup)).toMatchObject(first);
  });

  it("is lost to the engine if it exits before", async () => {
    const { setup, starter, ended } = startWith("process.exit(7);");
    await ended;
    expect(await eventOf(starter, setup)).toContain("process.exit(7)");
  });
});
