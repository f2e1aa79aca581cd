import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { sql } from "kysely";
import { afterAll, describe, expect, it } from "vitest";
import { COUNTS, SEED, searchedDatabases } from "../support/counts.ts";
import { createDatabase } from "../support/databases.ts";
import { graphsIn, language } from "../support/language.ts";
import { freePort, type ServerProcess, startProcess } from "../support/process.ts";
import { type Random, randomOf } from "../support/random.ts";
import { openOn } from "../support/storage.ts";
import { violations } from "./invariants.ts";
import { type Received, type RunReading, readThrough } from "./reader.ts";
import { readThread, type ThreadEvents, TRANSPORTS } from "./thread-reader.ts";

const KILLS = Math.ceil(COUNTS.kills / 2);
const RUNS_AT_ONCE = 6;
const READERS = 2;
/** One run in so many is cancelled. */
const CANCELS = 3;
/** Where readers close connections at random, a connection receives so many events on average. */
const EVENTS_PER_CONNECTION = 6;

type Action = "interrupt" | "rollback";

interface Outcome {
  run_id: string;
  /** A cancel that was acknowledged. */
  cancelled: Action | undefined;
  status: string | undefined;
  complaints: string[];
}

describe.each(searchedDatabases)(`readers and cancels of ${language} graphs on %s`, (name) => {
  let server: ServerProcess | undefined;
  afterAll(() => {
    server?.child.kill("SIGKILL");
  });

  /**
   * @param untilKill called before each kill: resolves when it is time for it
   * @returns how many of the runs that were not rolled back have begun more than once
   */
  const play = async (kills: number, cuts: boolean, untilKill: (traffic: Traffic, random: Random) => Promise<void>) => {
    const random = randomOf(SEED);
    const database = await createDatabase(name);
    const graphs = await graphsIn("crash");
    const port = await freePort();
    const options = {
      data: database.data_dir,
      databaseUrl: database.url,
      port,
      config: graphs.config,
      env: { ...graphs.env, THREADMILL_CANCEL_GRACE: "500ms" },
    };
    const traffic = new Traffic(`http://127.0.0.1:${port}`, random, cuts);
    for (let kill = 0; kill < kills; kill++) {
      server = await startProcess(options);
      await untilKill(traffic, random);
      server.child.kill("SIGKILL");
      await server.ended;
    }
    server = await startProcess(options);
    if (cuts) await untilKill(traffic, random);
    const outcomes = await traffic.finish();
    server.child.kill("SIGTERM");
    await server.ended;
    const storage = openOn(database);
    const broken = await violations(storage.read);
    const again = (await storage.read.all(sql`select run_id from runs where epoch > 1`.compile(storage.read.k))).length;
    await storage.close();
    await database.drop();

    const wrong = outcomes.filter(
      ({ cancelled, status, complaints }) => complaints.length > 0 || status !== ENDS[cancelled ?? "none"],
    );
    const closed = cuts ? `, ${traffic.reconnects} connections closed at random` : "";
    console.log(
      `${language}, ${name}: ${outcomes.length} runs with ${READERS + TRANSPORTS.length} readers each, ${again} began again after a kill${closed}, seed ${SEED}`,
    );
    expect({ wrong, broken }).toEqual({ wrong: [], broken: [] });
    return again;
  };

  it(
    `come through ${KILLS} kills with every event once, and every cancel kept (seed ${SEED}; CRASH_KILLS and SEED change it)`,
    async () => {
      // Runs are at work: so many events have been read since the start. A run tells its readers 320, and is given up after 20
      // losses.
      const again = await play(KILLS, false, (traffic, random) => traffic.events(random.integer(1, 1500)));
      expect(again).toBeGreaterThan(KILLS / 4);
    },
    300_000 + KILLS * 20_000,
  );

  // Streams do not depend on the language.
  it.runIf(language === "js")(
    `come through ${COUNTS.reconnects} reconnects at random and a kill in the middle (seed ${SEED}; RECONNECTS and SEED change it)`,
    async () => {
      // Readers that reconnect are behind their runs, so the kill waits for a run that has just begun.
      const again = await play(1, true, async (traffic) => {
        await traffic.reconnected(COUNTS.reconnects / 2);
        await traffic.begun();
      });
      expect(again).toBeGreaterThan(0);
    },
    300_000 + COUNTS.reconnects * 20,
  );
});

/** The status of a run at last, by the cancel that was acknowledged. */
const ENDS: Record<Action | "none", string | undefined> = {
  none: "success",
  interrupt: "interrupted",
  rollback: undefined,
};

/** Clients that start runs one after the other, read each with several readers, and cancel some. */
class Traffic {
  readonly #url: string;
  readonly #random: Random;
  readonly #cuts: boolean;
  readonly #working: Promise<Outcome[]>[];
  #stopped = false;
  readonly #events = new Counter();
  readonly #reconnects = new Counter();
  readonly #begun = new Counter();

  /** @param cuts whether readers close their connections at random */
  constructor(url: string, random: Random, cuts: boolean) {
    this.#url = url;
    this.#random = random;
    this.#cuts = cuts;
    this.#working = Array.from({ length: RUNS_AT_ONCE }, () => this.#work());
  }

  /** Resolves when readers have been told so many more events. */
  events(more: number): Promise<void> {
    return this.#events.more(more);
  }

  /** Resolves when readers have closed so many more connections. */
  reconnected(more: number): Promise<void> {
    return this.#reconnects.more(more);
  }

  /** Resolves when the next run has begun. */
  begun(): Promise<void> {
    return this.#begun.more(1);
  }

  get reconnects(): number {
    return this.#reconnects.count;
  }

