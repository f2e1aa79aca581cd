import { readFileSync, writeFileSync } from "node:fs";
import { afterEach, describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import type { ServerProcess } from "../support/process.ts";
import { startProcess } from "../support/process.ts";
import { createProject } from "../support/project.ts";
import { until } from "../support/until.ts";
import { LEASE_MS, sharing } from "./sharing.ts";
import { create, pathOf, pidsOf, read } from "./steps.ts";

const CONFIG = "test/graphs/shared/langgraph.json";
const exists = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

/** The processes that a process has started, read from Linux. */
const childrenOf = ({ child: { pid } }: ServerProcess): number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").filter(Boolean).map(Number);

const isUp = async ({ url }: ServerProcess): Promise<boolean> => (await fetch(`${url}/ok`)).ok;

describe.each(databases)("a service with worker processes (%s)", (name) => {
  const shared = sharing(name);
  let started: ServerProcess[] = [];
  const start = async (workers: number, env?: Record<string, string>) => {
    const server = await shared.start(CONFIG, env, ["--only", "agents", "--workers", String(workers)]);
    started.push(server);
    return server;
  };
  // Before the data folder is deleted.
  afterEach(async () => {
    for (const server of started.filter(({ child }) => child.exitCode === null && child.signalCode === null)) {
      const workers = childrenOf(server);
      server.child.kill("SIGKILL");
      await server.ended;
      for (const pid of workers.filter(exists)) process.kill(pid, "SIGKILL");
      await until("its workers have ended", async () => !workers.some(exists));
    }
    started = [];
  });
  const { gate } = shared;
  const open = (file: string) => writeFileSync(gate(file), "");
  const inStep = async (
    api: ServerProcess,
    run: Awaited<ReturnType<typeof create>>,
    step: string,
    not_pid?: number,
  ) => {
    const stream = read(api, run);
    let pid = 0;
    await stream.until((events) =>
      events.some(({ data }) => {
        pid = data.pid;
        return data.step === step && pid !== not_pid;
      }),
    );
    return { stream, pid };
  };

  it("executes runs in them, and passes on their events and cancels", async () => {
    const api = await start(2);
    const workers = childrenOf(api);
    expect(workers).toHaveLength(2);
    for (let n = 0; n < 10; n++) {
      const { stream, pid } = await inStep(api, await create(api, {}), "a");
      expect(workers).toContain(pid);
      const events = await stream.rest();
      expect(events.map(({ id }) => id)).toEqual(events.map((_, i) => String(i + 1)));
    }
    const run = await create(api, { gates: { a: gate("never") } });
    await inStep(api, run, "a");
    const asked_at = performance.now();
    await fetch(`${api.url}${pathOf(run)}/cancel?wait=true`, { method: "POST" });
    expect(performance.now() - asked_at).toBeLessThan(500);
  });

  it("survives the end of a worker: another one continues its runs, before their leases expire, and a new one starts", async () => {
    const lease_ms = 60_000;
    const api = await start(2, { THREADMILL_LEASE: `${lease_ms}ms` });
    const workers = childrenOf(api);
    const run = await create(api, { gates: { b: gate("go") } });
    const { stream, pid } = await inStep(api, run, "b");
    process.kill(pid, "SIGKILL");
    const killed_at = performance.now();
    const { pid: next } = await inStep(api, run, "b", pid);
    expect(performance.now() - killed_at).toBeLessThan(10 * LEASE_MS);
    expect(await isUp(api)).toBe(true);
    open("go");
    const events = await stream.rest();
    expect(events.map(({ id }) => id)).toEqual(events.map((_, i) => String(i + 1)));
    expect(await pidsOf(api, run)).toEqual([pid, next, next]);
    const isComplete = () => childrenOf(api).length === 2 && !childrenOf(api).includes(pid);
    await until("another worker has started", async () => isComplete());
    expect(childrenOf(api).filter((each) => workers.includes(each))).toHaveLength(1);
  });

  it("loses at most two workers to a run that ends its process, and its neighbours succeed", async () => {
    const api = await start(1);
    const neighbour = await create(api, { gates: { b: gate("go") } });
    await inStep(api, neighbour, "b");
    const culprit = await create(api, { ends: "b" });
    const { __error__ } = (await (await fetch(`${api.url}${pathOf(culprit)}/join`)).json()) as { __error__: object };
    expect(__error__).toEqual({ error: "GraphHostError", message: expect.stringContaining("SIGKILL") });
    open("go");
    expect(await pidsOf(api, neighbour)).toHaveLength(3);
    expect(api.output().match(/worker process ended/g)).toHaveLength(2);
  });

  it("lets runs finish when it stops, and no worker is left", async () => {
    const api = await start(1);
    const workers = childrenOf(api);
    const run = await create(api, { gates: { b: gate("go") } });
    const { stream } = await inStep(api, run, "b");
    api.child.kill("SIGTERM");
    open("go");
    const events = await stream.rest();
    expect(events.at(-1)?.data.pids).toHaveLength(3);
    await api.ended;
    expect(api.child.exitCode).toBe(0);
    expect(workers.filter(exists)).toEqual([]);
  });

  it("leaves no worker behind when it is killed", async () => {
    const api = await start(1);
    const workers = childrenOf(api);
    api.child.kill("SIGKILL");
    await until("its worker has ended", async () => !workers.some(exists));
  });
});

describe("a process of one run", () => {
  const shared = sharing("sqlite");

  it("ends with its service, even while a node blocks it", async () => {
    const api = await shared.start("test/graphs/hosts/langgraph.json");
    const stream = read(api, await create(api, { ms: 60_000 }, undefined, "leaves"));
    let pid = 0;
    await stream.until((events) => {
      pid = events.find(({ data }) => data.pid)?.data.pid ?? 0;
      return pid > 0;
    });
    expect(exists(pid)).toBe(true);
    api.child.kill("SIGKILL");
    await until("its process has ended", async () => !exists(pid));
  });
});

describe("worker processes", () => {
  const shared = sharing("sqlite");

  it.each([
    ["of dev", ["--workers", "1"], "dev" as const, /always runs in a single process/],
    ["of a process with a role", ["--workers", "1", "--role", "api"], "serve" as const, /Omit the role/],
  ])("%s are refused", async (_, flags, command, reason) => {
    const options = { config: CONFIG, data: shared.gate("data"), port: 0, command, flags };
    await expect(startProcess(options)).rejects.toThrow(reason);
  });

  it("end the start with the reason if they cannot load the graphs", async () => {
    const project = createProject({
      "graph.mjs": 'throw new Error("not today");',
      "langgraph.json": JSON.stringify({ graphs: { agent: "./graph.mjs:graph" } }),
    });
    const options = { config: project.config, data: shared.gate("data"), port: 0, flags: ["--workers", "2"] };
    await expect(startProcess(options)).rejects.toThrow(/not today[\s\S]*A worker process ended before it was ready/);
    project.drop();
  });
});
