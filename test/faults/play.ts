import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { openPostgres } from "../../src/platform/database/postgres/postgres.ts";
import { createLog } from "../../src/platform/lib/log.ts";
import { violations } from "../crash/invariants.ts";
import { execute } from "../support/postgres.ts";
import { freePort, type ServerProcess, startProcess } from "../support/process.ts";
import { type Random, randomOf } from "../support/random.ts";
import { startProxy, type TcpProxy } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";
import { Clients } from "./clients.ts";
import { type Entry, type Fault, type Note, noteIn } from "./history.ts";
import { PostgresServer } from "./postgres-server.ts";

/** How often each fault is played, and for how long. */
export interface Counts {
  freezes: number;
  kills: number;
  /** Times that packets are swallowed, for `swallowed_ms` each. */
  cuts: number;
  swallowed_ms: number;
  /** For so long packets of one process take 200 ms, and one in a hundred ends its connection. */
  slow_ms: number;
  restarts: number;
  /** Times that the server of the database is replaced by its standby. */
  failovers: number;
  few_ms: number;
  /** Times that the processes are stopped and started again, one after the other. */
  rolling_restarts: number;
  clients: number;
  /** Runs that end their host, each in one of three ways, and runs beside them that do not. */
  poison: number;
  innocents: number;
  /** Programs that take a core each, beside poison. */
  burners: number;
  /** The program with which the processes start, before they are updated one after the other. */
  earlier_program?: string;
}

/** The default; how long a fault lasts that is to cost a process its runs. */
const LEASE_MS = 4_000;
const FROZEN_MS = LEASE_MS + 3_000;
const PROBE_MS = 100;
/** After this a probe counts as not answered. */
const ANSWER_MS = 10_000;
/** The same while each round trip takes 400 ms. */
const SLOW_ANSWER_MS = 30_000;
/** How long the processes of two versions serve the clients together, before each update of another one. */
const MIXED_MS = 20_000;
/** How long a host may be silent, and how long a graph makes it silent. */
const HOST_TIMEOUT_MS = 15_000;
const BLOCKED_MS = 2 * HOST_TIMEOUT_MS;

/** A server that is started again on its port whenever it dies, and the network between it and the database. */
interface Member {
  port: number;
  proxy: TcpProxy;
  server: ServerProcess;
}

/** Plays faults against three processes on one Postgres, under load, and writes down what happens. */
export async function play(counts: Counts, { seed, file }: { seed: number; file: string }): Promise<void> {
  const note = noteIn(file);
  const data = mkdtempSync(join(tmpdir(), "threadmill-faults-"));
  const members: Member[] = [];
  const start = (port: number, proxy: TcpProxy, program?: string) =>
    startProcess({
      program,
      config: "test/graphs/faults/langgraph.json",
      data,
      databaseUrl: proxy.url,
      port,
      flags: ["--only", "agents"],
      env: {
        THREADMILL_HOSTS: "1",
        THREADMILL_HOST_MEMORY: "128MiB",
        THREADMILL_HOST_TIMEOUT: `${HOST_TIMEOUT_MS}ms`,
        THREADMILL_LEASE: `${LEASE_MS}ms`,
      },
    });
  const postgres = await PostgresServer.start();
  const world: World = { postgres, members, start, note, file, random: randomOf(seed), counts };
  try {
    for (let i = 0; i < 3; i++) {
      const [port, proxy] = [await freePort(), await startProxy(postgres.url)];
      members.push({ port, proxy, server: await start(port, proxy, counts.earlier_program) });
    }
    note({ kind: "begin", seed, lease_ms: LEASE_MS, load: loadavg()[0] as number });
    await new Faults(world).play();
    await noteRows(world.postgres.url, note);
  } finally {
    for (const { server, proxy } of members) {
      server.child.kill("SIGKILL");
      await server.ended;
      await proxy.close();
    }
    world.postgres.remove();
    rmSync(data, { recursive: true, force: true });
  }
}

/** Notes what the database holds once all runs have ended, also those whose creation had no answer. */
async function noteRows(url: string, note: Note): Promise<void> {
  const open = "select from runs where status in ('pending', 'running')";
  await until("all runs have ended", async () => (await execute(url, open)).length === 0, 60_000);
  const error =
    "(select data from run_events e where e.run_id = runs.run_id and event = 'error' order by seq desc limit 1)";
  const columns = `run_id, status, attempt, crashes::int, epoch::int, graph_id, first, last, ${error} as error`;
  const checkpoints = `select run_id, min(checkpoint_id) as first, max(checkpoint_id) as last from checkpoints
    where checkpoint_ns = '' group by run_id`;
  const rows = await execute(url, `select ${columns} from runs left join (${checkpoints}) as c using (run_id)`);
  for (const row of rows) note({ kind: "row", ...row } as Extract<Entry, { kind: "row" }>);
  const database = openPostgres({ url, log: createLog("silent") });
  for (const violation of await violations(database.read)) note({ kind: "violation", ...violation });
  await database.close();
}

