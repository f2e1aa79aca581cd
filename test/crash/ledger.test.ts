import { randomUUID } from "node:crypto";
import { afterAll, describe, expect, it } from "vitest";
import { COUNTS, SEED, searchedDatabases } from "../support/counts.ts";
import { createDatabase } from "../support/databases.ts";
import { graphsIn, language } from "../support/language.ts";
import { EndedEarly, freePort, type ServerProcess, startProcess } from "../support/process.ts";
import { randomOf } from "../support/random.ts";
import { parseSse } from "../support/sse.ts";
import { openOn } from "../support/storage.ts";
import { type Violation, violations } from "./invariants.ts";

const CLIENTS = 32;
/** Runs that execute at a time; those of the other clients wait in the queue. */
const JOBS = 8;
const KILLS = COUNTS.kills;
const POINTS = ["after-insert", "after-claim", "in-step", "after-checkpoint", "before-settle"];

/** A run that the server has acknowledged. */
interface Acknowledged {
  thread_id: string;
  run_id: string;
  n: number;
}

describe.each(searchedDatabases)(`acknowledged runs of ${language} graphs on %s`, (name) => {
  let server: ServerProcess | undefined;
  afterAll(() => {
    server?.child.kill("SIGKILL");
  });

  it(
    `all reach their end with the right output through ${KILLS} kills (seed ${SEED}; CRASH_KILLS and SEED change it)`,
    async () => {
      const random = randomOf(SEED);
      const database = await createDatabase(name);
      const graphs = await graphsIn("crash");
      const port = await freePort();
      const ledger: Acknowledged[] = [];
      const clients = new Clients(`http://127.0.0.1:${port}`, ledger);
      const options = {
        data: database.data_dir,
        databaseUrl: database.url,
        port,
        ...graphs,
        preload: "test/crash/failpoints.ts",
      };
      const killed: Record<string, number> = {};
      while (Object.values(killed).reduce((a, b) => a + b, 0) < KILLS) {
        const point = random.pick(POINTS);
        const jobs = { N_JOBS_PER_WORKER: String(JOBS) };
        const failpoint = { FAILPOINT: point, FAIL_AFTER: String(random.integer(1, 60)) };
        try {
          server = await startProcess({ ...options, env: { ...graphs.env, ...jobs, ...failpoint } });
          clients.resume();
          await server.ended;
          clients.pause();
        } catch (error) {
          // It may die while it resumes what the last one has left, before it is up.
          if (!(error instanceof EndedEarly) || error.message !== "") throw error;
        }
        killed[point] = (killed[point] ?? 0) + 1;
      }
      await clients.stop();
      server = await startProcess(options);
      const wrong = await wrongOnes(server, ledger);
      server.child.kill("SIGTERM");
      await server.ended;
      const storage = openOn(database);
      const broken: Violation[] = await violations(storage.read);
      await storage.close();
      await database.drop();
      console.log(
        `${language}, ${name}: ${ledger.length} acknowledged runs, kills ${JSON.stringify(killed)}, seed ${SEED}`,
      );
      expect({ wrong, broken }).toEqual({ wrong: [], broken: [] });
      expect(ledger.length).toBeGreaterThan(KILLS);
    },
    300_000 + KILLS * 20_000,
  );
});

/** Asks for all runs, so many at a time: thousands of connections at once are more than a socket's backlog takes. */
async function wrongOnes(server: ServerProcess, ledger: readonly Acknowledged[]): Promise<unknown[]> {
  const wrong: unknown[] = [];
  const left = [...ledger];
  const ask = async () => {
    for (let entry = left.pop(); entry; entry = left.pop()) {
      const outcome = await outcomeOf(server, entry);
      if (outcome !== undefined) wrong.push(outcome);
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, ask));
  return wrong;
}

/** What is wrong with an acknowledged run; undefined when nothing is. */
async function outcomeOf({ url }: ServerProcess, { thread_id, run_id, n }: Acknowledged): Promise<unknown> {
  const path = `${url}/threads/${thread_id}/runs/${run_id}`;
  const joined = await fetch(`${path}/join`);
  const output = (await joined.json()) as { items?: string[] };
  const { status } = (await (await fetch(path)).json()) as { status: string };
  const events = await fetch(`${path}/stream`, { headers: { "last-event-id": "-1" } });
  const updates = parseSse(await events.text()).flatMap(({ event, data }) =>
    event === "updates" ? Object.keys(data) : [],
  );
  const steps = ["a", "b", "c"];
  const isRight =
    status === "success" &&
    JSON.stringify(output.items) === JSON.stringify(steps.map((step) => `${step}${n}`)) &&
    JSON.stringify(updates) === JSON.stringify(steps);
  return isRight ? undefined : { run_id, n, status, output, updates };
}

/**
 * Clients that create runs for as long as the server is there, and write down every run it acknowledges. Each waits for its run, and
 * the server for room (JOBS): without that they wrote down 20,000 runs, mostly of a queue that had nothing to do with the kills.
 */
class Clients {
  readonly #url: string;
  readonly #ledger: Acknowledged[];
  readonly #working: Promise<void>[];
  #stopped = false;
  #up = Promise.withResolvers<void>();
  #n = 0;

  constructor(url: string, ledger: Acknowledged[]) {
    this.#url = url;
    this.#ledger = ledger;
    this.#working = Array.from({ length: CLIENTS }, () => this.#work());
  }

  resume(): void {
    this.#up.resolve();
  }

  pause(): void {
    this.#up = Promise.withResolvers();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#up.resolve();
    await Promise.all(this.#working);
  }

  async #work(): Promise<void> {
    for (;;) {
      await this.#up.promise;
      if (this.#stopped) return;
      await this.#create(++this.#n).catch(() => undefined);
    }
  }

  /** A refused or broken request acknowledges nothing. */
  async #create(n: number): Promise<void> {
    const body = JSON.stringify({
      assistant_id: "ledger",
      input: { n },
      if_not_exists: "create",
      stream_mode: "updates",
    });
    const headers = { "content-type": "application/json" };
    const response = await fetch(`${this.#url}/threads/${randomUUID()}/runs`, { method: "POST", headers, body });
    if (response.status !== 200) throw new Error(String(response.status));
    const { thread_id, run_id } = (await response.json()) as Acknowledged;
    this.#ledger.push({ thread_id, run_id, n });
    await (await fetch(`${this.#url}/threads/${thread_id}/runs/${run_id}/join`)).text();
  }
}