  async finish(): Promise<Outcome[]> {
    this.#stopped = true;
    return (await Promise.all(this.#working)).flat();
  }

  async #work(): Promise<Outcome[]> {
    const outcomes: Outcome[] = [];
    while (!this.#stopped) {
      const run = await this.#create().catch(() => undefined);
      if (run) outcomes.push(await this.#attend(run));
      else await pause(5);
    }
    return outcomes;
  }

  /** Half of the runs are started by the run API, half by the thread protocol. */
  async #create(): Promise<Started> {
    const thread = `${this.#url}/threads/${randomUUID()}`;
    const request = { assistant_id: "ticker", input: { n: this.#random.integer(1, 1000) } };
    const isCommand = this.#random.integer(0, 1) === 1;
    const [path, body] = isCommand
      ? ["commands", { id: 1, method: "run.start", params: request }]
      : ["runs", { ...request, if_not_exists: "create", stream_mode: ["custom", "values"] }];
    const headers = { "content-type": "application/json" };
    const response = await fetch(`${thread}/${path}`, { method: "POST", headers, body: JSON.stringify(body) });
    const answer = (await response.json()) as { run_id: string; result: { run_id: string } };
    const { run_id } = isCommand ? answer.result : answer;
    return { thread, url: `${thread}/runs/${run_id}`, run_id, isCommand };
  }

  async #attend(run: Started): Promise<Outcome> {
    const received: Received = new Map();
    const cancelAt =
      this.#random.integer(0, CANCELS - 1) === 0 ? this.#random.integer(1, 60) : Number.POSITIVE_INFINITY;
    const action = this.#random.pick<Action>(["interrupt", "rollback"]);
    let cancelling: Promise<Action | undefined> | undefined;
    const undone = new AbortController();
    let count = 0;
    const onEvent = () => {
      this.#events.add();
      if (count === 0) this.#begun.add();
      if (++count < cancelAt || cancelling) return;
      cancelling = cancel(run.url, action);
      if (action === "rollback") void isUndone(run.url).then((is) => is && undone.abort());
    };
    const isCut = () => {
      const isIt = this.#cuts && !this.#stopped && this.#random.integer(1, EVENTS_PER_CONNECTION) === 1;
      if (isIt) this.#reconnects.add();
      return isIt;
    };
    // The run API leaves out events of a run that was started by the thread protocol: their ids have gaps.
    const runReaders = Array.from({ length: run.isCommand ? 0 : READERS }, () =>
      readThrough(run, received, onEvent, isCut),
    );
    const threadReaders = TRANSPORTS.map((transport) => readThread(run.thread, transport, onEvent, undone.signal));
    const threads = await Promise.all(threadReaders);
    const runs = await Promise.all(runReaders);
    const complaints = [...runs, ...threads].flatMap((reader) => reader.complaints);
    const cancelled = await cancelling;
    const { status } = (await untilAnswered(run.url)) as { status?: string };
    // The events of a run that is undone are deleted: readers get those that they had got before.
    if (status !== undefined) {
      complaints.push(...differences(threads.map(({ events }) => events)));
      if (!run.isCommand) complaints.push(...(await missing(run, received, runs)));
    }
    // A cancel that was not answered may have been written down all the same, or have come too late.
    const unknown = cancelling !== undefined && cancelled === undefined;
    return { run_id: run.run_id, cancelled, status: unknown ? "success" : status, complaints };
  }
}

class Counter {
  count = 0;
  #wanted: { count: number; resolve(): void } = { count: 0, resolve: () => undefined };

  add(): void {
    if (++this.count >= this.#wanted.count) this.#wanted.resolve();
  }

  /** Resolves after so many more. */
  more(count: number): Promise<void> {
    return new Promise((resolve) => {
      this.#wanted = { count: this.count + count, resolve };
    });
  }
}

interface Started {
  /** URLs of the thread and of the run. */
  thread: string;
  url: string;
  run_id: string;
  /** Whether a command of the thread protocol started it. */
  isCommand: boolean;
}

/** What readers of a run lack that one who comes when the run has ended receives. */
async function missing(run: Started, received: Received, readers: RunReading[]): Promise<string[]> {
  const { complaints, last } = await readThrough(run, received, () => undefined);
  const incomplete = readers.filter((reader) => reader.last !== last);
  return [...complaints, ...incomplete.map((reader) => `a reader got ${reader.last} events of ${last}`)];
}

/** All readers of a thread must receive the same events in the same order. */
function differences(readers: ThreadEvents[]): string[] {
  const [first = "", ...others] = readers.map((events) => JSON.stringify([...events]));
  return others.filter((other) => other !== first).map((other) => `a reader got ${other} and another ${first}`);
}

/** Asks for a cancel once; undefined when it was not acknowledged. */
async function cancel(url: string, action: Action): Promise<Action | undefined> {
  try {
    const { status } = await fetch(`${url}/cancel?action=${action}`, { method: "POST" });
    return status === 202 ? action : undefined;
  } catch {
    return undefined;
  }
}

/** Waits until the run does not exist any more, or has ended because the cancel was lost. */
async function isUndone(url: string): Promise<boolean> {
  for (;;) {
    const { status } = (await untilAnswered(url)) as { status?: string };
    if (status !== "pending" && status !== "running") return status === undefined;
    await pause(20);
  }
}

/** Asks until a server is there to answer. */
async function untilAnswered(url: string): Promise<unknown> {
  for (;;) {
    try {
      const response = await fetch(url);
      if (response.status < 500) return await response.json();
    } catch {
      // The next server will know.
    }
    await pause(5);
  }
}