interface World {
  /** The server that takes writes. */
  postgres: PostgresServer;
  members: Member[];
  start(port: number, proxy: TcpProxy): Promise<ServerProcess>;
  note: Note;
  file: string;
  random: Random;
  counts: Counts;
}

class Faults {
  readonly #world: World;
  readonly #clients: Clients;

  constructor(world: World) {
    this.#world = world;
    const { note, random, file, members } = world;
    const urls = members.map(({ port }) => `http://127.0.0.1:${port}`);
    this.#clients = new Clients({ urls, history: file, note, random });
  }

  async play(): Promise<void> {
    const { counts } = this.#world;
    this.#clients.start(counts.clients);
    if (counts.earlier_program !== undefined) {
      await this.#times(1, "drained", () => this.#rollingRestart(MIXED_MS));
      // The next fault may cost an attempt of the runs that are active now.
      await this.#clients.stop();
      this.#clients.start(counts.clients);
    }
    await this.#times(counts.freezes, "frozen", () => this.#freeze());
    await this.#times(counts.kills, "killed", () => this.#kill());
    await this.#times(counts.cuts, "swallowed", () => this.#swallow());
    await this.#times(1, "slow network", () => this.#slowNetwork());
    await this.#times(counts.restarts, "restarted", () => this.#restart());
    await this.#times(counts.failovers, "failed over", () => this.#failOver());
    await this.#times(1, "few connections", () => this.#fewConnections());
    await this.#times(counts.rolling_restarts, "drained", () => this.#rollingRestart());
    await this.#clients.stop();
    await this.#times(1, "poison", () => this.#poison());
  }

  /** One after the other, each when all processes are well again and have run for a moment. */
  async #times(count: number, fault: Fault, once: () => Promise<void>): Promise<void> {
    const { members } = this.#world;
    for (let i = 0; i < count; i++) {
      for (const { port } of members) await until(`${port} is well`, () => isWell(port), 60_000);
      await pause(1_000 + this.#world.random.integer(0, 500));
      this.#clients.fault = fault;
      process.stdout.write(`${fault} ${i + 1} of ${count}\n`);
      await once();
      this.#clients.fault = undefined;
    }
  }

