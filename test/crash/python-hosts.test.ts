import { existsSync, readFileSync } from "node:fs";
import { afterEach, describe, expect, it } from "vitest";
import { Scenario, type Wire } from "../http/scenario.ts";
import { COUNTS, SEED, searchedDatabases } from "../support/counts.ts";
import { type Random, randomOf } from "../support/random.ts";
import { parseSse } from "../support/sse.ts";
import { openOn } from "../support/storage.ts";
import { until } from "../support/until.ts";
import { violations } from "./invariants.ts";

const KILLS = COUNTS.host_kills;
/** Each run of a killed host gets a process of its own, which takes a second to start. */
const JOBS = 2;
const CLIENTS = 4;
const STEPS = ["first", "second", "third"];
/** A run whose process has died so often ends as an error. */
const MAX_DEATHS = 3;
/** In one of so many turns, the hosts of one run are killed until it has failed, or until one death before that. */
const HUNTS = 4;
const DEADLINE_MS = 120_000;

/** A run, and the file to which its nodes append their name and process when they start. */
interface Tracked {
  run: Wire;
  ledger: string;
}

interface Started {
  name: string;
  pid: number;
}

describe.each(searchedDatabases)("runs of Python graphs whose hosts are killed on %s", (name) => {
  let api: Scenario;
  afterEach(() => api.stop());

  it(
    `end as their ledgers say through ${KILLS} kills (seed ${SEED}; HOST_KILLS and SEED change it)`,
    async () => {
      const env = { N_JOBS_PER_WORKER: String(JOBS), THREADMILL_PYTHON_HOSTS: "1", THREADMILL_PYTHON_SPARE: "1" };
      api = await Scenario.start(name, env, { config: "test/graphs/scenarios/mixed.json" });
      const traffic = new Traffic(api, randomOf(SEED));
      while (traffic.killed.size < KILLS) await traffic.nextTurn();
      const runs = await traffic.finish();

      const wrong = (await Promise.all(runs.map((run) => complaintsOf(api, run, traffic.killed)))).flat();
      const storage = openOn(api.service.database);
      const broken = await violations(storage.read);
      await storage.close();
      const statuses = await Promise.all(runs.map(async ({ run }) => (await api.run(run)).status));
      const failed = statuses.filter((status) => status === "error").length;
      const again = runs.filter(({ ledger }) => new Set(startsIn(ledger).map(({ pid }) => pid)).size > 1).length;
      console.log(
        `${name}: ${runs.length} runs, ${traffic.killed.size} hosts killed, ${again} runs in several hosts, ${failed} ended as error, seed ${SEED}`,
      );
      expect({ wrong, broken }).toEqual({ wrong: [], broken: [] });
      expect(again).toBeGreaterThan(0);
    },
    300_000 + KILLS * 30_000,
  );
});

/** Clients that create runs one after the other while hosts are killed. */
class Traffic {
  readonly killed = new Set<number>();
  readonly #api: Scenario;
  readonly #random: Random;
  readonly #runs: Tracked[] = [];
  readonly #active = new Set<Tracked>();
  readonly #working: Promise<void>[];
  readonly #open: string;
  #isStopped = false;

  constructor(api: Scenario, random: Random) {
    this.#api = api;
    this.#random = random;
    const door = api.newDoor();
    door.open();
    this.#open = door.path;
    this.#working = Array.from({ length: CLIENTS }, () => this.#work());
  }

