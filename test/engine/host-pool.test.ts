import { once } from "node:events";
import { setImmediate } from "node:timers/promises";
import { MessageChannel, type MessagePort } from "node:worker_threads";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { FromHost, RunOrder, StartHost, ToHost } from "../../src/agent-server/graph-hosts/host.ts";
import { HostPool } from "../../src/agent-server/graph-hosts/pool.ts";
import { createLog } from "../../src/platform/lib/log.ts";
import { until } from "../support/until.ts";

const SILENT_MS = 300;

/** The order in which messages of hosts and timers of the service meet, decided by the test. */
describe("the pool of graph hosts", () => {
  let pool: HostPool;
  let hosts: { port: MessagePort; received: ToHost[]; die(reason: string): void }[];
  let stuck: string[];
  let lost: string[];
  beforeEach(() => {
    hosts = [];
    stuck = [];
    lost = [];
    const startHost: StartHost = (_setup, { onMessage, onExit }) => {
      const { port1, port2 } = new MessageChannel();
      const host = { port: port2, received: [] as ToHost[], die: onExit };
      port1.on("message", onMessage);
      port2.on("message", (message: ToHost) => host.received.push(message));
      hosts.push(host);
      return { send: (message) => port1.postMessage(message), terminate: async () => port1.close() };
    };
    pool = new HostPool(
      {
        startHost,
        startIsolated: startHost,
        setup: () => ({}) as never,
        size: 1,
        jobs_per_host: 10,
        silent_ms: SILENT_MS,
        dead_ms: 60_000,
        abandoned_ms: 1_000,
        retirement_ms: 1_000,
        log: createLog("silent"),
      },
      {
        onMessage: () => undefined,
        onHostLost: (runs) => lost.push(...runs.map(({ run_id }) => run_id)),
        onEvicted: (runs) => stuck.push(...runs.map(({ run_id }) => run_id)),
        onCapacity: () => undefined,
      },
    );
    pool.start();
  });
  afterEach(() => pool.stop());

  const hostAt = (index: number) => hosts[index] as (typeof hosts)[number];
  const say = (message: object) => hostAt(0).port.postMessage(message as FromHost);
  const load = async () => {
    say({ type: "loaded", failures: {}, warnings: [] });
    await pool.loaded;
  };
  const order = (run_id: string) => ({ run_id, epoch: 1 }) as RunOrder;
  const pinged = () => until("it is pinged", async () => hostAt(0).received.find(({ type }) => type === "ping"));

  it("drains and evicts a run whose earlier claim still executes in the same host", async () => {
    await load();
    pool.reserve({ ...order("again"), epoch: 2 }, { isolated: false });
    await until("a ping", async () => hostAt(0).received.some(({ type }) => type === "ping"));
    say({ type: "pong", id: 1, abandoned: [{ run_id: "again", epoch: 1, for_ms: 5_000 }] });
    await until("its eviction", async () => stuck.includes("again"));
    expect(hostAt(0).received).toContainEqual({ type: "drain", run_id: "again", epoch: 2 });
  });

  it("avoids a host that hangs: runs that have not begun move to another host", async () => {
    await load();
    pool.reserve(order("begun"), { isolated: false });
    pool.reserve(order("waiting"), { isolated: false });
    say({ type: "started", run_id: "begun", epoch: 1 });
    await until("it is passed by", async () => stuck.length > 0);
    expect(stuck).toEqual(["waiting"]);
    expect(hosts).toHaveLength(2);
  });

  it("does not move a run that began while the service itself was blocked", async () => {
    await load();
    pool.reserve(order("begun"), { isolated: false });
    await pinged();
    // The host says so and answers no more; the service stands still behind the phase in which it reads, so that its timer comes first.
    await setImmediate();
    say({ type: "started", run_id: "begun", epoch: 1 });
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, SILENT_MS + 500);
    await until("another is started beside it", async () => hosts.length > 1);
    await setImmediate();
    expect(stuck).toEqual([]);
  });

  it("does not count the time in which a host loads its graphs as silence", async () => {
    pool.reserve(order("waiting"), { isolated: false });
    await pinged();
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, SILENT_MS + 500);
    await load();
    expect({ capacity: pool.capacity(), stuck }).toEqual({ capacity: 9, stuck: [] });
    await until("it is silent after that", async () => stuck.length > 0);
    expect(stuck).toEqual(["waiting"]);
  });

  it("counts the death of a host against the runs that had begun in it", async () => {
    await load();
    pool.reserve(order("begun"), { isolated: false });
    pool.reserve(order("waiting"), { isolated: false });
    say({ type: "started", run_id: "begun", epoch: 1 });
    const read = once(hostAt(0).port, "message");
    await read;
    await setImmediate();
    hostAt(0).die("it exited");
    expect({ lost, stuck }).toEqual({ lost: ["begun"], stuck: ["waiting"] });
  });
});