  async #freeze(): Promise<void> {
    const { note, random, members } = this.#world;
    const { child } = random.pick(members).server;
    const pid = child.pid as number;
    note({ kind: "fault", fault: "frozen", pid });
    child.kill("SIGSTOP");
    await pause(FROZEN_MS);
    child.kill("SIGCONT");
    note({ kind: "over", fault: "frozen", pid });
  }

  async #kill(): Promise<void> {
    const { note, random, members, start } = this.#world;
    const member = random.pick(members);
    const pid = member.server.child.pid as number;
    note({ kind: "fault", fault: "killed", pid });
    member.server.child.kill("SIGKILL");
    await member.server.ended;
    member.server = await start(member.port, member.proxy);
    note({ kind: "over", fault: "killed", pid });
  }

  async #swallow(): Promise<void> {
    const { note, random, members, counts } = this.#world;
    const { proxy, server, port } = random.pick(members);
    const pid = server.child.pid as number;
    note({ kind: "fault", fault: "swallowed", pid });
    proxy.carries(false);
    await this.#probeFor(counts.swallowed_ms, "swallowed", port);
    proxy.carries(true);
    note({ kind: "over", fault: "swallowed", pid });
  }

  async #slowNetwork(): Promise<void> {
    const { note, random, members, counts } = this.#world;
    const { proxy, server, port } = random.pick(members);
    const pid = server.child.pid as number;
    note({ kind: "fault", fault: "slow network", pid });
    proxy.degrade({ delay_ms: 200, resets: 0.01, random: () => random.next() });
    await this.#probeFor(counts.slow_ms, "slow network", port);
    proxy.degrade(undefined);
    note({ kind: "over", fault: "slow network", pid });
  }

  async #probeFor(ms: number, fault: Fault, port: number): Promise<void> {
    const end = performance.now() + ms;
    while (performance.now() < end) {
      await Promise.all([this.#probe(fault, port, "/threads/search"), this.#probe(fault, port, "/ok")]);
      await pause(PROBE_MS);
    }
  }

  /** Down for up to two seconds; "over" is when it takes connections. Each process is asked until it has written after that. */
  async #restart(): Promise<void> {
    const { note, random, members, postgres } = this.#world;
    postgres.down("immediate");
    note({ kind: "fault", fault: "restarted" });
    const writing = Promise.all(members.map((member) => this.#writes("restarted", member)));
    await pause(random.integer(0, 2_000));
    postgres.up();
    note({ kind: "over", fault: "restarted" });
    await writing;
  }

  /** The processes reach the standby for up to two seconds before it takes writes. */
  async #failOver(): Promise<void> {
    const { note, random, members, postgres } = this.#world;
    const standby = await postgres.standby();
    postgres.remove();
    note({ kind: "fault", fault: "failed over" });
    this.#world.postgres = standby;
    for (const { proxy } of members) proxy.leadTo(standby.url);
    const writing = Promise.all(members.map((member) => this.#writes("failed over", member)));
    await pause(random.integer(0, 2_000));
    standby.promote();
    note({ kind: "over", fault: "failed over" });
    await writing;
  }

  async #writes(fault: Fault, { port }: Member): Promise<void> {
    while ((await this.#probe(fault, port, "/threads")) !== 200) await pause(PROBE_MS);
  }

  /** Three processes want 33. */
  async #fewConnections(): Promise<void> {
    const { note, members, postgres, counts } = this.#world;
    postgres.down("fast");
    postgres.up({ max_connections: 20 });
    note({ kind: "fault", fault: "few connections" });
    await pause(counts.few_ms);
    for (const { port } of members) await this.#probe("few connections", port, "/threads");
    note({ kind: "over", fault: "few connections" });
    postgres.down("fast");
    postgres.up();
  }

  /** As an operator restarts processes: each ends with its drain, and the next follows when its successor is well. */
  async #rollingRestart(pause_ms = 0): Promise<void> {
    const { note, members, start } = this.#world;
    for (const member of members) {
      await pause(pause_ms);
      const pid = member.server.child.pid as number;
      note({ kind: "fault", fault: "drained", pid });
      member.server.child.kill("SIGTERM");
      await member.server.ended;
      member.server = await start(member.port, member.proxy);
      note({ kind: "over", fault: "drained", pid });
    }
  }

  async #poison(): Promise<void> {
    const { note, random, counts } = this.#world;
    note({ kind: "fault", fault: "poison" });
    // All processes answer, but late. Repeated creations made 17,000 runs on a slow machine, which never ended.
    this.#clients.answer_ms = BLOCKED_MS;
    const burners = Array.from({ length: counts.burners }, burn);
    try {
      const poison = Array.from({ length: counts.poison }, (_, i) => ["exits", "eats", "blocks"][i % 3] as string);
      const runs = [...poison, ...Array.from({ length: counts.innocents }, () => "ticks")];
      const ordered = runs.map((graph) => ({ graph, at: random.next() })).sort((a, b) => a.at - b.at);
      const execute = async (graph: string) => {
        while (!(await this.#clients.runOne(graph, graph === "blocks" ? { ms: BLOCKED_MS } : {})));
      };
      await Promise.all(ordered.map(({ graph }) => execute(graph)));
    } finally {
      for (const burner of burners) burner.kill("SIGKILL");
    }
    note({ kind: "over", fault: "poison" });
  }

  async #probe(fault: Fault, port: number, path: string): Promise<number> {
    const asked_at = performance.now();
    const init = path === "/ok" ? {} : { method: "POST", body: "{}" };
    let [status, text, retry] = [0, "", false];
    try {
      const signal = AbortSignal.timeout(fault === "slow network" ? SLOW_ANSWER_MS : ANSWER_MS);
      const answer = await fetch(`http://127.0.0.1:${port}${path}`, { ...init, signal });
      [status, text, retry] = [answer.status, await answer.text(), answer.headers.has("retry-after")];
    } catch {}
    const entry = { kind: "probe" as const, fault, port, path, status, ms: Math.round(performance.now() - asked_at) };
    this.#world.note({ ...entry, ...(status !== 200 && { retry, text: text.slice(0, 200) }) });
    return status;
  }
}

const isWell = (port: number): Promise<boolean> =>
  fetch(`http://127.0.0.1:${port}/ok`, { signal: AbortSignal.timeout(1_000) }).then(
    ({ ok }) => ok,
    () => false,
  );

/** A program that takes a core for as long as it lives. */
const burn = (): ChildProcess => spawn(process.execPath, ["-e", "for (;;);"], { stdio: "ignore" });