  async nextTurn(): Promise<void> {
    if (this.#random.integer(1, HUNTS) === 1) return this.#hunt(this.#random.pick([MAX_DEATHS - 1, MAX_DEATHS]));
    const before = this.#runs.length;
    const more = this.#random.integer(0, 5);
    await until("more runs have been created", async () => this.#runs.length >= before + more, DEADLINE_MS);
    const pids = await until("a step has started", async () => this.#livePids(), DEADLINE_MS);
    this.#kill(this.#random.pick(pids));
  }

  async finish(): Promise<Tracked[]> {
    this.#isStopped = true;
    await Promise.all(this.#working);
    return this.#runs;
  }

  async #work(): Promise<void> {
    while (!this.#isStopped) await this.#join(await this.#create(this.#open));
  }

  async #create(door: string): Promise<Tracked> {
    const ledger = `${this.#api.newDoor().path}-ledger`;
    const body = { assistant_id: "ledger", input: { steps: ["in"], ledger, door }, stream_mode: "updates" };
    const run = { run: await this.#api.newRun(await this.#api.newThread(), body), ledger };
    this.#runs.push(run);
    this.#active.add(run);
    return run;
  }

  async #join(run: Tracked): Promise<void> {
    await this.#api.join(run.run);
    this.#active.delete(run);
  }

  /** Kills the hosts of one run, which waits in its second step meanwhile. */
  async #hunt(deaths: number): Promise<void> {
    const door = this.#api.newDoor();
    const hunted = await this.#create(door.path);
    for (let death = 1; death <= deaths; death++) {
      const isNew = ({ name, pid }: Started) => name === "second" && !this.killed.has(pid);
      const host = await until("it waits", async () => startsIn(hunted.ledger).find(isNew), DEADLINE_MS);
      this.#kill(host.pid);
    }
    door.open();
    await this.#join(hunted);
    const { status } = await this.#api.run(hunted.run);
    expect(status, `after ${deaths} deaths`).toBe(deaths === MAX_DEATHS ? "error" : "success");
  }

  /** The hosts in which an active run has started a step; undefined if there is none. */
  #livePids(): number[] | undefined {
    const pids = [...this.#active].flatMap(({ ledger }) => startsIn(ledger).at(-1)?.pid ?? []);
    const live = pids.filter((pid) => !this.killed.has(pid));
    return live.length > 0 ? live : undefined;
  }

  /** The host of a run that has just ended may have ended with it. */
  #kill(pid: number): void {
    try {
      process.kill(pid, "SIGKILL");
      this.killed.add(pid);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    }
  }
}

const startsIn = (ledger: string): Started[] =>
  (existsSync(ledger) ? readFileSync(ledger, "utf8") : "")
    .split("\n")
    .slice(0, -1)
    .map((line) => line.split(" "))
    .map(([name = "", pid]) => ({ name, pid: Number(pid) }));

/** Compares a run that has ended with the ledger of its steps and the hosts that were killed. */
async function complaintsOf(api: Scenario, { run, ledger }: Tracked, killed: ReadonlySet<number>): Promise<unknown[]> {
  const { thread_id, run_id } = run;
  const path = `/threads/${thread_id}/runs/${run_id}/stream`;
  const events = parseSse((await api.send("GET", path, undefined, { "Last-Event-ID": "-1" })).text);
  const { status } = await api.run(run);
  const { steps = [] } = (await api.state(thread_id)).values;
  const error = (await api.join(run)).__error__;
  const attempts = events.flatMap(({ event, data }) => (event === "metadata" ? [data.attempt as number] : []));
  const updates = events.flatMap(({ event, data }) => (event === "updates" ? Object.keys(data) : []));
  const starts = startsIn(ledger);
  const names = starts.map(({ name }) => name);
  const hosts = [...new Set(starts.map(({ pid }) => pid))];
  const isError = status === "error";
  const deaths = isError ? MAX_DEATHS : Math.max(...attempts) - 1;
  const done = steps.slice(1);
  const repeated = names.length - new Set(names).size;

  const holds = {
    "it has ended": isError || status === "success",
    "it fails only after its third death":
      !isError || (attempts.at(-1) === MAX_DEATHS && error?.error === "GraphHostError"),
    "its attempts are numbered": attempts.every((attempt, i) => attempt <= i + 1) && deaths <= MAX_DEATHS,
    "no step is lost": isError || done.length === STEPS.length,
    "no step is doubled": JSON.stringify(done) === JSON.stringify(STEPS.slice(0, done.length)),
    "each step has one event": JSON.stringify(updates) === JSON.stringify(done),
    "the events have no gap": events.every(({ id }, i) => Number(id) === i + 1),
    "the steps started in their order": names.every(
      (name, i) => STEPS.indexOf(name) >= STEPS.indexOf(names[i - 1] ?? "first"),
    ),
    "a death repeats at most one step": repeated <= deaths,
    "it left a host only when that was killed": hosts
      .slice(0, isError ? undefined : -1)
      .every((pid) => killed.has(pid)),
  };
  const failed = Object.entries(holds).flatMap(([rule, is]) => (is ? [] : [rule]));
  return failed.length === 0 ? [] : [{ failed, run_id, status, error, attempts, updates, steps, starts }];
}
