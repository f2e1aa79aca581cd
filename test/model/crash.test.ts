import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { COUNTS, SEED, searchedDatabases } from "../support/counts.ts";
import { createDatabase, type TestDatabase } from "../support/databases.ts";
import { graphsIn, language } from "../support/language.ts";
import { freePort, type ServerOptions, type ServerProcess, startProcess } from "../support/process.ts";
import { type Random, randomOf } from "../support/random.ts";
import { openOn } from "../support/storage.ts";
import { type Api, overHttp } from "./api.ts";
import { type Command, sequenceOf } from "./commands.ts";
import { unknownViolations } from "./known.ts";
import { Met } from "./met.ts";
import { Sequence } from "./sequence.ts";
import { Verdict } from "./verdict.ts";

const SEQUENCES = Math.ceil(COUNTS.model_sequences / 10);
const AT_ONCE = 12;
const SETTINGS = {
  THREADMILL_CANCEL_GRACE: "150ms",
  THREADMILL_LEASE: "800ms",
  THREADMILL_HEARTBEAT: "200ms",
};

/** A server that is killed at a random request and started again on the same database, until it is left alone. */
class MortalServer {
  readonly api: Api;
  kills = 0;
  /** How many runs the kills found in each state. */
  readonly met: Record<string, number> = {};
  readonly #at: TestDatabase;
  readonly #options: ServerOptions;
  readonly #random: Random;
  readonly #url: string;
  #server: ServerProcess | undefined;
  #up: Promise<unknown>;
  #left = 0;
  #spared = false;

  constructor(at: TestDatabase, options: ServerOptions, random: Random) {
    this.#at = at;
    this.#options = options;
    this.#random = random;
    this.#url = `http://127.0.0.1:${options.port}`;
    this.#up = this.#start();
    const api = overHttp({ url: this.#url, up: () => this.#up.then(() => undefined) });
    const counting =
      <A extends unknown[], R>(ask: (...args: A) => Promise<R>) =>
      (...args: A): Promise<R> => {
        const answer = ask(...args);
        this.#count();
        return answer;
      };
    this.api = { open: counting(api.open), send: counting(api.send) };
  }

  async #start(): Promise<void> {
    this.#left = this.#random.integer(40, 400);
    this.#server = await startProcess(this.#options);
  }

  #count(): void {
    if (this.#spared || --this.#left !== 0 || !this.#server) return;
    this.kills++;
    const { child, ended } = this.#server;
    this.#server = undefined;
    child.kill("SIGKILL");
    this.#up = ended.then(() => this.#look()).then(() => this.#start());
  }

  async #look(): Promise<void> {
    const database = openOn(this.#at);
    const query = database.read.k.selectFrom("runs").select("status");
    for (const { status } of await database.read.all(query)) this.met[status] = (this.met[status] ?? 0) + 1;
    await database.close();
  }

  /** From now on it lives. */
  async spare(): Promise<void> {
    this.#spared = true;
    await this.#up;
  }

  async stop(signal: NodeJS.Signals): Promise<void> {
    this.#spared = true;
    await this.#up.catch(() => undefined);
    this.#server?.child.kill(signal);
    await this.#server?.ended;
  }
}

describe.each(searchedDatabases)(
  `random sequences of ${language} graphs with a server that is killed on %s`,
  (name) => {
    it(
      `agree with the model (${SEQUENCES} of them, seed ${SEED}; MODEL_SEQUENCES and SEED change it)`,
      async () => {
        const at = await createDatabase(name);
        const folder = mkdtempSync(join(tmpdir(), "threadmill-model-"));
        const graphs = await graphsIn("model");
        const options = {
          config: graphs.config,
          data: at.data_dir,
          databaseUrl: at.url,
          port: await freePort(),
          env: { ...graphs.env, ...SETTINGS },
        };
        const server = new MortalServer(at, options, randomOf(SEED));
        const met = new Met();
        try {
          const { body } = await server.api.send("GET", "/openapi.json");
          const bulk = body.paths["/runs/cancel"] !== undefined;
          const sequences: Sequence[] = [];
          let next = 0;
          const work = async () => {
            while (next < SEQUENCES) {
              const n = next++;
              const sequence = new Sequence({ api: server.api, met, bulk, doors: join(folder, String(n)) });
              sequences.push(sequence);
              await sequence.run(withoutTimeouts(sequenceOf(SEED, n))).catch((error) => fail(error, sequence));
            }
          };
          await Promise.all(Array.from({ length: AT_ONCE }, work));
          await server.spare();
          // What the killed ones have left is read by a process that has seen none of it.
          const database = openOn(at);
          const verdict = new Verdict(server.api, database);
          for (const sequence of sequences)
            for (const thread of sequence.ledger.threads)
              await verdict.on(thread).catch((error) => fail(error, sequence));
          console.log(`${language}, ${name}: ${SEQUENCES} sequences, ${server.kills} kills, seed ${SEED}\n${met}`);
          expect(await unknownViolations(database)).toEqual([]);
          await database.close();
          console.log(`The kills met ${JSON.stringify(server.met)}`);
          if (SEQUENCES >= 30)
            expect(Object.keys(server.met)).toEqual(expect.arrayContaining(["pending", "running", "success"]));
          await server.stop("SIGTERM");
        } finally {
          await server.stop("SIGKILL");
          await at.drop();
          rmSync(folder, { recursive: true, force: true });
        }
      },
      300_000 + SEQUENCES * 20_000,
    );
  },
);

/** A process that has just started needs some of a run's time itself, so that here no run's time is short. */
const withoutTimeouts = (commands: Command[]): Command[] =>
  commands
    .filter(({ name }) => name !== "await a timeout")
    .map((one) => (one.kind === "endless" ? { ...one, kind: "slow" } : one));

function fail(error: Error, { ledger }: Sequence): never {
  throw new Error(`${error.stack}\n${ledger.log.join("\n")}`);
}
